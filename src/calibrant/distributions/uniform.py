"""Uniform predictions: anything within a range."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant._array import namespace, to_numpy
from calibrant._validate import InputError, check_finite
from calibrant.distributions.base import check_temperature, matched
from calibrant.distributions.parametric import Parametric
from calibrant.typing import Array


@dataclass(frozen=True, eq=False, repr=False)
class Uniform(Parametric):
    """Uniform distributions between ``low`` and ``high``, ``(n,)`` each; targets may lie outside, at probability zero.

    Coordinates are mean and standard deviation: their Euclidean distance is the Wasserstein distance W2.

    >>> Uniform([0.0, 1.0], high=4.0).coords.round(4)
    array([[2.    , 1.1547],
           [2.5   , 0.866 ]])
    """

    low: Array
    high: Array

    def __post_init__(self) -> None:
        super().__post_init__()
        narrowest, _ = check_finite(self.high - self.low, "high - low")
        if narrowest <= 0:
            row = int(namespace(self.low).argmin(self.high - self.low))
            ends = f"{float(self.low[row]):g} and {float(self.high[row]):g}"
            raise InputError(f"low must lie below high; found {ends} in row {row}")

    @property
    def coords(self) -> Array:
        """``(mean, standard deviation)``, ``(n, 2)``."""
        return namespace(self.low).stack([self.mean, self.std], axis=1)

    @property
    def mean(self) -> Array:
        """The middle."""
        return self.low / 2 + self.high / 2

    @property
    def std(self) -> Array:
        """The width over ``sqrt(12)``."""
        return (self.high - self.low) / 12**0.5

    def point(self, y: Array) -> Self:
        """The same family with no width."""
        y = matched(y, self.low)
        return self._trusted(y, y)

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draws ``(size, n)``."""
        low, high = self.host
        return low + (high - low) * rng.random((size, len(low)))

    def log_prob(self, targets: Array) -> Array:
        """Log density; ``-inf`` outside of the range."""
        low, high = self.host
        y = to_numpy(targets)
        return np.where((low <= y) & (y <= high), -np.log(high - low), -np.inf)

    def cdf(self, y: Array) -> Array:
        """``P(Y <= y)``."""
        low, high = self.host
        return np.clip((to_numpy(y) - low) / (high - low), 0, 1)

    def quantile(self, u: Array) -> Array:
        """Values ``(n, m)`` at the levels u."""
        low, high = (column[:, None] for column in self.host)
        levels = to_numpy(u)[None, :]
        return low * (1 - levels) + high * levels

    def crps(self, y: Array) -> Array:
        """In closed form, by the nearest value of the range."""
        low, high = self.host
        z = (to_numpy(y) - low) / (high - low)
        near = np.clip(z, 0, 1)
        return (high - low) * (np.abs(z - near) + near**2 - near + 1 / 3)

    def cf(self, w: Array) -> tuple[Array, Array]:
        """``exp(i w middle) sin(x) / x`` with x half the width times w."""
        xp, w = namespace(self.low), matched(w, self.low)
        phase = self.mean[:, None] * w[None, :]
        x = (self.high - self.low)[:, None] / 2 * w[None, :]
        some = x != 0
        x = xp.where(some, x, xp.ones_like(x))
        size = xp.where(some, xp.sin(x) / x, xp.ones_like(x))
        return size * xp.cos(phase), size * xp.sin(phase)

    def temper(self, temperature: float) -> Self:
        """Themselves: a power of a constant is constant."""
        check_temperature(temperature)
        return self

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Lower ends around 0, widths between 1 and 4."""
        low = rng.normal(size=n)
        return cls(low, low + rng.uniform(1, 4, n))
