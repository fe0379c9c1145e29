"""Distribution functions that are straight between nodes, with exponential tails: their levels, values, densities and scores."""

from typing import Any, NamedTuple

import numpy as np

from calibrant._array import namespace
from calibrant.distributions.base import matched
from calibrant.distributions.member_lists import counted
from calibrant.typing import Array


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
