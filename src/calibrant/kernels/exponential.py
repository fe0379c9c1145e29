"""The exponential (Laplacian) kernel and its powers."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._array import namespace
from calibrant._validate import InputError
from calibrant.kernels.base import ZERO, Radial, student_frequencies
from calibrant.kernels.metrics import Euclidean, Metric
from calibrant.kernels.sorted_product import exponential_pair_sums, exponential_product
from calibrant.typing import Array


@dataclass(frozen=True)
class Exponential(Radial):
    """``exp(-(d / l)^power)`` with ``0 < power <= 2``; power 1 is the Laplacian kernel.
    Characteristic, and strictly positive definite with Euclidean distances.

    A kernel for every distance that is Hilbertian, such as those of all our coordinates.

    >>> import math, numpy as np
    >>> float(Exponential(lengthscale=2.0)(np.array([[0.0]]), np.array([[2.0]]))[0, 0]) == math.exp(-1)
    True
    """

    lengthscale: float | None = None
    metric: Metric = Euclidean()  # noqa: RUF009  # frozen
    power: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.power, int | float) or not 0 < self.power <= 2:
            raise InputError(f"power must lie above 0 and at most at 2, else this is no kernel; got {self.power!r}")

    def profile(self, distance: Array) -> Array:
        """``exp(-u^power)``."""
        xp = namespace(distance)
        if self.power == 1:
            return xp.exp(-distance)
        return xp.exp(-((xp.clip(distance, 0.0, ZERO) if self.power > 1 else distance) ** self.power))

    def frequencies(self, rng: np.random.Generator, count: int, dimensions: int) -> Any:
        """Cauchy, the case of one degree of freedom."""
        if self.power != 1 or not self.is_euclidean:
            return NotImplemented
        return student_frequencies(rng, count, dimensions, 1.0) / self.unit

    @property
    def has_product(self) -> bool:
        """The Laplacian kernel has."""
        return self.power == 1 and self.metric.is_absolute

    def pair_sums(self, x: np.ndarray, v: np.ndarray) -> Any:
        """One running sum from the left."""
        if not self.has_product:
            return NotImplemented
        return exponential_pair_sums(x, v, 1 / self.unit, (1.0,))

    def product(self, x: Array, v: Array, *, diagonal: bool, power: int = 1) -> Any:
        """One running sum from the left, one from the right."""
        if not self.has_product:
            return NotImplemented
        return exponential_product(x, v, 1 / self.unit, (1.0,), diagonal=diagonal, power=power)
