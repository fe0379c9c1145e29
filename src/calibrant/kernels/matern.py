"""Matérn kernels."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._array import namespace
from calibrant._validate import InputError
from calibrant.kernels.base import ZERO, Radial, student_frequencies
from calibrant.kernels.metrics import Euclidean, Metric
from calibrant.kernels.sorted_product import exponential_product
from calibrant.typing import Array


@dataclass(frozen=True)
class Matern(Radial):
    """``(1 + s) e^-s`` with ``s = sqrt3 d/l`` for smoothness 3/2, ``(1 + s + s^2/3) e^-s`` with ``s = sqrt5 d/l`` for 5/2.

    >>> import numpy as np
    >>> Matern(1.5, lengthscale=1.0)(np.array([[0.0]]), np.array([[0.0], [1.0]])).round(4)
    array([[1.    , 0.4834]])
    """

    smoothness: float = 1.5
    lengthscale: float | None = None
    metric: Metric = Euclidean()  # noqa: RUF009  # frozen

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.smoothness not in (1.5, 2.5):
            raise InputError(f"smoothness must be 1.5 or 2.5; got {self.smoothness!r}")

    def profile(self, distance: Array) -> Array:
        """A polynomial times an exponential."""
        s = namespace(distance).clip(math.sqrt(2 * self.smoothness) * distance, 0.0, ZERO)
        polynomial = sum(c * s**m for m, c in enumerate(self._coefficients))
        return polynomial * namespace(distance).exp(-s)

    @property
    def _coefficients(self) -> tuple[float, ...]:
        return (1.0, 1.0) if self.smoothness == 1.5 else (1.0, 1.0, 1 / 3)

    def frequencies(self, rng: np.random.Generator, count: int, dimensions: int) -> Any:
        """Student's t with twice the smoothness as degrees of freedom."""
        if not self.is_euclidean:
            return NotImplemented
        return student_frequencies(rng, count, dimensions, 2 * self.smoothness) / self.unit

    @property
    def has_product(self) -> bool:
        """Where distances are absolute differences."""
        return self.metric.is_absolute

    def product(self, x: Array, v: Array, *, diagonal: bool, power: int = 1) -> Any:
        """Running sums with as many states as the polynomial has terms."""
        if not self.has_product:
            return NotImplemented
        rate = math.sqrt(2 * self.smoothness) / self.unit
        return exponential_product(x, v, rate, self._coefficients, diagonal=diagonal, power=power)
