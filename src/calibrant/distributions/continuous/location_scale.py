"""Families with a location and a scale: normal, Laplace and logistic predictions."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import erf, expit, logit, ndtr, ndtri

from calibrant._array import erfcx, matched, namespace, to_numpy
from calibrant._validate import MIN_NUMBER, InputError, check_same_length
from calibrant.distributions.base import as_numbers, check_temperature, one_a_row
from calibrant.distributions.continuous.kernel_means import (
    gaussian_laplace_laplace,
    laplacian_laplace_laplace,
    laplacian_normal,
)
from calibrant.distributions.parametric import Parametric, check_scale, is_single, single
from calibrant.kernels import Energy, Exponential, Gaussian
from calibrant.kernels.base import closed_form
from calibrant.typing import Array, ArrayLike


def as_scale(x: ArrayLike, loc: Array, *, may_vanish: bool = False) -> Array:
    """Positive real numbers in the shape of ``loc`` (or zeros); one number per row, or one in all, is repeated."""
    xp, n = namespace(loc), loc.shape[0]
    if is_single(x):
        scale = loc * 0 + single(x, loc)
    else:
        scale = matched(as_numbers(x, "scale"), loc)
        check_same_length(scale.shape[0], n, "scale", "loc")
    if scale.shape != loc.shape and tuple(scale.shape) in ((n,), (n, 1)):
        scale = loc * 0 + xp.reshape(scale, (n, *[1] * (loc.ndim - 1)))
    if scale.shape != loc.shape:
        raise InputError(f"scale must be one number per row, or like loc; got shape {tuple(scale.shape)}")
    check_scale(xp.where(scale == 0, xp.ones_like(scale), scale) if may_vanish else scale, "scale")
    return scale


@dataclass(frozen=True, eq=False, repr=False)
class LocationScale(Parametric):
    """A batch with ``loc`` and ``scale``, ``(n,)`` each; subclasses say what they mean."""

    loc: Array
    scale: Array

    def __post_init__(self) -> None:
        loc = one_a_row(self.loc, "loc", most=self.largest)
        object.__setattr__(self, "scale", as_scale(self.scale, loc))
        object.__setattr__(self, "loc", loc)

    def point(self, y: Array) -> Self:
        """The same family with scale zero."""
        y = matched(y, self.loc)
        return self._trusted(y, namespace(y).zeros_like(y))

    @property
    def position(self) -> Array:
        """``loc``."""
        return self.loc

    def shifted(self, by: float) -> Self:
        """With another ``loc``."""
        return self._trusted(self.loc + by, self.scale)

    def standardised(self, y: Array) -> tuple[np.ndarray, np.ndarray]:
        """Targets less their location, in scales, and the scales, on the host; beyond all numbers they are infinite."""
        loc, scale = self.host
        with np.errstate(over="ignore"):
            return (to_numpy(y) - loc) / scale, scale

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Locations around 0, scales between 1/2 and 2."""
        return cls(rng.normal(size=n), rng.uniform(0.5, 2, n))


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
        with np.errstate(over="ignore"):  # a density below all numbers is 0
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
        """``E|Y - y| - scale / sqrt(pi)`` with ``|y - loc| erf(z / sqrt2) + scale sqrt(2 / pi) exp(-z^2 / 2)`` for the first."""
        (loc, scale), y = self.host, to_numpy(y)
        if y.shape[-1:] != loc.shape or len(loc) <= CACHED:
            return _ranked(np.abs(y - loc), scale)
        parts = [slice(start, start + CACHED) for start in range(0, len(loc), CACHED)]
        return np.concatenate([_ranked(np.abs(y[..., rows] - loc[rows]), scale[rows]) for rows in parts], axis=-1)

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


CACHED = 1 << 14
"""Rows whose scores are made together."""


