"""Distribution functions that are straight between nodes, and predictions given by probabilities of bins."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from calibrant._array import is_array, is_traced, matched, namespace, to_numpy
from calibrant._validate import RANGE_SLACK, SUM_SLACK, InputError, as_array, as_probabilities, check_same_length
from calibrant.distributions.base import Distribution, one_a_row
from calibrant.distributions.empirical.ensemble import counted
from calibrant.results import how_many
from calibrant.typing import Array, ArrayLike


class Pieces(NamedTuple):
    """A distribution function through ``(nodes, levels)``, ``(n, m)`` each, with tails of these ``scales``, ``(n, 2)``.

    ``F(y) = levels_0 exp((y - nodes_0) / scale)`` below the first node, and likewise above the last. Where a scale is
    zero, what is left there is the probability of the node itself; where neighbouring nodes are equal, what lies between
    their levels is.
    """

    nodes: Array
    levels: Array
    scales: Array

    @property
    def lower(self) -> tuple[Array, Array, Array]:
        """Node, probability and scale of the lower tail, ``(n,)`` each."""
        return self.nodes[:, 0], self.levels[:, 0], self.scales[:, 0]

    @property
    def upper(self) -> tuple[Array, Array, Array]:
        """Node, probability and scale of the upper tail, ``(n,)`` each."""
        return self.nodes[:, -1], 1 - self.levels[:, -1], self.scales[:, 1]


def parts_of(nodes: Array, levels: Array, scales: Array) -> tuple[Array, Array, Array]:
    """Probability, mean and standard deviation of the lower tail, the pieces and the upper tail, ``(n, m + 1)`` each."""
    xp = namespace(nodes)
    levels = nodes * 0 + levels
    mass = xp.concat([levels[:, :1], levels[:, 1:] - levels[:, :-1], 1 - levels[:, -1:]], axis=1)
    first, last = nodes[:, :1] - scales[:, :1], nodes[:, -1:] + scales[:, 1:]
    middle = xp.concat([first, (nodes[:, 1:] + nodes[:, :-1]) / 2, last], axis=1)
    width = (nodes[:, 1:] - nodes[:, :-1]) / 12**0.5
    return mass, middle, xp.concat([scales[:, :1], width, scales[:, 1:]], axis=1)


def _around(pieces: Pieces, cell: np.ndarray) -> list[Any]:
    """Nodes and levels at both ends of the piece of each target; in tails, of the nearest piece."""
    n, m = pieces.nodes.shape
    right = np.arange(n) * m + np.clip(cell, 1, m - 1)
    return [_gathered(part, right - step) for part in (pieces.nodes, pieces.levels) for step in (1, 0)]


def _gathered(x: Array, index: np.ndarray) -> Array:
    """The elements of an array with these numbers, in its library."""
    xp = namespace(x)
    return xp.reshape(xp.take(xp.reshape(x, (-1,)), matched(index.reshape(-1), x), axis=0), index.shape)


def _decay(distance: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """``exp(-distance / scale)``, at distances that are not negative; zero where there is no scale."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(scale > 0, np.exp(-np.maximum(distance, 0) / scale), 0.0)


def level(pieces: Pieces, y: np.ndarray, compare: Any) -> np.ndarray:
    """``P(Y <= y)`` by ``less_equal``, ``P(Y < y)`` by ``less``."""
    cell = counted(pieces.nodes, y, compare)
    left, right, low, high = _around(pieces, cell)
    width = right - left
    share = np.clip((y - left) / np.where(width > 0, width, 1), 0, 1)
    inside = np.where(share == 1, high, low + share * (high - low))  # without a rounding at the nodes
    (first, mass, scale), (last, rest, beyond) = pieces.lower, pieces.upper
    left_over = _decay(y - last, beyond)
    upper = np.where(left_over == 1, pieces.levels[:, -1], 1 - rest * left_over)
    lower = mass * _decay(first - y, scale)
    return np.where(cell == 0, lower, np.where(cell == pieces.nodes.shape[1], upper, inside))


