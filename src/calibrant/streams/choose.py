"""The state that an estimator needs, and what is to be done where it has none."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.conversion import as_problem
from calibrant.estimators.binned import ECE
from calibrant.estimators.binning import Edges
from calibrant.estimators.debiased import DebiasedECE
from calibrant.estimators.kernel_problem import resolve_kernels
from calibrant.estimators.random_features import RandomFeatureSKCE
from calibrant.estimators.ratio import CalibrationRatio
from calibrant.estimators.scores import Score
from calibrant.estimators.skce import SKCE
from calibrant.estimators.state import BinnedState
from calibrant.estimators.ucme import UCME, GivenLocations
from calibrant.spec import parse
from calibrant.streams.blocks import BlockState
from calibrant.streams.debiased import DebiasedState
from calibrant.streams.locations import LocationState
from calibrant.streams.names import NAMES
from calibrant.streams.ratio import RatioState
from calibrant.streams.score import ScoreState
from calibrant.streams.several import SeveralStates
from calibrant.streams.waves import WaveState
from calibrant.typing import Array, ArrayLike

LINEAR = (
    "ECE and DebiasedECE with fixed bins, scores (Brier, LogLoss, CRPS, ...), CalibrationRatio, SKCE(block=...), "
    "RandomFeatureSKCE, UCME"
)
"""What has states."""

STATES: Mapping[str, Any] = {
    kind.kind: kind for kind in (DebiasedState, ScoreState, RatioState, LocationState, WaveState, BlockState)
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
        (RandomFeatureSKCE, WaveState),
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
        bins = estimator.bins.bins(event.probability.astype(np.float64), None, event.happened(targets))
        return replace(settled, bins=Edges(tuple(np.unique(bins.edges).tolist())))
    if not isinstance(estimator, SKCE | UCME | RandomFeatureSKCE):
        return estimator
    on_predictions, on_targets, _ = resolve_kernels(estimator.on_predictions, estimator.on_targets, predictions)
    estimator = replace(estimator, on_predictions=on_predictions, on_targets=on_targets)
    if isinstance(estimator, UCME) and not isinstance(estimator.locations, GivenLocations):
        places, _ = estimator.locations.choose(estimator, targets, predictions)
        return replace(estimator, locations=GivenLocations(*places))
    return estimator


def from_dict(data: Mapping[str, Any]) -> Any:
    """The state that ``to_dict`` wrote, of any kind.

    >>> from calibrant import Brier, state
    >>> written = state(Brier()).update([1, 0], [0.8, 0.4]).to_dict()
    >>> round(from_dict(written).finalize().value, 12)
    0.1
    """
    name = data.get("state", "") if isinstance(data, Mapping) else ""
    if name == "binned":
        return BinnedState.from_dict(data)
    if name == "several":
        return SeveralStates(tuple(map(from_dict, data["states"])))
    if name not in STATES:
        raise InputError(
            f"this is no state: the field 'state' is {name!r}; known: binned, several, {', '.join(STATES)}"
        )
    return STATES[name].revived(parse(data["estimator"], NAMES), int(data["n"]), data["family"], data)
