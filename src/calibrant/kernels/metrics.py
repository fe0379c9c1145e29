"""Distances between points."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from calibrant._array import detached, namespace
from calibrant.typing import Array

DIRECT = 16
"""Up to so many coordinates, distances are sums of squared differences; beyond, they come from inner products.

Inner products around the middle of the points are faster in many dimensions. They are right relative to the distance from that
middle: where two points lie much closer to each other, arrays of NumPy take differences again; in other libraries distances
that rounding could have made are zero.
"""

NEAR = 1e-3
"""Squared distances below this part of the squared lengths are made again: above, 30 coordinates leave twelve digits."""

MAX_DIFFERENCES = 1 << 20
"""Differences of coordinates that are held at a time."""


class Metric(ABC):
    """A distance between the rows of two arrays; subclasses are frozen dataclasses."""

    name: str | None = None
    """What SciPy calls it, if it knows it."""

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
        if x.shape[1] <= DIRECT:
            return sum((x[:, c][:, None] - y[:, c][None, :]) ** 2 for c in range(x.shape[1]))
        if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
            return _repaired(*(_around(y, points) for points in (x, y))).astype(np.result_type(x, y), copy=False)
        xp = namespace(x, y)
        x, y = x - (middle := xp.mean(detached(y), axis=0)), y - middle
        squared, size = _by_products(x, y)
        rounding = x.shape[1] * float(xp.finfo(squared.dtype).eps)
        return xp.where(squared > rounding * size, squared, xp.zeros_like(squared))


def _by_products(x: Array, y: Array) -> tuple[Array, Array]:
    """Squared distances, and the sums of squared lengths that they are rounded relative to."""
    xp = namespace(x, y)
    size = xp.sum(x * x, axis=1)[:, None] + xp.sum(y * y, axis=1)[None, :]
    return size - 2 * xp.matmul(x, xp.permute_dims(y, (1, 0))), size


def _around(y: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Points as seen from the middle of y, in double precision."""
    return points.astype(np.float64) - y.mean(axis=0, dtype=np.float64)


def _repaired(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Squared distances; by differences for points that lie far closer to each other than to the middle."""
    squared, size = _by_products(x, y)
    i, j = np.nonzero(squared <= NEAR * size)
    step = max(1, MAX_DIFFERENCES // x.shape[1])
    for start in range(0, len(i), step):
        rows, columns = i[start : start + step], j[start : start + step]
        squared[rows, columns] = ((x[rows] - y[columns]) ** 2).sum(axis=1)
    return squared


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