def density(pieces: Pieces, y: np.ndarray) -> np.ndarray:
    """The slope of the distribution function on the right of y; on the left at the upper end of all."""
    cell, m = counted(pieces.nodes, y, np.less_equal), pieces.nodes.shape[1]
    (first, mass, scale), (last, rest, beyond) = pieces.lower, pieces.upper
    cell = np.where((y == last) & (rest == 0), m - 1, cell)
    left, right, low, high = _around(pieces, cell)
    inside = (high - low) / np.where(right > left, right - left, 1)
    tails = [
        weight * _decay(distance, width) / np.where(width > 0, width, 1)
        for weight, distance, width in ((mass, first - y, scale), (rest, y - last, beyond))
    ]
    return np.where(cell == 0, tails[0], np.where(cell == m, tails[1], inside))


def inverse(pieces: Pieces, u: np.ndarray, levels: np.ndarray) -> Array:
    """The least value of each row with ``F >= u``, for u ``(..., n)``, in the library of the nodes; levels are on the host."""
    xp, cell, m = namespace(pieces.nodes), counted(levels, u, np.less), levels.shape[1]
    is_below, is_above, u = (matched(part, pieces.nodes) for part in (cell == 0, cell == m, u))
    left, right, low, high = _around(pieces, cell)
    rise = xp.where(high > low, high - low, xp.ones_like(high))
    inside = left + xp.clip((u - low) / rise, 0.0, 1.0) * (right - left)
    (first, mass, scale), (last, rest, beyond) = pieces.lower, pieces.upper
    below = first + scale * _log(u, mass, is_below & (scale > 0))
    above = last - beyond * _log(1 - u, rest, is_above & (beyond > 0))
    return xp.where(is_below, below, xp.where(is_above, above, inside))


def _log(part: Array, whole: Array, is_needed: Array) -> Array:
    """``log(part / whole)`` where it is needed, zero elsewhere."""
    xp = namespace(part, whole)
    ratio = xp.where(is_needed, part / xp.where(whole > 0, whole, xp.ones_like(whole)), xp.ones_like(part + whole))
    with np.errstate(divide="ignore"):  # the levels 0 and 1 are infinitely far
        return xp.where(is_needed & (whole > 0), xp.log(ratio), xp.zeros_like(ratio))


def crps(pieces: Pieces, y: np.ndarray) -> np.ndarray:
    """Integrals of ``F^2`` below the target and of ``(1 - F)^2`` above it: up to the nodes, and in the piece it cuts."""
    nodes, m = pieces.nodes, pieces.nodes.shape[1]
    (first, mass, scale), (last, rest, beyond) = pieces.lower, pieces.upper
    width, levels = np.diff(nodes, axis=1), pieces.levels
    under = np.cumsum(np.c_[mass**2 * scale / 2, _square(width, levels[:, :-1], levels[:, 1:])], axis=1)
    over = np.cumsum(
        np.c_[rest**2 * beyond / 2, _square(width, 1 - levels[:, :-1], 1 - levels[:, 1:])[:, ::-1]], axis=1
    )
    cell, rows = counted(nodes, y, np.less_equal), np.arange(len(nodes))
    left, right, low, high = _around(pieces, cell)
    at = np.clip(cell, 1, m - 1)
    at_y = level(pieces, y, np.less_equal)
    inside = under[rows, at - 1] + _square(y - left, low, at_y)
    inside = inside + over[rows, m - 1 - at] + _square(right - y, 1 - at_y, 1 - high)
    below = over[:, -1] + _beyond(np.maximum(first - y, 0), mass, scale)
    above = under[:, -1] + _beyond(np.maximum(y - last, 0), rest, beyond)
    return np.where(cell == 0, below, np.where(cell == m, above, inside))


