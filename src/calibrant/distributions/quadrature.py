"""Integrals of distribution functions: moments, ranked scores and characteristic functions of any family, and its quantiles.

By parts, ``integral g dP = g(b) (F(b) - F(a)) - integral g' (F - F(a)) dx`` over a cell ``(a, b]``, so that single values with a
probability of their own need no care. The line is cut at quantiles and at kinks: every cell holds little probability and is
smooth inside. Eight Gauss-Legendre nodes a cell. Quantiles are found by bisection, to the last digit.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, singledispatch
from typing import Any, Self

import numpy as np

from calibrant._array import to_numpy
from calibrant.distributions.base import Distribution
from calibrant.distributions.empirical.ensemble import Ensemble
from calibrant.typing import Array


def least_reaching(
    cdf: Callable[[np.ndarray], np.ndarray], levels: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """The least number between ``low`` and ``high`` with ``cdf >= level``, ``(n, m)``, by bisection.

    ``cdf`` takes values ``(m, n)``; ends are ``(n, m)``, and levels are or ``(m,)``. At most 64 steps.

    >>> least_reaching(lambda y: y**2, np.array([0.25]), np.zeros((1, 1)), np.ones((1, 1)))
    array([[0.5]])
    """
    first, last = (ordered(np.asarray(end, dtype=np.float64)) for end in (low, high))
    while np.any(first < last):
        middle = (first & last) + ((first ^ last) >> 1)  # their mean, without overflow
        below = levels > cdf(ordered(middle).T).T
        first, last = np.where(below, middle + 1, first), np.where(below, last, middle)
    return ordered(last)


def ordered(x: np.ndarray) -> np.ndarray:
    """Double precision as whole numbers in the same order, and back: neighbours differ by one."""
    bits = x.view(np.int64)
    flipped = np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)
    return flipped if x.dtype == np.float64 else flipped.view(np.float64)


TAIL = np.array([1e-13, 1e-11, 1e-9, 1e-7, 1e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02])
LEVELS = np.concatenate([TAIL, np.arange(1, 32) / 32, 1 - TAIL[::-1]])
"""Levels of the quantiles that cut the line: parts of 1/32, and ever less in the tails."""

NODES, WEIGHTS = (part / 2 for part in np.polynomial.legendre.leggauss(8))
NODES = NODES + 0.5
"""On the unit interval."""

TURN = 12.0
"""Waves that turn farther than this within a cell are averaged as if it had an even density: such cells are far out."""

MAX_POINTS = 2000
"""Whole numbers that are edges themselves, where targets are counts."""

CHUNK = 1 << 18
"""Nodes at a time, few enough to stay in the cache."""


@singledispatch
def edges_of(predictions: Distribution) -> np.ndarray:
    """Where the line is cut, ``(n, m)``, rising along each row: quantiles and kinks, unless the family knows better places."""
    edges = to_numpy(predictions.quantile(LEVELS)).astype(np.float64)
    kinks = _whole_numbers(predictions, edges) if predictions.kinks is NotImplemented else predictions.kinks
    return np.sort(np.concatenate([edges, np.clip(kinks, edges[:, :1], edges[:, -1:])], axis=1), axis=1)


@edges_of.register
def _members(predictions: Ensemble) -> np.ndarray:
    return np.sort(to_numpy(predictions.members).astype(np.float64), axis=1)


def _whole_numbers(predictions: Distribution, edges: np.ndarray) -> np.ndarray:
    """All in the range of each row, where targets are counts and these are not too many; else none."""
    first = np.floor(edges[:, :1])
    most = int((np.ceil(edges[:, -1:]) - first).max()) + 1
    return first + np.arange(most if most <= MAX_POINTS and is_whole(predictions) else 0)


def is_whole(predictions: Distribution) -> bool:
    """Whether targets are whole numbers."""
    return predictions[:1].sample(np.random.default_rng(0), 1).dtype.kind in "iu"


@dataclass(frozen=True, eq=False)
class _Cells:
    """The line cut at ``edges`` ``(n, m)``, with ``P(Y <= x)`` and ``P(Y < x)`` there; nodes ``x`` in all cells, with the
    distribution function and the weights there, ``(n, m - 1, 8)`` each.

    Smooth distributions come out to 1e-10 of their spread; values that have a probability of their own are exact where
    they are edges, and no value of more than 3 % is missed.
    """

    edges: np.ndarray
    upto: np.ndarray
    below: np.ndarray
    x: np.ndarray
    levels: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, predictions: Distribution) -> Self:
        """The cells of all rows; needs ``cdf``, ``below`` and ``quantile``."""
        edges = edges_of(predictions)
        widths = np.diff(edges, axis=1)[..., None]
        x = edges[:, :-1, None] + widths * NODES
        levels = to_numpy(predictions.cdf(x.reshape(len(edges), -1).T)).T.reshape(x.shape)
        upto, below = (to_numpy(f(edges.T)).T for f in (predictions.cdf, predictions.below))
        return cls(edges, upto, below, x, levels, widths * WEIGHTS)

    def integral(self, f: np.ndarray) -> np.ndarray:
        """``integral f dx`` of each row, for values at the nodes."""
        return (self.weights * f).sum(axis=(1, 2))

    def moments(self, predictions: Distribution) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation, from ``E (Y - r)_+ = integral_r (1 - F)`` and the like, r the edge at the median.

        Beyond the last cells tails go on as powers of the distance from r, fitted to the decades before.
        """
        r = np.take_along_axis(self.edges, np.argmax(self.upto >= 0.5, axis=1)[:, None], axis=1)
        distance = self.x - r[..., None]
        tails = np.where(distance > 0, 1 - self.levels, self.levels)
        ends = to_numpy(predictions.quantile(np.array([TAIL[2], TAIL[0], 1 - TAIL[2], 1 - TAIL[0]]))) - r
        under, over = _far_tail(-ends[:, 0], -ends[:, 1]), _far_tail(ends[:, 2], ends[:, 3])
        first = self.integral(np.sign(distance) * tails) + over[0] - under[0]
        second = self.integral(2 * np.abs(distance) * tails) + over[1] + under[1]
        with np.errstate(invalid="ignore"):
            variance = np.where(np.isfinite(second), second - first**2, second)
        return r[:, 0] + first, np.sqrt(np.maximum(variance, 0))

    @cached_property
    def _sums(self) -> tuple[np.ndarray, np.ndarray]:
        """``integral F^2`` from the first edge to each, and ``integral (1 - F)^2`` from each to the last, ``(n, m)``."""
        zero = np.zeros((len(self.edges), 1))
        before, after = ((self.weights * f**2).sum(axis=2) for f in (self.levels, 1 - self.levels))
        after = np.cumsum(after[:, ::-1], axis=1)[:, ::-1]
        return np.hstack([zero, np.cumsum(before, axis=1)]), np.hstack([after, zero])

    def crps(self, predictions: Distribution, y: np.ndarray) -> np.ndarray:
        """``integral^y F^2 + integral_y (1 - F)^2`` for y ``(..., n)``, the cell of y cut in two."""
        found, rows = self._edges_upto(y), np.arange(y.shape[-1])
        first, last = np.maximum(found - 1, 0), np.minimum(found, self.edges.shape[1] - 1)
        low, high = np.minimum(self.edges[rows, first], y), np.maximum(self.edges[rows, last], y)
        before, after = self._sums
        score = before[rows, first] + after[rows, last]
        for node, weight in zip(NODES, WEIGHTS, strict=True):
            left, right = (to_numpy(predictions.cdf(a + node * (b - a))) for a, b in ((low, y), (y, high)))
            score = score + weight * ((y - low) * left**2 + (high - y) * (1 - right) ** 2)
        return score

    def _edges_upto(self, y: np.ndarray) -> np.ndarray:
        """How many edges are at most y, by bisection in all rows at once."""
        n, m = self.edges.shape
        rows, found = np.arange(n), np.zeros(y.shape, dtype=np.intp)
        step = 1 << m.bit_length()
        while step := step // 2:
            ahead = found + step
            found = np.where((ahead <= m) & (self.edges[rows, np.minimum(ahead, m) - 1] <= y), ahead, found)
        return found

    def cf(self, w: np.ndarray) -> np.ndarray:
        """``E exp(i w Y)``, complex, ``(n, len(w))``."""
        at_edges = np.exp(1j * w * self.edges[:, :, None])
        total = self.upto[:, :1] * at_edges[:, 0] + (1 - self.upto[:, -1:]) * at_edges[:, -1]
        for j in range(self.x.shape[1]):
            inside = self.weights[:, j] * (self.levels[:, j] - self.upto[:, [j]])
            terms = (inside[:, [k]] * np.exp(1j * w * self.x[:, j, [k]]) for k in range(len(NODES)))
            mass = self.upto[:, [j + 1]] - self.upto[:, [j]]
            values = mass * at_edges[:, j + 1] - 1j * w * sum(terms)
            width = self.edges[:, [j + 1]] - self.edges[:, [j]]
            if np.abs(w).max() * width.max() > TURN:
                jump = self.upto[:, [j + 1]] - self.below[:, [j + 1]]
                middle = np.exp(1j * w * (self.edges[:, [j]] + width / 2))
                even = (mass - jump) * middle * np.sinc(w * width / (2 * np.pi)) + jump * at_edges[:, j + 1]
                values = np.where(np.abs(w * width) > TURN, even, values)
            total = total + values
        return total


