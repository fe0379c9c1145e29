"""Isotonic regression: any increasing map of the probability of class 1."""

from dataclasses import dataclass

import numpy as np

from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.recalibration.base import Found, Recalibrator
from calibrant.recalibration.binary import BinaryMap, Pools, as_fractions, as_knots, check_two_classes, pools_of


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