def _square(width: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The integral of the square of a straight line."""
    return width * (start**2 + start * end + end**2) / 3


def _beyond(distance: np.ndarray, mass: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """A target in a tail, so far from the node: the tail squared outside of it, its complement squared on the way."""
    decay = _decay(distance, scale)
    return distance - 2 * mass * scale * (1 - decay) + mass**2 * scale / 2


SLICES = 64
"""Quantiles that stand for a prediction among its coordinates."""

MIN_LEVEL = 2.0**-54
"""Draws have no level of zero, where tails are infinite."""


class Piecewise(Distribution):
    """A batch of real predictions, each a mixture of uniform pieces, single values and exponential tails."""

    @property
    @abstractmethod
    def shape(self) -> tuple[Array, Array, Array]:
        """Nodes ``(n, m)``, levels ``(n, m)`` or ``(m,)`` and scales ``(n, 2)``, in the library of the predictions."""

    @cached_property
    def pieces(self) -> Pieces:
        """The same on the host, in double precision."""
        nodes, levels, scales = (to_numpy(part).astype(np.float64) for part in self.shape)
        return Pieces(nodes, np.broadcast_to(levels, nodes.shape), scales)

    def __len__(self) -> int:
        return int(self.shape[0].shape[0])

    def as_targets(self, y_true: ArrayLike) -> Array:
        """Real numbers, ``(n,)``."""
        return matched(one_a_row(y_true, "y_true"), self.shape[0])

    @property
    def kinks(self) -> np.ndarray:
        """The nodes."""
        return self.pieces.nodes

    def cdf(self, y: Array) -> Array:
        """``P(Y <= y)``."""
        return level(self.pieces, to_numpy(y), np.less_equal)

    def below(self, y: Array) -> Array:
        """``P(Y < y)``, less than the cdf at single values with a probability of their own."""
        return level(self.pieces, to_numpy(y), np.less)

    def log_prob(self, targets: Array) -> Array:
        """Log density; at single values with a probability of their own, the logarithm of that probability.

        A density that jumps has its value on the right, but at the upper end of all.
        """
        y = to_numpy(targets)
        mass = self.cdf(y) - self.below(y)
        with np.errstate(divide="ignore"):
            return np.log(np.where(mass > 0, mass, density(self.pieces, y)))

    def quantile(self, u: Array) -> Array:
        """Values ``(n, m)`` at the levels u: the least with ``cdf >= u``."""
        levels, pieces = np.broadcast_to(to_numpy(u)[:, None], (len(u), len(self))), self.pieces
        empty = (pieces.levels == 0).sum(axis=1)  # pieces at the lower end that are no part of the range
        first = pieces.nodes[np.arange(len(self)), np.maximum(empty - 1, 0)]
        return np.where((levels == 0) & (empty > 0), first, self.at(levels)).T

    def at(self, u: np.ndarray) -> np.ndarray:
        """Values at levels ``(..., n)`` of each row."""
        return inverse(self.pieces, u, self.pieces.levels)

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draws ``(size, n)``: values at random levels."""
        return self.at(np.maximum(rng.random((size, len(self))), MIN_LEVEL))

    @property
    def coords(self) -> Array:
        """Quantiles in the middle of ``SLICES`` slices over the root of their number: nearly the Wasserstein distance W2."""
        nodes, levels, scales = self.shape
        u = np.repeat((np.arange(SLICES)[:, None] + 0.5) / SLICES, len(self), axis=1)
        values = inverse(Pieces(nodes, nodes * 0 + levels, scales), u, self.pieces.levels)
        return namespace(values).permute_dims(values, (1, 0)) / SLICES**0.5

    @property
    def mean(self) -> Array:
        """Mean of each row."""
        mass, middle, _ = self._parts
        return (mass * middle).sum(axis=1)

    @property
    def std(self) -> Array:
        """Standard deviation of each row."""
        mass, middle, spread = self._parts
        centred = middle - (mass * middle).sum(axis=1, keepdims=True)
        return np.sqrt((mass * (centred**2 + spread**2)).sum(axis=1))

    @property
    def _parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Probability, mean and standard deviation of tails and pieces, lowest first, ``(n, m + 1)`` each."""
        return tuple(to_numpy(part) for part in parts_of(*self.pieces))  # type: ignore[return-value]

    def crps(self, y: Array) -> Array:
        """``integral (F(x) - [y <= x])^2 dx``, added up exactly over the pieces."""
        return crps(self.pieces, to_numpy(y))

    def cf(self, w: Array) -> tuple[Array, Array]:
        """Added up exactly: ``exp(i w middle) sinc`` of pieces, ``exp(i w node) / (1 +- i w scale)`` of tails."""
        nodes, levels, scales = self.shape
        xp, w = namespace(nodes), matched(w, nodes)
        mass, _, _ = parts_of(nodes, levels, scales)
        real, imaginary = _tail_cf(xp, nodes[:, 0], -scales[:, 0], w, mass[:, 0])
        for j in range(1, nodes.shape[1]):
            middle = (nodes[:, j - 1] + nodes[:, j]) / 2
            half = w[None, :] * ((nodes[:, j] - nodes[:, j - 1]) / 2)[:, None]
            small = xp.abs(half) < 1e-4
            safe = xp.where(small, xp.ones_like(half), half)
            size = mass[:, j][:, None] * xp.where(small, 1 - half**2 / 6, xp.sin(safe) / safe)
            phase = middle[:, None] * w[None, :]
            real, imaginary = real + size * xp.cos(phase), imaginary + size * xp.sin(phase)
        last = _tail_cf(xp, nodes[:, -1], scales[:, 1], w, mass[:, -1])
        return real + last[0], imaginary + last[1]


def _tail_cf(xp: Any, node: Array, scale: Array, w: Array, mass: Array) -> tuple[Array, Array]:
    """``mass exp(i w node) / (1 - i w scale)``; the scale of a lower tail is negative."""
    turn, phase = w[None, :] * scale[:, None], w[None, :] * node[:, None]
    size = mass[:, None] / (1 + turn**2)
    cos, sin = xp.cos(phase), xp.sin(phase)
    return size * (cos - turn * sin), size * (sin + turn * cos)


@dataclass(frozen=True, eq=False)
class Histogram(Piecewise):
    """Probabilities ``probs`` ``(n, m)`` of m bins, each with an even density, between ``edges`` ``(m + 1,)`` or ``(n, m + 1)``.

    The outer edges may be infinite: an open bin is an exponential tail whose scale is the width of the bin beside it.
    Rows may miss one by rounding (up to 1e-3) and are normalised. Coordinates are 64 quantiles: their Euclidean distance
    is nearly the Wasserstein distance W2. All else is exact; O(m) per row.

    >>> rain = Histogram([0.0, 1.0, 5.0, np.inf], [[0.5, 0.4, 0.1], [0.1, 0.3, 0.6]])
    >>> rain.cdf(np.array([3.0, 5.0]))
    array([0.7, 0.4])
    >>> rain.mean
    array([2.35, 6.35])
    """

    edges: Array
    probs: Array

    def __post_init__(self) -> None:
        probs = as_probabilities(self.probs, "probs")
        if probs.ndim != 2:
            raise InputError(f"probs must be (n, m), a column per bin; got shape {tuple(probs.shape)}")
        _check_sums(probs)
        object.__setattr__(self, "probs", probs)
        object.__setattr__(self, "edges", _checked_edges(self.edges, probs))

    @classmethod
    def from_cdf(cls, grid: ArrayLike, cdf: ArrayLike) -> Self:
        """Distribution functions ``(n, m)`` at values ``(m,)`` or ``(n, m)``, joined by straight lines.

        What they leave below the first and above the last value is in open bins.

        >>> Histogram.from_cdf([0.0, 1.0, 2.0], [[0.0, 0.5, 1.0], [0.2, 0.5, 0.9]]).edges
        array([-inf,   0.,   1.,   2.,  inf])
        """
        levels = as_probabilities(cdf, "cdf")
        if levels.ndim != 2:
            raise InputError(f"cdf must be (n, m), a column a value of the grid; got shape {tuple(levels.shape)}")
        xp, host = namespace(levels), to_numpy(levels)
        falls = np.diff(host, axis=1) < -RANGE_SLACK
        if falls.any():
            row, place = (int(i) for i in np.argwhere(falls)[0])
            raise InputError(
                f"cdf must not fall; in row {row} {host[row, place + 1]:g} comes after {host[row, place]:g}"
            )
        probs = xp.concat(
            [levels[:, :1], xp.clip(levels[:, 1:] - levels[:, :-1], 0.0, 1.0), 1 - levels[:, -1:]], axis=1
        )
        edges = to_numpy(as_array(grid, "grid")).astype(np.float64)
        if edges.ndim not in (1, 2) or edges.shape[-1] != levels.shape[1]:
            raise InputError(f"grid must be ({levels.shape[1]},) or (n, {levels.shape[1]}); got shape {edges.shape}")
        inner = slice(0 if host[:, 0].any() else 1, None if (host[:, -1] < 1).any() else -1)
        ends = [np.full((*edges.shape[:-1], 1), end) for end in (-np.inf, np.inf)]
        return cls(np.concatenate([ends[0], edges, ends[1]], axis=-1)[..., inner], probs[:, inner])

    @classmethod
    def _trusted(cls, edges: Array, probs: Array) -> Self:
        self = object.__new__(cls)
        object.__setattr__(self, "edges", edges)
        object.__setattr__(self, "probs", probs)
        return self

    def __getitem__(self, rows: slice | Array) -> Self:
        edges = self.edges if self.edges.ndim == 1 else self.edges[rows, :]
        return self._trusted(edges, self.probs[rows, :])

    def __repr__(self) -> str:
        return f"<Histogram: {how_many(len(self), 'prediction')} of {how_many(self.probs.shape[1], 'bin')}>"

    @property
    def parameters(self) -> list[Array]:
        """The probabilities, and the edges where each row has its own."""
        return [self.probs] if self.edges.ndim == 1 else [self.probs, self.edges]

    @property
    def position(self) -> Array:
        """The lowest finite edges."""
        return self.shape[0][:, 0]

    def shifted(self, by: float) -> Self:
        """All edges moved."""
        return self._trusted(self.edges + by, self.probs)

    @cached_property
    def shape(self) -> tuple[Array, Array, Array]:
        """Finite edges, what is below them, and the widths of the outer finite bins where the bins beyond are open."""
        xp, probs = namespace(self.probs), self.probs
        n, m = probs.shape
        is_open = [not np.isfinite(to_numpy(self.edges)[..., end].flat[0]) for end in (0, -1)]
        inner = slice(int(is_open[0]), m + 1 - int(is_open[1]))
        nodes = xp.broadcast_to(
            xp.astype(matched(self.edges, probs), probs.dtype)[..., inner], (n, inner.stop - inner.start)
        )
        sums = xp.cumulative_sum(probs, axis=1, include_initial=True)
        levels = (sums / sums[:, -1:])[:, inner]
        widths = nodes[:, 1] - nodes[:, 0], nodes[:, -1] - nodes[:, -2]
        scales = [width if wide else 0 * width for width, wide in zip(widths, is_open, strict=True)]
        return nodes, levels, xp.stack(scales, axis=1)

    def point(self, y: Array) -> Self:
        """A bin without width."""
        xp, y = namespace(self.probs), matched(y, self.probs)
        both = xp.astype(xp.stack([y, y], axis=1), self.probs.dtype)
        return self._trusted(both, xp.ones_like(both[:, :1]))

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Four bins around 0, the last one open."""
        return cls([-2.0, -0.5, 0.3, 1.5, np.inf], rng.dirichlet(np.full(4, 3.0), n))


def _check_sums(probs: Array) -> None:
    """Refuse rows that do not sum to one."""
    if is_traced(probs):
        return
    total = to_numpy(probs).astype(np.float64).sum(axis=1)
    row = int(np.abs(total - 1).argmax())
    if abs(total[row] - 1) > SUM_SLACK:
        raise InputError(
            f"probs rows must sum to 1 (within {SUM_SLACK:g}); row {row} sums to {total[row]:.6g}: divide by the sums, "
            "or add open bins with infinite edges for what is missing"
        )


def _checked_edges(x: ArrayLike, probs: Array) -> Array:
    """Edges that increase, the outer ones finite or not."""
    edges = as_array(x, "edges")
    n, m = probs.shape
    host = to_numpy(edges)
    if host.ndim not in (1, 2) or host.shape[-1] != m + 1 or host.dtype.kind not in "fiu":
        raise InputError(
            f"edges must be ({m + 1},) or (n, {m + 1}) numbers, one more than bins; got shape {host.shape}"
        )
    if host.ndim == 2:
        check_same_length(len(host), n, "edges", "probs")
    table = np.atleast_2d(host.astype(np.float64))
    outer = np.isinf(table) & (np.arange(m + 1) == np.where(table > 0, m, 0))
    with np.errstate(invalid="ignore"):
        steps = np.diff(table, axis=1) > 0
    bad = ~(np.isfinite(table) | outer) | np.c_[np.zeros(len(table), dtype=bool), ~steps]
    if bad.any():
        row, place = (int(i) for i in np.argwhere(bad)[0])
        where = f" of row {row}" if host.ndim == 2 else ""
        raise InputError(
            f"edges must increase, and only the outer ones may be infinite; found {table[row, place]:g} at place {place}{where}"
        )
    if m + 1 - outer[0].sum() < 2:
        raise InputError("edges: at least one bin must have two finite edges")
    if (outer != outer[0]).any():
        raise InputError("edges: outer bins must be open in every row or in none")
    return edges if is_array(x) and not isinstance(x, np.ndarray) else host.astype(np.float64)
