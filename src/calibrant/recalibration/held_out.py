"""What maps do to rows they have not seen."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from calibrant._array import to_numpy
from calibrant._tasks import elsewhere, mapping
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.categorical import Categorical
from calibrant.distributions.cells import crps_by_cells, has_levels
from calibrant.distributions.quantiles import fan_of
from calibrant.results import Table
from calibrant.typing import Engine

if TYPE_CHECKING:
    from calibrant.recalibration.base import Recalibrator


class HeldOut(NamedTuple):
    """Row numbers, and what a map that was fitted on other rows made of their predictions."""

    rows: np.ndarray
    predictions: Distribution


def held_out(
    recalibrator: "Recalibrator",
    targets: np.ndarray,
    predictions: Distribution,
    weights: np.ndarray | None,
    fold: np.ndarray,
    engine: Engine | None = None,
) -> tuple[HeldOut, ...]:
    """Each fold, seen through the map of all other rows; rows in folds below 0 are never held out. A fold is a task."""
    task = partial(_held_out, recalibrator, targets, predictions, weights, fold)
    return tuple(mapping(elsewhere(engine))(task, np.unique(fold[fold >= 0]).tolist()))


def _held_out(
    recalibrator: "Recalibrator",
    targets: np.ndarray,
    predictions: Distribution,
    weights: np.ndarray | None,
    fold: np.ndarray,
    k: int,
) -> HeldOut:
    learn, rest = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
    w = None if weights is None else weights[learn]
    found = recalibrator.find(targets[learn], predictions[learn], w).map
    return HeldOut(rest, found.apply(predictions[rest]))


def in_order(parts: Sequence[HeldOut]) -> Categorical:
    """Class probabilities of all folds as one batch, in the order of the rows."""
    rows = np.concatenate([part.rows for part in parts])
    classes = [part.predictions for part in parts if isinstance(part.predictions, Categorical)]
    matrix = np.concatenate([to_numpy(one.matrix) for one in classes])
    return Categorical(matrix[np.argsort(rows)], classes[0].labels)


def scores(
    targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None, parts: Sequence[HeldOut]
) -> Table | None:
    """Mean losses of predictions ``before`` and ``after``, the mean ``change`` and its standard ``error``, a row a score.

    The first judges: the log loss where both have a density, else the CRPS. A row that both call impossible has no
    change, though both losses are infinite. ``None`` where predictions have no score in common.
    """
    names = scores_of(predictions, targets)
    names = [name for name in names if all(name in scores_of(part.predictions, targets) for part in parts)]
    if not names:
        return None
    before = np.stack([LOSSES[name](predictions, targets) for name in names])
    after = np.stack([losses_in_order(name, targets, parts) for name in names])
    w = np.full(len(targets), 1 / len(targets)) if weights is None else weights / weights.sum()
    change, error = mean_change(before, after, w)
    return Table(score=names, before=before @ w, after=after @ w, change=change, error=error)


def mean_change(before: np.ndarray, after: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean of what losses ``(..., n)`` change by, with weights that sum to 1, and its standard error.

    >>> mean_change(np.array([1.0, 1.0]), np.array([0.0, 2.0]), np.array([0.5, 0.5]))
    (np.float64(0.0), np.float64(0.7071067811865476))
    """
    with np.errstate(invalid="ignore"):  # an infinite change has no spread
        change = np.where(before == after, 0.0, after - before)
        mean = change @ w
        return mean, np.sqrt((w**2 * (change - mean[..., None]) ** 2).sum(axis=-1))


def losses_in_order(name: str, targets: np.ndarray, parts: Sequence[HeldOut]) -> np.ndarray:
    """Losses of all folds, in the order of the rows, ``(n,)``."""
    losses = np.empty(len(targets))
    for part in parts:
        losses[part.rows] = LOSSES[name](part.predictions, targets[part.rows])
    return losses


def scores_of(predictions: Distribution, targets: np.ndarray) -> list[str]:
    """The scores that predictions have: the log loss where there is a density; of classes the Brier score, of numbers the CRPS.

    Quantile forecasts have the pinball loss at their levels, and no other: what lies between them is not known.
    """
    if fan_of(predictions) is not None:
        return ["pinball"]
    names, first = [], predictions[:1]
    with suppress(InputError):  # no density
        first.log_prob(targets[:1])
        names.append("log loss")
    if isinstance(predictions, Categorical):
        names.append("Brier")
    elif targets.ndim == 1 and (first.crps(targets[:1]) is not NotImplemented or has_levels(first)):
        names.append("CRPS")
    return names


def _log_loss(predictions: Distribution, targets: np.ndarray) -> np.ndarray:
    return -to_numpy(predictions.log_prob(targets))


def _brier(predictions: Distribution, targets: np.ndarray) -> np.ndarray:
    assert isinstance(predictions, Categorical)
    return predictions.squared_error(targets)


def _crps(predictions: Distribution, targets: np.ndarray) -> np.ndarray:
    ranked = predictions.crps(targets)
    return to_numpy(crps_by_cells(predictions, targets) if ranked is NotImplemented else ranked)


def _pinball(predictions: Distribution, targets: np.ndarray) -> np.ndarray:
    """The mean over the levels that were forecast."""
    fan = fan_of(predictions)
    assert fan is not None
    y = targets[:, None]
    return (((y < fan.quantiles) - fan.levels) * (fan.quantiles - y)).mean(axis=1)


LOSSES: dict[str, Callable[[Distribution, np.ndarray], np.ndarray]] = {
    "log loss": _log_loss,
    "Brier": _brier,
    "CRPS": _crps,
    "pinball": _pinball,
}
"""The loss of each row, by the name of its mean."""
