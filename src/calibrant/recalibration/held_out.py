"""What maps do to rows they have not seen."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from calibrant._array import to_numpy
from calibrant.distributions.base import Distribution
from calibrant.distributions.categorical import Categorical
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
) -> Table:
    """Mean losses of predictions ``before`` and ``after``, the mean ``change`` and its standard ``error``, a row a score.

    A row that both call impossible has no change, though both losses are infinite.
    """
    before = _losses(predictions, targets)
    after = np.empty_like(before)
    for part in parts:
        after[:, part.rows] = _losses(part.predictions, targets[part.rows])
    w = np.full(len(targets), 1 / len(targets)) if weights is None else weights / weights.sum()
    with np.errstate(invalid="ignore"):  # an infinite change has no spread
        change = np.where(before == after, 0.0, after - before)
        mean = change @ w
        error = np.sqrt((w**2 * (change - mean[:, None]) ** 2).sum(axis=1))
    names = ["log loss", "Brier"][: len(before)]
    return Table(score=names, before=before @ w, after=after @ w, change=mean, error=error)


def _losses(predictions: Distribution, targets: np.ndarray) -> np.ndarray:
    """The log loss of each row and, of classes, the Brier score, ``(scores, n)``."""
    losses = [-to_numpy(predictions.log_prob(targets))]
    if isinstance(predictions, Categorical):
        losses.append(predictions.squared_error(targets))
    return np.stack(losses)
