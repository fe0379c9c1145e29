"""Isotonic regression and Venn-Abers prediction: any increasing map of the probability of class 1."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.reading.conversion import as_distribution
from calibrant.recalibration.base import Found, Recalibrator, in_rows
from calibrant.recalibration.maps import ClassMap, two_classes
from calibrant.typing import ArrayLike


class Pools(NamedTuple):
    """Rows with equal scores as one: increasing scores, how often class 1 happened, and how many rows there were."""

    scores: np.ndarray
    frequency: np.ndarray
    rows: np.ndarray


def pools_of(targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None, asker: str) -> Pools:
    """The pools of a checked problem; more than two classes are refused."""
    p = to_numpy(two_classes(predictions, asker).matrix).astype(np.float64)
    count = in_rows(weights, len(targets))
    scores, which = np.unique(scores_of(p), return_inverse=True)
    rows = np.bincount(which, weights=count)
    return Pools(scores, np.bincount(which, weights=count * (targets == 1)) / rows, rows)


def scores_of(p: np.ndarray) -> np.ndarray:
    """The probability of class 1 of rows ``(n, 2)``, which may miss one by rounding."""
    return p[:, 1] / p.sum(axis=1)


class BinaryMap(ClassMap):
    """A map of the probability of class 1; subclasses are dataclasses that write :meth:`probability`."""

    @abstractmethod
    def probability(self, scores: np.ndarray) -> np.ndarray:
        """The probability of class 1 that is put in place of each score, ``(n,)`` both."""

    def probabilities(self, p: np.ndarray) -> np.ndarray:
        """Both classes, ``(n, 2)``."""
        found = self.probability(scores_of(p))
        return np.stack([1 - found, found], axis=1)


def as_fractions(x: np.ndarray, name: str) -> np.ndarray:
    """A vector of numbers in [0, 1], as double precision."""
    values = np.asarray(x, dtype=np.float64)
    if values.ndim != 1 or not np.all((values >= 0) & (values <= 1)):
        raise InputError(f"{name} must be numbers from 0 to 1")
    return values


def as_knots(x: np.ndarray, name: str) -> np.ndarray:
    """A vector of numbers in [0, 1] that do not decrease."""
    knots = as_fractions(x, name)
    if np.any(np.diff(knots) < 0):
        raise InputError(f"{name} must not decrease")
    return knots


def check_two_classes(n_classes: int) -> None:
    """Refuse a map that says it is for another number of classes."""
    if n_classes != 2:
        raise InputError(f"n_classes must be 2; got {n_classes!r}")


@dataclass(frozen=True)
class Isotonic(Recalibrator):
    """The increasing map closest to the outcomes, for two classes; ``OneVsRest(Isotonic())`` for more.

    ``argmin sum_i w_i (y_i - g(f_i))^2`` over all non-decreasing g, which is also the maximum of the likelihood, by
    pooling adjacent violators, O(n log n). Rows with equal scores are pooled first. The map is constant on each block of
    scores and outside their range, and straight between blocks, so that naming the classes the other way round changes
    nothing. Zadrozny & Elkan (2002).

    ``centred=True`` gives each block's value to the mean score of its rows only, with straight lines in between: the
    map is strictly increasing between the centres of the first and last block, so that the order of predictions is kept
    there, and less variable. Oron & Flournoy (2017).

    Blocks where all rows agree have the values 0 and 1, and one row that disagrees costs an infinite log loss.
    ``smoothed=True`` mixes in one row that knows nothing, ``(n g + 1/2) / (n + 1)``.
    ``increasing=False`` is for scores that are small where class 1 is likely.

    >>> fitted = Isotonic().fit([0, 1, 0, 1, 1], [0.1, 0.3, 0.5, 0.6, 0.9], folds=0)
    >>> fitted([0.0, 0.2, 0.3, 0.5, 0.6])
    array([0.  , 0.25, 0.5 , 0.5 , 1.  ])
    >>> Isotonic(centred=True).fit([0, 1, 0, 1, 1], [0.1, 0.3, 0.5, 0.6, 0.9], folds=0)([0.1, 0.3, 0.4, 0.5])
    array([0.        , 0.33333333, 0.5       , 0.64285714])
    """

    centred: bool = False
    increasing: bool = True
    smoothed: bool = False

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """By pooling adjacent violators."""
        pools = pools_of(targets, predictions, weights, "Isotonic")
        knots, values = _blocks(pools, centred=self.centred, increasing=self.increasing)
        notes = []
        if self.smoothed:
            n = pools.rows.sum()
            values = (n * values + 0.5) / (n + 1)
        elif np.any((values == 0) | (values == 1)):
            notes.append("the map has values of 0 or 1, which may cost an infinite log loss: smoothed=True avoids them")
        return Found(IsotonicMap(knots, values), notes=tuple(notes))


def _blocks(pools: Pools, *, centred: bool, increasing: bool) -> tuple[np.ndarray, np.ndarray]:
    """Scores and values of the corners of the map."""
    from scipy.optimize import isotonic_regression  # slow to import

    fit = isotonic_regression(pools.frequency, weights=pools.rows, increasing=increasing)
    value = np.clip(fit.x, 0, 1)
    # values that are equal but for rounding are one block
    step = np.abs(np.diff(value)) > 1e-14
    first, last = np.flatnonzero(np.r_[True, step]), np.flatnonzero(np.r_[step, True])
    if centred:
        mass = np.add.reduceat(pools.rows, first)
        return np.add.reduceat(pools.rows * pools.scores, first) / mass, value[first]
    # a block of a single score has one corner
    corners, which = np.unique(np.r_[first, last], return_index=True)
    return pools.scores[corners], value[np.r_[first, first]][which]


@dataclass(frozen=True, eq=False)
class IsotonicMap(BinaryMap):
    """Straight lines between knots, constant beyond the first and last."""

    knots: np.ndarray
    values: np.ndarray
    n_classes: int = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "knots", as_knots(self.knots, "knots"))
        object.__setattr__(self, "values", as_fractions(self.values, "values"))
        check_two_classes(self.n_classes)
        if len(self.knots) != len(self.values) or not len(self.knots):
            raise InputError(f"there must be a value a knot; got {len(self.values)} and {len(self.knots)}")

    def probability(self, scores: np.ndarray) -> np.ndarray:
        """By linear interpolation."""
        return np.interp(scores, self.knots, self.values)


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
