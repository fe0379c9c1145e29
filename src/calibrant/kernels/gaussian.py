"""The Gaussian kernel."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._array import namespace
from calibrant.kernels.base import ZERO, Radial
from calibrant.kernels.metrics import Euclidean, Metric
from calibrant.typing import Array

REACH = 8.6
"""Standard deviations beyond which a Gaussian is below 1e-16."""

MOST_NODES = 1 << 20
"""More frequencies than this are of no use to anyone."""


@dataclass(frozen=True)
class Gaussian(Radial):
    """``exp(-d^2 / (2 l^2))``; infinitely smooth. Characteristic, and strictly positive definite with Euclidean distances.

    >>> import numpy as np
    >>> float(Gaussian(lengthscale=2.0)(np.array([[0.0]]), np.array([[2.0]]))[0, 0]) == math.exp(-0.5)
    True
    """

    lengthscale: float | None = None
    metric: Metric = Euclidean()  # noqa: RUF009  # frozen

    def profile(self, distance: Array) -> Array:
        """``exp(-u^2 / 2)``."""
        xp = namespace(distance)
        return xp.exp(-0.5 * xp.clip(distance, 0.0, ZERO) ** 2)

    def __call__(self, x: Array, y: Array) -> Array:
        """Without the square root of the distance."""
        if not 1 / ZERO < self.unit < ZERO:  # whose square single precision may not hold
            return super().__call__(x, y)
        return namespace(x, y).exp(-0.5 * self.metric.squared(x, y) / self.unit**2)

    def frequencies(self, rng: np.random.Generator, count: int, dimensions: int) -> Any:
        """Normal."""
        return rng.standard_normal((count, dimensions)) / self.unit if self.is_euclidean else NotImplemented

    @property
    def reach(self) -> float:
        """Some nine length scales."""
        return REACH * self.unit

    def spectrum(self, span: float) -> Any:
        """The trapezoid rule on the Gaussian spectral density: exact to rounding for differences within the span."""
        # Copies of the kernel at multiples of the period must lie further away than the kernel reaches.
        step = 2 * math.pi / (span / self.unit + REACH)
        if not step > REACH / MOST_NODES:
            return NotImplemented
        nodes = step * np.arange(math.ceil(REACH / step) + 1)
        weights = 2 * step / math.sqrt(2 * math.pi) * np.exp(-0.5 * nodes**2)
        weights[0] /= 2
        return nodes / self.unit, weights
