"""The energy kernel, behind the energy distance and the CRPS."""

from dataclasses import dataclass
from typing import Any

from calibrant._array import namespace
from calibrant.kernels.base import Kernel
from calibrant.kernels.metrics import Euclidean
from calibrant.kernels.sorted_product import energy_product
from calibrant.typing import Array


@dataclass(frozen=True)
class Energy(Kernel):
    """``(|x| + |y| - |x - y|) / 2``: no length scale, unbounded. Sejdinovic et al. (2013).

    As a kernel on targets it sees every difference between distributions that have a mean. As a kernel on predictions it is
    zero where coordinates are zero, and errors there are not seen: take :class:`Exponential` or :class:`Gaussian`.

    >>> import numpy as np
    >>> Energy()(np.array([[1.0]]), np.array([[3.0], [-2.0]]))
    array([[1., 0.]])
    """

    @property
    def vanishes_at_origin(self) -> bool:
        """Always."""
        return True

    @property
    def has_free_origin(self) -> bool:
        """Always: what depends on the distance of one point from the origin cancels."""
        return True

    def __call__(self, x: Array, y: Array) -> Array:
        """The overlap of two points as seen from the origin."""
        distance = Euclidean()
        origin = namespace(x).zeros_like(x[:1, ...])
        return (distance(x, origin) + distance(origin, y) - distance(x, y)) / 2

    def diagonal(self, points: Array) -> Array:
        """Distances from the origin."""
        return Euclidean()(points, namespace(points).zeros_like(points[:1, :]))[:, 0]

    @property
    def has_product(self) -> bool:
        """Always."""
        return True

    def product(self, x: Array, v: Array, *, diagonal: bool, power: int = 1) -> Any:
        """Prefix sums."""
        return energy_product(x, v, diagonal=diagonal, power=power)
