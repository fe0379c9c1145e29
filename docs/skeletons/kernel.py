"""A complete kernel: the rational quadratic, a mixture of Gaussian kernels of many length scales. Copy, rename, change.

>>> from calibrant import SKCE, ExactTest, Normal
>>> from calibrant.checks import check_kernel
>>> rng = np.random.default_rng(0)
>>> check_kernel(RationalQuadratic(1.0), rng.normal(size=(60, 3)))
>>> forecast = Normal(rng.normal(size=200), 1.0)
>>> y_true = forecast.sample(rng, 1)[0]
>>> ExactTest(SKCE(RationalQuadratic()), n_resamples=99)(y_true, forecast).pvalue > 0.05
True
>>> ExactTest(SKCE(RationalQuadratic()), n_resamples=99)(y_true + 0.5, forecast).pvalue
0.01
"""

from dataclasses import dataclass

import numpy as np

from calibrant import InputError
from calibrant.kernels import Euclidean, Metric, Radial
from calibrant.typing import Array


@dataclass(frozen=True)
class RationalQuadratic(Radial):
    """``(1 + d^2 / (2 a l^2))^-a``; :class:`Radial` takes care of the distance, the length scale and its median."""

    lengthscale: float | None = None
    metric: Metric = Euclidean()  # noqa: RUF009  # frozen
    alpha: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.alpha < float("inf"):
            raise InputError(f"alpha must be a positive number; got {self.alpha!r}")

    def profile(self, distance: Array) -> Array:
        """The kernel as a function of the distance in length scales, in any array library."""
        return (1 + distance**2 / (2 * self.alpha)) ** -self.alpha

    # What follows is optional: with random frequencies, tests of any number of rows are affordable.

    def frequencies(self, rng: np.random.Generator, count: int, dimensions: int) -> np.ndarray:
        """Normal, with a precision drawn from a gamma distribution."""
        if not self.is_euclidean:
            return NotImplemented
        precision = rng.gamma(self.alpha, 1 / self.alpha, (count, 1))
        return rng.standard_normal((count, dimensions)) * np.sqrt(precision) / self.unit
