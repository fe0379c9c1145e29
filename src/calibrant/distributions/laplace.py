"""Laplace predictions: heavier tails than the normal."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant._array import erfcx, namespace, to_numpy
from calibrant.distributions.base import check_temperature, matched
from calibrant.distributions.laplace_forms import gaussian_laplace_laplace, laplacian_laplace_laplace
from calibrant.distributions.location_scale import LocationScale
from calibrant.expectation import closed_form
from calibrant.kernels import Exponential, Gaussian
from calibrant.typing import Array


@dataclass(frozen=True, eq=False, repr=False)
class Laplace(LocationScale):
    """Laplace distributions, density ``exp(-|y - loc| / scale) / (2 scale)``.

    Coordinates are ``(loc, sqrt2 scale)``: their Euclidean distance is the Wasserstein distance W2.

    >>> Laplace([0.0, 1.0], scale=[2.0, 1.0]).coords.round(4)
    array([[0.    , 2.8284],
           [1.    , 1.4142]])
    """

    @property
    def coords(self) -> Array:
        """``(loc, sqrt2 scale)``, ``(n, 2)``."""
        return namespace(self.loc).stack([self.loc, 2**0.5 * self.scale], axis=1)

    @property
    def kinks(self) -> np.ndarray:
        """The corner of the density."""
        return self.host[0][:, None]

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draws ``(size, n)``."""
        loc, scale = self.host
        return rng.laplace(loc, scale, (size, len(loc)))

    def log_prob(self, targets: Array) -> Array:
        """Log density."""
        loc, scale = self.host
        return -np.abs(to_numpy(targets) - loc) / scale - np.log(2 * scale)

    def cdf(self, y: Array) -> Array:
        """``P(Y <= y)``."""
        z, _ = self.standardised(y)
        tail = np.exp(-np.abs(z)) / 2
        return np.where(z < 0, tail, 1 - tail)

    def quantile(self, u: Array) -> Array:
        """Values ``(n, m)`` at the levels u."""
        loc, scale = self.host
        u = to_numpy(u)
        with np.errstate(divide="ignore"):
            z = np.where(u < 0.5, np.log(2 * u), -np.log(2 * (1 - u)))
        return loc[:, None] + scale[:, None] * z[None, :]

    @property
    def mean(self) -> Array:
        """``loc``."""
        return self.loc

    @property
    def std(self) -> Array:
        """``sqrt2 scale``."""
        return 2**0.5 * self.scale

    def crps(self, y: Array) -> Array:
        """``scale (|z| + exp(-|z|) - 3/4)`` with ``z = (y - loc) / scale``."""
        loc, scale = self.host
        z = np.abs(to_numpy(y) - loc) / scale
        return scale * (z + np.exp(-z) - 0.75)

    def cf(self, w: Array) -> tuple[Array, Array]:
        """``exp(i w loc) / (1 + (w scale)^2)``."""
        xp, w = namespace(self.loc), matched(w, self.loc)
        phase = self.loc[:, None] * w[None, :]
        size = 1 / (1 + (self.scale[:, None] * w[None, :]) ** 2)
        return size * xp.cos(phase), size * xp.sin(phase)

    def temper(self, temperature: float) -> Self:
        """Scale times T."""
        check_temperature(temperature)
        return self._trusted(self.loc, self.scale * temperature)


def _in_lengthscales(kernel: Exponential | Gaussian, p: Laplace, q: Laplace) -> tuple[Array, Array, Array]:
    """Distance of the locations and both scales, broadcast to ``(n, m)``."""
    unit = kernel.unit
    z = namespace(p.loc).abs(p.loc[:, None] - q.loc[None, :]) / unit
    return z, p.scale[:, None] / unit + 0 * z, q.scale[None, :] / unit + 0 * z


@closed_form(Exponential, Laplace, Laplace)
def _exponential(kernel: Exponential, p: Laplace, q: Laplace) -> Array:
    """Divided differences, evaluated stably."""
    return laplacian_laplace_laplace(*_in_lengthscales(kernel, p, q)) if kernel.power == 1 else NotImplemented


@closed_form(Gaussian, Laplace, Laplace)
def _gaussian(kernel: Gaussian, p: Laplace, q: Laplace) -> Array:
    """Divided differences of scaled complementary error functions."""
    return gaussian_laplace_laplace(*_in_lengthscales(kernel, p, q), erfcx=erfcx)