def _ranked(away: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """The CRPS of normals from the distance to their middle; a point has no spread."""
    with np.errstate(over="ignore"):
        z = away / np.maximum(scale, MIN_NUMBER)
        near = np.exp(-0.5 * z**2)
    return away * erf(z * 0.5**0.5) + scale * ((2 / np.pi) ** 0.5 * near - np.pi**-0.5)


def _difference(p: Normal, q: Normal) -> tuple[Array, Array]:
    """Mean and variance of ``X - Y``, ``(n, m)`` each."""
    return p.loc[:, None] - q.loc[None, :], p.scale[:, None] ** 2 + q.scale[None, :] ** 2


@closed_form(Gaussian, Normal, Normal)
def _gaussian_of_normals(kernel: Gaussian, p: Normal, q: Normal) -> Array:
    """A Gaussian integral."""
    mean, variance = _difference(p, q)
    width = kernel.unit**2
    total = width + variance
    return (width / total) ** 0.5 * namespace(mean).exp(-0.5 * mean**2 / total)


@closed_form(Exponential, Normal, Normal)
def _exponential_of_normals(kernel: Exponential, p: Normal, q: Normal) -> Array:
    """By the scaled complementary error function."""
    if kernel.power != 1:
        return NotImplemented
    xp = namespace(p.loc)
    mean, variance = _difference(p, q)
    return laplacian_normal(xp.abs(mean) / kernel.unit, xp.sqrt(variance) / kernel.unit, erfcx=erfcx)


@closed_form(Energy, Normal, Normal)
def _energy_of_normals(kernel: Energy, p: Normal, q: Normal) -> Array:  # noqa: ARG001
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
    with np.errstate(over="ignore"):
        near = xp.exp(-0.5 * z**2)
    tail = near * (sd * (2 / xp.pi) ** 0.5 - xp.abs(mean) * erfcx(z / 2**0.5))
    return xp.abs(mean) + xp.where(spread, tail, xp.zeros_like(tail))


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
def _exponential_of_laplaces(kernel: Exponential, p: Laplace, q: Laplace) -> Array:
    """Divided differences, evaluated stably."""
    return laplacian_laplace_laplace(*_in_lengthscales(kernel, p, q)) if kernel.power == 1 else NotImplemented


@closed_form(Gaussian, Laplace, Laplace)
def _gaussian_of_laplaces(kernel: Gaussian, p: Laplace, q: Laplace) -> Array:
    """Divided differences of scaled complementary error functions."""
    return gaussian_laplace_laplace(*_in_lengthscales(kernel, p, q), erfcx=erfcx)


SPREAD = math.pi / math.sqrt(3)
"""The standard deviation at scale 1."""


@dataclass(frozen=True, eq=False, repr=False)
class Logistic(LocationScale):
    """Logistic distributions, ``P(Y <= y) = 1 / (1 + exp(-(y - loc) / scale))``.

    Coordinates are ``(loc, pi / sqrt3 scale)``, mean and standard deviation: their Euclidean distance is the Wasserstein
    distance W2. Powers of the density are no logistic densities, so there is no temperature.

    >>> Logistic([0.0, 1.0], scale=2.0).cdf(np.array([0.0, 3.0])).round(4)
    array([0.5   , 0.7311])
    """

    @property
    def coords(self) -> Array:
        """``(loc, pi / sqrt3 scale)``, ``(n, 2)``."""
        return namespace(self.loc).stack([self.mean, self.std], axis=1)

    @property
    def mean(self) -> Array:
        """``loc``."""
        return self.loc

    @property
    def std(self) -> Array:
        """``pi / sqrt3 scale``."""
        return SPREAD * self.scale

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draws ``(size, n)``."""
        loc, scale = self.host
        return rng.logistic(loc, scale, (size, len(loc)))

    def log_prob(self, targets: Array) -> Array:
        """Log density."""
        z, scale = self.standardised(targets)
        return -np.abs(z) - 2 * np.log1p(np.exp(-np.abs(z))) - np.log(scale)

    def cdf(self, y: Array) -> Array:
        """``P(Y <= y)``."""
        return expit(self.standardised(y)[0])

    def quantile(self, u: Array) -> Array:
        """Values ``(n, m)`` at the levels u."""
        loc, scale = self.host
        return loc[:, None] + scale[:, None] * logit(to_numpy(u).astype(np.float64))[None, :]

    def crps(self, y: Array) -> Array:
        """``scale (|z| + 2 log(1 + exp(-|z|)) - 1)``."""
        z, scale = self.standardised(y)
        return scale * (np.abs(z) + 2 * np.log1p(np.exp(-np.abs(z))) - 1)

    def cf(self, w: Array) -> tuple[Array, Array]:
        """``exp(i w loc) x / sinh(x)`` with ``x = pi w scale``."""
        xp, w = namespace(self.loc), matched(w, self.loc)
        phase = self.loc[:, None] * w[None, :]
        x = math.pi * xp.abs(self.scale[:, None] * w[None, :])
        some = x > 0
        x = xp.where(some, x, xp.ones_like(x))
        size = xp.where(some, -2 * x * xp.exp(-x) / xp.expm1(-2 * x), xp.ones_like(x))
        return size * xp.cos(phase), size * xp.sin(phase)
