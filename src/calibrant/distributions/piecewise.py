"""What families share whose distribution function is straight between nodes: quantiles and histograms."""

from abc import abstractmethod
from functools import cached_property
from typing import Any

import numpy as np

from calibrant._array import namespace, to_numpy
from calibrant.distributions.base import Distribution, matched, one_a_row
from calibrant.distributions.pieces import Pieces, crps, density, inverse, level, parts_of
from calibrant.typing import Array, ArrayLike

SLICES = 64
"""Quantiles that stand for a prediction among its coordinates."""

LEAST_LEVEL = 2.0**-54
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
        return self.at(np.maximum(rng.random((size, len(self))), LEAST_LEVEL))

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


def _tail_waves(xp: Any, node: Array, scale: Array, w: Array, mass: Array) -> tuple[Array, Array]:
    """``mass exp(i w node) / (1 - i w scale)``; the scale of a lower tail is negative."""
    turn, phase = w[None, :] * scale[:, None], w[None, :] * node[:, None]
    size = mass[:, None] / (1 + turn**2)
    cos, sin = xp.cos(phase), xp.sin(phase)
    return size * (cos - turn * sin), size * (sin + turn * cos)