def _far_tail(near: np.ndarray, far: np.ndarray) -> list[np.ndarray]:
    """What a tail leaves to the first two moments beyond the distance ``far``, where it is ``TAIL[0]``."""
    with np.errstate(divide="ignore", invalid="ignore"):
        power = np.log(TAIL[2] / TAIL[0]) / np.log(far / near)
        parts = [np.where(power > k, TAIL[0] * k * far**k / (power - k), np.inf) for k in (1, 2)]
    return [np.where((far > near) & (near > 0), part, 0.0) for part in parts]


def has_levels(predictions: Distribution) -> bool:
    """Whether a family has a distribution function and quantiles."""
    median = predictions[:1].quantile(np.array([0.5]))
    return median is not NotImplemented and predictions[:1].cdf(median[:, 0]) is not NotImplemented


def moments_by_cells(predictions: Distribution) -> Any:
    """Mean and standard deviation of each row by integration, ``(n,)`` each; NotImplemented without levels.

    >>> from calibrant import Laplace
    >>> mean, std = moments_by_cells(Laplace([3.0], 1.0))
    >>> mean.round(9), std.round(9)
    (array([3.]), array([1.41421356]))
    """
    if not has_levels(predictions):
        return NotImplemented
    parts = [_Cells.of(part).moments(part) for _, part in _chunks(predictions)]
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def crps_by_cells(predictions: Distribution, y: Array) -> Any:
    """The continuous ranked probability score of each row by integration; NotImplemented without levels.

    O(n m): ten distribution functions an edge, and sixteen a target.

    >>> from calibrant import Laplace
    >>> crps_by_cells(Laplace([3.0], 1.0), np.array([3.0])).round(9)
    array([0.25])
    """
    if not has_levels(predictions):
        return NotImplemented
    targets = to_numpy(y).astype(np.float64)
    parts = [_Cells.of(part).crps(part, targets[..., rows]) for rows, part in _chunks(predictions)]
    return np.concatenate(parts, axis=-1)


def cf_by_cells(predictions: Distribution, w: Array) -> Any:
    """Real and imaginary part of ``E exp(i w Y)`` by integration, ``(n, m)`` each; NotImplemented without levels.

    >>> from calibrant import Laplace
    >>> cf_by_cells(Laplace([0.0], 1.0), np.array([2.0]))[0].round(6)
    array([[0.2]])
    """
    if not has_levels(predictions):
        return NotImplemented
    values = np.concatenate([_Cells.of(part).cf(to_numpy(w)) for _, part in _chunks(predictions)])
    return values.real, values.imag


def _chunks(predictions: Distribution) -> Iterator[tuple[slice, Distribution]]:
    """Some rows at a time."""
    size = max(1, CHUNK // (edges_of(predictions[:1]).shape[1] * len(NODES)))
    for start in range(0, len(predictions), size):
        rows = slice(start, min(start + size, len(predictions)))
        yield rows, predictions[rows]
