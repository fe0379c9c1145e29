"""Logistic predictions: a little more in the tails than the normal."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from calibrant._array import namespace, to_numpy
from calibrant.distributions.base import matched
from calibrant.distributions.location_scale import LocationScale
from calibrant.typing import Array

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
