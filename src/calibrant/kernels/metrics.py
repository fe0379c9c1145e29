"""Distances between points."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from calibrant._array import namespace
from calibrant.typing import Array

DIRECT = 16
"""Up to so many coordinates, distances are sums of squared differences; beyond, they come from inner products.

Inner products are faster in many dimensions but lose half of the digits where points nearly coincide, so that
distances that rounding could have made are zero.
"""


class Metric(ABC):
    """A distance between the rows of two arrays; subclasses are frozen dataclasses."""

    name: str
    """What SciPy calls it."""

    is_absolute: bool = False
    """Whether it is ``|x - y|`` in one dimension."""

    @abstractmethod
    def __call__(self, x: Array, y: Array) -> Array:
        """Distances ``(n, m)`` of points ``(n, d)`` and ``(m, d)``."""

    def squared(self, x: Array, y: Array) -> Array:
        """Squared distances."""
        return self(x, y) ** 2


@dataclass(frozen=True)
class Euclidean(Metric):
    """``sqrt(sum_c (x_c - y_c)^2)``.

    >>> import numpy as np
    >>> Euclidean()(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]))
    array([[5.]])
    """

    name = "euclidean"
    is_absolute = True

    def __call__(self, x: Array, y: Array) -> Array:
        """Distances; the square root is taken where it has a derivative."""
        xp = namespace(x, y)
        squared = self.squared(x, y)
        apart = squared > 0
        return xp.where(apart, xp.sqrt(xp.where(apart, squared, xp.ones_like(squared))), xp.zeros_like(squared))

    def squared(self, x: Array, y: Array) -> Array:
        """Squared distances."""
        xp = namespace(x, y)
        if x.shape[1] <= DIRECT:
            return sum((x[:, c][:, None] - y[:, c][None, :]) ** 2 for c in range(x.shape[1]))
        inner = xp.matmul(x, xp.permute_dims(y, (1, 0)))
        size = xp.sum(x * x, axis=1)[:, None] + xp.sum(y * y, axis=1)[None, :]
        squared = size - 2 * inner
        rounding = x.shape[1] * float(xp.finfo(squared.dtype).eps)
        return xp.where(squared > rounding * size, squared, xp.zeros_like(squared))


@dataclass(frozen=True)
class Cityblock(Metric):
    """``sum_c |x_c - y_c|``; for probability vectors, twice the total variation distance.

    >>> import numpy as np
    >>> Cityblock()(np.array([[0.2, 0.8]]), np.array([[0.5, 0.5]])).round(12)
    array([[0.6]])
    """

    name = "cityblock"
    is_absolute = True

    def __call__(self, x: Array, y: Array) -> Array:
        """Distances, one coordinate after the other."""
        xp = namespace(x, y)
        return sum(xp.abs(x[:, c][:, None] - y[:, c][None, :]) for c in range(x.shape[1]))
