"""Venn-Abers prediction: isotonic regression with and without the benefit of the doubt."""

from dataclasses import dataclass

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.conversion import as_distribution
from calibrant.recalibration.base import Found, Recalibrator
from calibrant.recalibration.binary import BinaryMap, as_fractions, as_knots, check_two_classes, pools_of, scores_of
from calibrant.typing import ArrayLike


@dataclass(frozen=True)
class VennAbers(Recalibrator):
    """Isotonic regression with the new row among the rows, once as a 0 and once as a 1; two classes.

    The two fits at the new score, ``p0 <= p1``, are the ends of an interval: one of them is calibrated exactly, whatever
    the distribution, if rows are exchangeable. They are merged to ``p1 / (1 - p0 + p1)``, the probability of the least
    regret in log loss, which is never 0 or 1. Both are step functions of the score that are made once, in
    O(n log n), by moving along the convex minorants. Inductive Venn-Abers predictors, Vovk, Petej & Fedorova (2015).

    >>> fitted = VennAbers().fit([0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.6, 0.7, 0.9], folds=0)
    >>> [bound.round(3).tolist() for bound in fitted.map.interval([0.05, 0.5, 0.95])]
    [[0.0, 0.333, 0.667], [0.333, 0.667, 1.0]]
    >>> fitted([0.05, 0.5, 0.95]).round(3)
    array([0.25, 0.5 , 0.75])
    """

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """Both functions, as steps."""
        pools = pools_of(targets, predictions, weights, "VennAbers")
        upper = _upper(pools.rows, pools.rows * pools.frequency)
        mirrored = (pools.rows * (1 - pools.frequency))[::-1]
        lower = 1 - _upper(pools.rows[::-1], mirrored)[::-1]
        # a step below its knot (upper) ends where the value changes; a step above it (lower) begins there
        ends = np.flatnonzero(np.diff(upper, append=2.0))
        begins = np.flatnonzero(np.diff(lower, prepend=-1.0))
        return Found(VennAbersMap(pools.scores[begins], lower[begins], pools.scores[ends], upper[ends]))


def _upper(rows: np.ndarray, events: np.ndarray) -> np.ndarray:
    """Isotonic fits at each score with one more event there, ``(k,)``, in O(k).

    The fit is the slope, above the new row, of the greatest convex minorant of the cumulated events. What lies before the
    new row is moved by (-1, -1) instead of what lies after it, so that each point moves once as the row passes.
    """
    x, y = (np.concatenate([[0.0], np.cumsum(part)]).tolist() for part in (rows, events))
    right: list[tuple[float, float]] = []  # corners of the minorant from the last point back to the new row
    for point in zip(reversed([-1.0, *x]), reversed([-1.0, *y]), strict=True):
        _put(right, point)
    found = []
    for i in range(1, len(x)):
        found.append(_slope(right[-1], right[-2]))
        passed = (x[i] - 1, y[i] - 1)
        if i + 1 < len(x) and _is_below(passed, right[-1], right[-2]):
            right.pop()
            _put(right, passed)
    return np.clip(found, 0, 1)


def _put(corners: list[tuple[float, float]], point: tuple[float, float]) -> None:
    """A new first point; corners that are no longer below the line to it go."""
    while len(corners) > 1 and not _is_below(corners[-1], point, corners[-2]):
        corners.pop()
    corners.append(point)


def _is_below(point: tuple[float, float], left: tuple[float, float], right: tuple[float, float]) -> bool:
    """Whether the point lies below the line."""
    return (right[0] - left[0]) * (point[1] - left[1]) < (point[0] - left[0]) * (right[1] - left[1])


def _slope(left: tuple[float, float], right: tuple[float, float]) -> float:
    return (right[1] - left[1]) / (right[0] - left[0])


@dataclass(frozen=True, eq=False)
class VennAbersMap(BinaryMap):
    """Steps of both ends: the lower end from each of its knots on, 0 before; the upper end up to each, 1 after."""

    lower_knots: np.ndarray
    lower_values: np.ndarray
    upper_knots: np.ndarray
    upper_values: np.ndarray
    n_classes: int = 2

    def __post_init__(self) -> None:
        check_two_classes(self.n_classes)
        for side in ("lower", "upper"):
            knots = as_knots(getattr(self, f"{side}_knots"), f"{side}_knots")
            values = as_fractions(getattr(self, f"{side}_values"), f"{side}_values")
            if len(knots) != len(values):
                raise InputError(f"there must be a value a knot; got {len(values)} and {len(knots)}")
            object.__setattr__(self, f"{side}_knots", knots)
            object.__setattr__(self, f"{side}_values", values)

    def interval(self, y_pred: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper probability of class 1, ``(n,)`` each."""
        predictions = as_distribution(y_pred)
        self.check(predictions)
        return self._ends(scores_of(to_numpy(predictions.matrix).astype(np.float64)))  # type: ignore[attr-defined]

    def probability(self, scores: np.ndarray) -> np.ndarray:
        """Both ends merged."""
        lower, upper = self._ends(scores)
        return upper / (1 - lower + upper)

    def _ends(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        lower, upper = np.r_[0.0, self.lower_values], np.r_[self.upper_values, 1.0]
        below = np.searchsorted(self.lower_knots, scores, side="right")
        return lower[below], upper[np.searchsorted(self.upper_knots, scores)]
