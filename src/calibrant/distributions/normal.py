"""Normal predictions: most regressors that say how sure they are."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import ndtr, ndtri

from calibrant._array import erfcx, namespace, to_numpy
from calibrant.distributions.base import check_temperature, matched
from calibrant.distributions.laplace_forms import laplacian_normal
from calibrant.distributions.location_scale import LocationScale
from calibrant.expectation import closed_form
from calibrant.kernels import Energy, Exponential, Gaussian
from calibrant.typing import Array


@dataclass(frozen=True, eq=False, repr=False)
class Normal(LocationScale):
    """Normal distributions with mean ``loc`` and standard deviation ``scale``, ``(n,)`` each.

    Coordinates are ``(loc, scale)``: their Euclidean distance is the Wasserstein distance W2.

    >>> Normal([0.0, 1.0], scale=2.0)
    <Normal: 2 predictions>
    """

    @property
    def coords(self) -> Array:
        """``(loc, scale)``, ``(n, 2)``."""
        return namespace(self.loc).stack([self.loc, self.scale], axis=1)

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draws ``(size, n)``."""
        loc, scale = self.host
        return loc + scale * rng.standard_normal((size, len(loc)))

    def log_prob(self, targets: Array) -> Array:
        """Log density."""
        loc, scale = self.host
        return -0.5 * ((to_numpy(targets) - loc) / scale) ** 2 - np.log(scale) - 0.5 * np.log(2 * np.pi)

    def cdf(self, y: Array) -> Array:
        """``P(Y <= y)``."""
        return ndtr(self.standardised(y)[0])

    def quantile(self, u: Array) -> Array:
        """Values ``(n, m)`` at the levels u."""
        loc, scale = self.host
        return loc[:, None] + scale[:, None] * ndtri(to_numpy(u))[None, :]

    @property
    def mean(self) -> Array:
        """``loc``."""
        return self.loc

    @property
    def std(self) -> Array:
        """``scale``."""
        return self.scale

    def crps(self, y: Array) -> Array:
        """``E|Y - y| - scale / sqrt(pi)``."""
        loc, scale = self.host
        return _mean_absolute(to_numpy(y) - loc, scale**2) - scale / np.pi**0.5

    def distance(self, other: Self) -> Array:
        """``E|Y - Y'|`` of a normal difference."""
        (loc, scale), (their_loc, their_scale) = self.host, other.host
        return _mean_absolute(loc - their_loc, scale**2 + their_scale**2)

    def cf(self, w: Array) -> tuple[Array, Array]:
        """``exp(i w loc - (w scale)^2 / 2)``."""
        xp, w = namespace(self.loc), matched(w, self.loc)
        phase = self.loc[:, None] * w[None, :]
        size = xp.exp(-0.5 * (self.scale[:, None] * w[None, :]) ** 2)
        return size * xp.cos(phase), size * xp.sin(phase)

    def temper(self, temperature: float) -> Self:
        """Variance times T."""
        check_temperature(temperature)
        return self._trusted(self.loc, self.scale * temperature**0.5)


def _difference(p: Normal, q: Normal) -> tuple[Array, Array]:
    """Mean and variance of ``X - Y``, ``(n, m)`` each."""
    return p.loc[:, None] - q.loc[None, :], p.scale[:, None] ** 2 + q.scale[None, :] ** 2


@closed_form(Gaussian, Normal, Normal)
def _gaussian(kernel: Gaussian, p: Normal, q: Normal) -> Array:
    """A Gaussian integral."""
    mean, variance = _difference(p, q)
    width = kernel.unit**2
    total = width + variance
    return (width / total) ** 0.5 * namespace(mean).exp(-0.5 * mean**2 / total)


@closed_form(Exponential, Normal, Normal)
def _exponential(kernel: Exponential, p: Normal, q: Normal) -> Array:
    """By the scaled complementary error function."""
    if kernel.power != 1:
        return NotImplemented
    xp = namespace(p.loc)
    mean, variance = _difference(p, q)
    return laplacian_normal(xp.abs(mean) / kernel.unit, xp.sqrt(variance) / kernel.unit, erfcx=erfcx)


@closed_form(Energy, Normal, Normal)
def _energy(kernel: Energy, p: Normal, q: Normal) -> Array:  # noqa: ARG001
    """From mean absolute values of normal variables."""
    mean, variance = _difference(p, q)
    rows, columns = _mean_absolute(p.loc, p.scale**2), _mean_absolute(q.loc, q.scale**2)
    return (rows[:, None] + columns[None, :] - _mean_absolute(mean, variance)) / 2


def _mean_absolute(mean: Array, variance: Array) -> Array:
    """``E |N(mean, variance)|``; the mean itself where there is no variance."""
    xp = namespace(mean)
    spread = variance > 0
    sd = xp.sqrt(xp.where(spread, variance, xp.ones_like(variance)))
    z = xp.abs(mean) / sd
    # |m| erf(z / sqrt2) + s sqrt(2 / pi) exp(-z^2 / 2), with erfc written by erfcx so that both parts stay small
    tail = xp.exp(-0.5 * z**2) * (sd * (2 / xp.pi) ** 0.5 - xp.abs(mean) * erfcx(z / 2**0.5))
    return xp.abs(mean) + xp.where(spread, tail, xp.zeros_like(tail))
