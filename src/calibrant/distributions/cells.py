"""Distribution functions between their quantiles: moments and ranked scores of any family that has both."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, singledispatch
from typing import Any, Self

import numpy as np
from scipy.special import ndtr

from calibrant._array import to_numpy
from calibrant.distributions.base import Distribution
from calibrant.distributions.ensemble import Ensemble
from calibrant.typing import Array

LEVELS = ndtr(np.linspace(-8, 8, 255))
"""Levels of the quantiles that cut the line: evenly spaced normal scores, so that both tails are seen down to 1e-15."""

CHUNK = 1 << 18
"""Edges at a time, few enough to stay in the cache."""


@singledispatch
def edges_of(predictions: Distribution) -> np.ndarray:
    """Where the line is cut, ``(n, m)``, rising along each row: 255 quantiles, unless the family knows better places."""
    return to_numpy(predictions.quantile(LEVELS)).astype(np.float64)


@edges_of.register
def _members(predictions: Ensemble) -> np.ndarray:
    return np.sort(to_numpy(predictions.members).astype(np.float64), axis=1)


@dataclass(frozen=True, eq=False)
class Cells:
    """The line cut at edges ``(n, m)``, and the distribution function F there and in the middle of each cell.

    Integrals of functions of F are taken cell by cell by Simpson's rule, with ``P(Y <= x)`` at the lower and ``P(Y < x)`` at
    the upper end. Smooth distributions come out to 1e-7 of their spread, those with kinks in F to 1e-4; values that have a
    probability of their own are exact where they are edges, and no quantile of more than 2.5 % is missed.
    """

    edges: np.ndarray
    upto: np.ndarray
    middle: np.ndarray
    below: np.ndarray

    @classmethod
    def of(cls, predictions: Distribution) -> Self:
        """The cells of all rows; needs ``cdf``, ``below`` and ``quantile``."""
        edges = edges_of(predictions)
        centres = (edges[:, 1:] + edges[:, :-1]) / 2
        upto, middle = (to_numpy(predictions.cdf(x.T)).T for x in (edges, centres))
        return cls(edges, upto, middle, to_numpy(predictions.below(edges.T)).T)

    def integrals(self, f: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
        """``integral f(x, F(x)) dx`` over each cell, ``(n, m - 1)``."""
        low, high = self.edges[:, :-1], self.edges[:, 1:]
        ends = f(low, self.upto[:, :-1]) + f(high, self.below[:, 1:])
        return (high - low) * (ends + 4 * f((low + high) / 2, self.middle)) / 6

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation, from ``E Y = r + integral_r (1 - F) - integral^r F`` and the like, r in the middle."""
        cells = self.edges.shape[1] - 1
        r = self.edges[:, [cells // 2]]
        upper = np.arange(cells) >= cells // 2
        first = self.integrals(lambda _, f: upper - f).sum(axis=1)
        second = self.integrals(lambda x, f: 2 * (x - r) * (upper - f)).sum(axis=1)
        return r[:, 0] + first, np.sqrt(np.maximum(second - first**2, 0))

    @cached_property
    def _sums(self) -> tuple[np.ndarray, np.ndarray]:
        """``integral F^2`` from the first edge to each, and ``integral (1 - F)^2`` from each to the last, ``(n, m)``."""
        zero = np.zeros((len(self.edges), 1))
        before = np.cumsum(self.integrals(lambda _, f: f**2), axis=1)
        after = np.cumsum(self.integrals(lambda _, f: (1 - f) ** 2)[:, ::-1], axis=1)[:, ::-1]
        return np.hstack([zero, before]), np.hstack([after, zero])

    def crps(self, predictions: Distribution, y: np.ndarray) -> np.ndarray:
        """``integral^y F^2 + integral_y (1 - F)^2`` for y ``(..., n)``, the cell of y cut in two."""
        found = self._edges_upto(y)
        rows = np.arange(y.shape[-1])
        first, last = np.maximum(found - 1, 0), np.minimum(found, self.edges.shape[1] - 1)
        low, high = np.minimum(self.edges[rows, first], y), np.maximum(self.edges[rows, last], y)
        left, right = (to_numpy(predictions.cdf((end + y) / 2)) for end in (low, high))
        before, after = self._sums
        lower = self.upto[rows, first] ** 2 + 4 * left**2 + to_numpy(predictions.below(y)) ** 2
        upper = (1 - to_numpy(predictions.cdf(y))) ** 2 + 4 * (1 - right) ** 2 + (1 - self.below[rows, last]) ** 2
        return before[rows, first] + after[rows, last] + ((y - low) * lower + (high - y) * upper) / 6

    def _edges_upto(self, y: np.ndarray) -> np.ndarray:
        """How many edges are at most y, by bisection in all rows at once."""
        n, m = self.edges.shape
        rows, found = np.arange(n), np.zeros(y.shape, dtype=np.intp)
        step = 1 << m.bit_length()
        while step := step // 2:
            ahead = found + step
            found = np.where((ahead <= m) & (self.edges[rows, np.minimum(ahead, m) - 1] <= y), ahead, found)
        return found


def has_levels(predictions: Distribution) -> bool:
    """Whether a family has a distribution function and quantiles."""
    median = predictions[:1].quantile(np.array([0.5]))
    return median is not NotImplemented and predictions[:1].cdf(median[:, 0]) is not NotImplemented


def moments_by_cells(predictions: Distribution) -> Any:
    """Mean and standard deviation of each row by integration, ``(n,)`` each; NotImplemented without levels.

    >>> from calibrant import Laplace
    >>> mean, std = moments_by_cells(Laplace([3.0], 1.0))
    >>> mean.round(6), std.round(3)
    (array([3.]), array([1.414]))
    """
    if not has_levels(predictions):
        return NotImplemented
    parts = [Cells.of(part).moments() for _, part in _chunks(predictions)]
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def crps_by_cells(predictions: Distribution, y: Array) -> Any:
    """The continuous ranked probability score of each row by integration; NotImplemented without levels.

    O(n m): three distribution functions an edge, and four a target.

    >>> from calibrant import Laplace
    >>> crps_by_cells(Laplace([3.0], 1.0), np.array([3.0])).round(6)
    array([0.25])
    """
    if not has_levels(predictions):
        return NotImplemented
    targets = to_numpy(y).astype(np.float64)
    parts = [Cells.of(part).crps(part, targets[..., rows]) for rows, part in _chunks(predictions)]
    return np.concatenate(parts, axis=-1)


def _chunks(predictions: Distribution) -> Iterator[tuple[slice, Distribution]]:
    """Some rows at a time."""
    size = max(1, CHUNK // edges_of(predictions[:1]).shape[1])
    for start in range(0, len(predictions), size):
        rows = slice(start, min(start + size, len(predictions)))
        yield rows, predictions[rows]
