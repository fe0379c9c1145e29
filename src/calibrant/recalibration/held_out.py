"""What maps do to rows they have not seen."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.categorical import Categorical
from calibrant.distributions.cells import crps_by_cells
from calibrant.results import Table

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
) -> tuple[HeldOut, ...]:
    """Each fold, seen through the map of all other rows; rows in folds below 0 are never held out."""
    parts = []
    for k in np.unique(fold[fold >= 0]):
        learn, rest = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        w = None if weights is None else weights[learn]
        found = recalibrator.find(targets[learn], predictions[learn], w).map
        parts.append(HeldOut(rest, found.apply(predictions[rest])))
    return tuple(parts)


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
    old = _losses(predictions, targets)
    new = [(part.rows, _losses(part.predictions, targets[part.rows])) for part in parts]
    names = [name for name in old if all(name in losses for _, losses in new)]
    if not names:
        return None
    before = np.stack([old[name] for name in names])
    after = np.empty_like(before)
    for rows, losses in new:
        after[:, rows] = [losses[name] for name in names]
    w = np.full(len(targets), 1 / len(targets)) if weights is None else weights / weights.sum()
    with np.errstate(invalid="ignore"):  # an infinite change has no spread
        change = np.where(before == after, 0.0, after - before)
        mean = change @ w
        error = np.sqrt((w**2 * (change - mean[:, None]) ** 2).sum(axis=1))
    return Table(score=names, before=before @ w, after=after @ w, change=mean, error=error)


def _losses(predictions: Distribution, targets: np.ndarray) -> dict[str, np.ndarray]:
    """Losses of each row: the log loss where there is a density; of classes the Brier score, of numbers the CRPS."""
    losses = {}
    with suppress(InputError):  # no density
        losses["log loss"] = -to_numpy(predictions.log_prob(targets))
    if isinstance(predictions, Categorical):
        losses["Brier"] = predictions.squared_error(targets)
    elif targets.ndim == 1:
        ranked = predictions.crps(targets)
        ranked = crps_by_cells(predictions, targets) if ranked is NotImplemented else ranked
        if ranked is not NotImplemented:
            losses["CRPS"] = to_numpy(ranked)
    return losses
