"""The state that an estimator needs, one for several estimators, and what is to be done where there is none."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.reading.conversion import Classes, as_part, as_problem
from calibrant.estimators.binned.binned_state import BinnedState
from calibrant.estimators.binned.binning import Edges
from calibrant.estimators.binned.debiased import DebiasedECE
from calibrant.estimators.binned.ece import ECE
from calibrant.estimators.kernel_errors.kernel_problem import resolve_kernels
from calibrant.estimators.kernel_errors.random_features import RandomFeatureSKCE
from calibrant.estimators.kernel_errors.skce import SKCE
from calibrant.estimators.kernel_errors.ucme import UCME, GivenLocations
from calibrant.estimators.scoring_rules.proper_scores import Score
from calibrant.estimators.smooth.weak_calibration import CalibrationRatio
from calibrant.results import Estimate
from calibrant.spec import parse
from calibrant.streams.base import NAMES, as_count
from calibrant.streams.block_state import BlockState, LocationState, RandomFeatureState
from calibrant.streams.score_states import DebiasedState, RatioState, ScoreState
from calibrant.typing import Array, ArrayLike


@dataclass(frozen=True, eq=False)
class SeveralStates:
    """The states of several estimators, of the same rows.

    >>> from calibrant import ECE, Brier
    >>> from calibrant.estimators import BinnedState
    >>> from calibrant.streams.score_states import ScoreState
    >>> both = SeveralStates((BinnedState(ECE()), ScoreState(Brier()))).update([1, 0], [0.8, 0.4])
    >>> [round(estimate.value, 3) for estimate in both.finalize()]
    [0.3, 0.1]
    """

    states: tuple[Any, ...]

    @property
    def n(self) -> int:
        """How many rows that count there were."""
        return int(self.states[0].n)

    def update(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        **options: Any,
    ) -> Self:
        """The states after these rows too; input is checked once. ``start`` is for those that have blocks."""
        part = as_part(y_true, y_pred, sample_weight, Classes(labels, pos_label))
        if part is None:
            return self
        targets, predictions, weights = part
        return type(self)(
            tuple(
                state.update(
                    targets, predictions, sample_weight=weights, **(options if isinstance(state, BlockState) else {})
                )
                for state in self.states
            )
        )

    def merge(self, other: Self) -> Self:
        """One by one."""
        if not isinstance(other, SeveralStates) or len(self.states) != len(other.states):
            raise InputError("states of different estimators cannot be merged: their numbers differ")
        return type(self)(tuple(a.merge(b) for a, b in zip(self.states, other.states, strict=True)))

    def finalize(self) -> tuple[Estimate, ...]:
        """The estimates, in the order of the states."""
        return tuple(state.finalize() for state in self.states)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"state": "several", "states": [state.to_dict() for state in self.states]}


LINEAR = (
    "ECE and DebiasedECE with fixed bins, scores (Brier, LogLoss, CRPS, ...), CalibrationRatio, SKCE(block=...), "
    "RandomFeatureSKCE, UCME"
)
"""What has states."""

STATES: Mapping[str, Any] = {
    kind.kind: kind for kind in (DebiasedState, ScoreState, RatioState, LocationState, RandomFeatureState, BlockState)
}


def state(*estimators: Any, like: tuple[ArrayLike, ArrayLike] | None = None) -> Any:
    """The empty state of an estimator, or of several in one pass.

    A state is a small value with ``update(y_true, y_pred, sample_weight=...)``, ``merge(other)``, ``finalize()``, ``n`` and
    ``to_dict()``; :func:`from_dict` reads it back. Its estimate is that of the estimator on all rows at once, to 1e-12 and
    mostly to the last digit, whatever the parts and their order. Memory does not grow with the rows.

    What an estimator takes from the data (bins of equal mass, median length scales, locations) must be known before the first
    row: give it, or a first sample to take it from, ``like=(y_true, y_pred)``, the same one for all states to be merged.

    >>> from calibrant import ECE, Brier, state
    >>> total = state(ECE(), Brier())
    >>> for y_true, y_pred in [([1, 0, 1], [0.9, 0.2, 0.7]), ([0, 1], [0.4, 0.6])]:
    ...     total = total.update(y_true, y_pred)
    >>> [round(estimate.value, 3) for estimate in total.finalize()]
    [0.28, 0.092]
    """
    if not estimators:
        raise InputError("state takes at least one estimator, such as state(ECE())")
    if len(estimators) > 1:
        return SeveralStates(tuple(state(estimator, like=like) for estimator in estimators))
    (estimator,) = estimators
    if like is not None:
        estimator = _settled(estimator, *as_problem(*like))
    return _kind(estimator)(estimator)


def _kind(estimator: Any) -> Any:
    for kind, found in (
        (Score, ScoreState),
        (CalibrationRatio, RatioState),
        (RandomFeatureSKCE, RandomFeatureState),
        (UCME, LocationState),
        (DebiasedECE, DebiasedState),
    ):
        if isinstance(estimator, kind):
            return found
    if isinstance(estimator, SKCE) and estimator.block is not None:
        return BlockState
    if isinstance(estimator, SKCE):
        raise InputError(
            f"{estimator!r} looks at all pairs of rows, which no small state can hold: use SKCE(block=100) or RandomFeatureSKCE()"
        )
    if isinstance(estimator, ECE):
        return BinnedState
    raise InputError(f"{estimator!r} has no state, as it needs all rows at once; these have: {LINEAR}")


def _settled(estimator: Any, targets: Array, predictions: Distribution) -> Any:
    """The estimator with what it takes from the data taken from a sample."""
    if isinstance(estimator, ECE | DebiasedECE) and not estimator.bins.is_fixed:
        settled, events, _ = estimator.look(predictions)
        if len(events) > 1:
            raise InputError(
                f"bins of a sample are those of one event and {settled.lens!r} has {len(events)}: give Edges(...)"
            )
        (event,) = events
        bins = estimator.bins.bins(event.probability.astype(np.float64), None, event.observed(targets))
        return replace(settled, bins=Edges(tuple(np.unique(bins.edges).tolist())))
    if not isinstance(estimator, SKCE | UCME | RandomFeatureSKCE):
        return estimator
    on_predictions, on_targets, _ = resolve_kernels(estimator.on_predictions, estimator.on_targets, predictions)
    estimator = replace(estimator, on_predictions=on_predictions, on_targets=on_targets)
    if isinstance(estimator, UCME) and not isinstance(estimator.locations, GivenLocations):
        places, _ = estimator.locations.choose(estimator, targets, predictions)
        return replace(estimator, locations=GivenLocations(*places))
    return estimator


def _check_usable(found: Any) -> None:
    """Refuse sums from which nothing follows: those of rows can be added and finished without a number overflowing."""
    with np.errstate(divide="raise", invalid="raise", over="raise"), suppress(InputError):
        found.finalize()


def from_dict(data: Mapping[str, Any]) -> Any:
    """The state that ``to_dict`` wrote, of any kind.

    >>> from calibrant import Brier, state
    >>> written = state(Brier()).update([1, 0], [0.8, 0.4]).to_dict()
    >>> round(from_dict(written).finalize().value, 12)
    0.1
    """
    name = data.get("state", "") if isinstance(data, Mapping) else ""
    if name not in ("binned", "several", *STATES):
        raise InputError(
            f"this is no state: the field 'state' is {str(name)[:40]!r}; known: binned, several, {', '.join(STATES)}"
        )
    try:
        if name == "several":
            return SeveralStates(tuple(map(from_dict, data["states"])))
        if as_count(data["n"]) and not data.get("events", True):
            raise InputError("this is no state that calibrant wrote: it has rows and no events")
        if name == "binned":
            found = BinnedState.from_dict(data)
        else:
            found = STATES[name].revived(parse(data["estimator"], NAMES), data["n"], data["family"], data)
        _check_usable(found)
        return found
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError, IndexError, RecursionError) as error:
        raise InputError(f"this is no state that calibrant wrote: its {name} cannot be read ({error})") from error
