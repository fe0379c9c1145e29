"""What families share whose distribution function is straight between nodes: quantiles and histograms."""

from abc import abstractmethod
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from calibrant._array import namespace, to_numpy
from calibrant.distributions.base import Distribution, matched, real_targets
from calibrant.typing import Array, ArrayLike

LEAST_LEVEL = 2.0**-54
"""Draws have no level of zero, where tails are infinite."""


class Pieces(NamedTuple):
    """A distribution function through ``(nodes, levels)``, ``(n, m)`` each, with tails of these ``scales``, ``(n, 2)``.

    ``F(y) = levels_0 exp((y - nodes_0) / scale)`` below the first node, and likewise above the last. Where a scale is
    zero, what is left there is the probability of the node itself; where neighbouring nodes are equal, what lies between
    their levels is.
    """

    nodes: np.ndarray
    levels: np.ndarray
    scales: np.ndarray

    @property
    def lower(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Node, probability and scale of the lower tail, ``(n,)`` each."""
        return self.nodes[:, 0], self.levels[:, 0], self.scales[:, 0]

    @property
    def upper(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Node, probability and scale of the upper tail, ``(n,)`` each."""
        return self.nodes[:, -1], 1 - self.levels[:, -1], self.scales[:, 1]


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
        return matched(real_targets(y_true), self.shape[0])

    @property
    def kinks(self) -> np.ndarray:
        """The nodes."""
        return self.pieces.nodes

    def cdf(self, y: Array) -> Array:
        """``P(Y <= y)``."""
        return _level(self.pieces, to_numpy(y), np.less_equal)

    def below(self, y: Array) -> Array:
        """``P(Y < y)``, less than the cdf at single values with a probability of their own."""
        return _level(self.pieces, to_numpy(y), np.less)

    def log_prob(self, targets: Array) -> Array:
        """Log density; at single values with a probability of their own, the logarithm of that probability.

        A density that jumps has its value on the right, but at the upper end of all.
        """
        y = to_numpy(targets)
        mass = self.cdf(y) - self.below(y)
        density = _density(self.pieces, y)
        with np.errstate(divide="ignore"):
            return np.log(np.where(mass > 0, mass, density))

    def quantile(self, u: Array) -> Array:
        """Values ``(n, m)`` at the levels u: the least with ``cdf >= u``."""
        levels = to_numpy(u)
        return _inverse(self.pieces, np.broadcast_to(levels[:, None], (len(levels), len(self)))).T

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draws ``(size, n)``: values at random levels."""
        return _inverse(self.pieces, np.maximum(rng.random((size, len(self))), LEAST_LEVEL))

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
        return _crps(self.pieces, to_numpy(y))

    def cf(self, w: Array) -> tuple[Array, Array]:
        """Added up exactly: ``exp(i w middle) sinc`` of pieces, ``exp(i w node) / (1 +- i w scale)`` of tails."""
        nodes, levels, scales = self.shape
        xp, w = namespace(nodes), matched(w, nodes)
        mass, _, _ = parts_of(nodes, levels, scales)
        real, imaginary = _tail_waves(xp, nodes[:, 0], -scales[:, 0], w, mass[:, 0])
        for j in range(1, nodes.shape[1]):
            middle = (nodes[:, j - 1] + nodes[:, j]) / 2
            half = w[None, :] * ((nodes[:, j] - nodes[:, j - 1]) / 2)[:, None]
            small = xp.abs(half) < 1e-4
            safe = xp.where(small, xp.ones_like(half), half)
            size = mass[:, j][:, None] * xp.where(small, 1 - half**2 / 6, xp.sin(safe) / safe)
            phase = middle[:, None] * w[None, :]
            real, imaginary = real + size * xp.cos(phase), imaginary + size * xp.sin(phase)
        last = _tail_waves(xp, nodes[:, -1], scales[:, 1], w, mass[:, -1])
        return real + last[0], imaginary + last[1]


def parts_of(nodes: Array, levels: Array, scales: Array) -> tuple[Array, Array, Array]:
    """Probability, mean and standard deviation of the lower tail, the pieces and the upper tail, ``(n, m + 1)`` each."""
    xp = namespace(nodes)
    levels = nodes * 0 + levels
    mass = xp.concat([levels[:, :1], levels[:, 1:] - levels[:, :-1], 1 - levels[:, -1:]], axis=1)
    first, last = nodes[:, :1] - scales[:, :1], nodes[:, -1:] + scales[:, 1:]
    middle = xp.concat([first, (nodes[:, 1:] + nodes[:, :-1]) / 2, last], axis=1)
    width = (nodes[:, 1:] - nodes[:, :-1]) / 12**0.5
    return mass, middle, xp.concat([scales[:, :1], width, scales[:, 1:]], axis=1)


def _tail_waves(xp: Any, node: Array, scale: Array, w: Array, mass: Array) -> tuple[Array, Array]:
    """``mass exp(i w node) / (1 - i w scale)``; the scale of a lower tail is negative."""
    turn, phase = w[None, :] * scale[:, None], w[None, :] * node[:, None]
    size = mass[:, None] / (1 + turn**2)
    cos, sin = xp.cos(phase), xp.sin(phase)
    return size * (cos - turn * sin), size * (sin + turn * cos)


def _cell(nodes: np.ndarray, y: np.ndarray, compare: Any) -> np.ndarray:
    """How many nodes of each row are below y, by this comparison; y may have leading axes."""
    found = np.zeros(np.broadcast_shapes(y.shape, nodes.shape[:1]), dtype=np.intp)
    for node in nodes.T:  # one node after the other, so that memory does not grow with them
        found += compare(node, y)
    return found


def _around(pieces: Pieces, cell: np.ndarray) -> list[np.ndarray]:
    """Nodes and levels at both ends of the piece of each target; in tails, of the nearest piece."""
    rows = np.arange(len(pieces.nodes))
    right = np.clip(cell, 1, pieces.nodes.shape[1] - 1)
    return [part[rows, right - step] for part in (pieces.nodes, pieces.levels) for step in (1, 0)]


def _decay(distance: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """``exp(-distance / scale)``, at distances that are not negative; zero where there is no scale."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(scale > 0, np.exp(-np.maximum(distance, 0) / scale), 0.0)


def _level(pieces: Pieces, y: np.ndarray, compare: Any) -> np.ndarray:
    """``P(Y <= y)`` by ``less_equal``, ``P(Y < y)`` by ``less``."""
    cell = _cell(pieces.nodes, y, compare)
    left, right, low, high = _around(pieces, cell)
    width = right - left
    share = np.clip((y - left) / np.where(width > 0, width, 1), 0, 1)
    inside = np.where(share == 1, high, low + share * (high - low))  # without a rounding at the nodes
    (first, mass, scale), (last, rest, beyond) = pieces.lower, pieces.upper
    tails = mass * _decay(first - y, scale), 1 - rest * _decay(y - last, beyond)
    return np.where(cell == 0, tails[0], np.where(cell == pieces.nodes.shape[1], tails[1], inside))


def _density(pieces: Pieces, y: np.ndarray) -> np.ndarray:
    """The slope of the distribution function on the right of y; on the left at the upper end of all."""
    cell, m = _cell(pieces.nodes, y, np.less_equal), pieces.nodes.shape[1]
    (first, mass, scale), (last, rest, beyond) = pieces.lower, pieces.upper
    cell = np.where((y == last) & (rest == 0), m - 1, cell)
    left, right, low, high = _around(pieces, cell)
    inside = (high - low) / np.where(right > left, right - left, 1)
    tails = [
        weight * _decay(distance, width) / np.where(width > 0, width, 1)
        for weight, distance, width in ((mass, first - y, scale), (rest, y - last, beyond))
    ]
    return np.where(cell == 0, tails[0], np.where(cell == m, tails[1], inside))


def _inverse(pieces: Pieces, u: np.ndarray) -> np.ndarray:
    """The least value of each row with ``F >= u``, for levels u ``(..., n)``."""
    cell, m = _cell(pieces.levels, u, np.less), pieces.nodes.shape[1]
    left, right, low, high = _around(pieces, cell)
    share = (u - low) / np.where(high > low, high - low, 1)
    inside = left + np.clip(share, 0, 1) * (right - left)
    (first, mass, scale), (last, rest, beyond) = pieces.lower, pieces.upper
    with np.errstate(divide="ignore", invalid="ignore"):
        below = first + np.where((mass > 0) & (scale > 0), scale * np.log(u / mass), 0.0)
        above = last - np.where((rest > 0) & (beyond > 0), beyond * np.log((1 - u) / rest), 0.0)
    return np.where(cell == 0, below, np.where(cell == m, above, inside))


def _crps(pieces: Pieces, y: np.ndarray) -> np.ndarray:
    """Integrals of ``F^2`` below the target and of ``(1 - F)^2`` above it: up to the nodes, and in the piece it cuts."""
    nodes, m = pieces.nodes, pieces.nodes.shape[1]
    (first, mass, scale), (last, rest, beyond) = pieces.lower, pieces.upper
    width, levels = np.diff(nodes, axis=1), pieces.levels
    under = np.cumsum(np.c_[mass**2 * scale / 2, _square(width, levels[:, :-1], levels[:, 1:])], axis=1)
    over = np.cumsum(
        np.c_[rest**2 * beyond / 2, _square(width, 1 - levels[:, :-1], 1 - levels[:, 1:])[:, ::-1]], axis=1
    )
    cell, rows = _cell(nodes, y, np.less_equal), np.arange(len(nodes))
    left, right, low, high = _around(pieces, cell)
    at = np.clip(cell, 1, m - 1)
    level = _level(pieces, y, np.less_equal)
    inside = under[rows, at - 1] + _square(y - left, low, level)
    inside = inside + over[rows, m - 1 - at] + _square(right - y, 1 - level, 1 - high)
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
