"""Poisson predictions: counts of events that do not depend on each other."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import gammaincc, gammaln, i0e, i1e, pdtrc, xlogy

from calibrant._array import gammaln as log_gamma
from calibrant._array import namespace, to_numpy
from calibrant.distributions.base import matched
from calibrant.distributions.counts import Counts, check_rate
from calibrant.typing import Array


@dataclass(frozen=True, eq=False, repr=False)
class Poisson(Counts):
    """Poisson distributions with mean ``rate``, ``(n,)``.

    Coordinates are mean and standard deviation. Powers of the masses belong to another family, so there is no temperature.

    >>> Poisson([0.5, 3.0]).cdf(np.array([0, 2])).round(4)
    array([0.6065, 0.4232])
    """

    rate: Array

    def __post_init__(self) -> None:
        super().__post_init__()
        check_rate(self.rate)

    @property
    def mean(self) -> Array:
        """``rate``."""
        return self.rate

    @property
    def std(self) -> Array:
        """``sqrt(rate)``."""
        return self.rate**0.5

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Counts, ``(size, n)``."""
        return rng.poisson(self.host[0], (size, len(self)))

    def log_prob(self, targets: Array) -> Array:
        """Log probability; ``-inf`` for what is no count."""
        (rate,), y = self.host, to_numpy(targets).astype(np.float64)
        is_count = (y >= 0) & (y == np.floor(y))
        k = np.where(is_count, y, 0)
        return np.where(is_count, xlogy(k, rate) - rate - gammaln(k + 1), -np.inf)

    def cf(self, w: Array) -> tuple[Array, Array]:
        """``exp(rate (exp(i w) - 1))``."""
        xp, w = namespace(self.rate), matched(w, self.rate)
        size = xp.exp(-2 * self.rate[:, None] * xp.sin(w / 2)[None, :] ** 2)
        phase = self.rate[:, None] * xp.sin(w)[None, :]
        return size * xp.cos(phase), size * xp.sin(phase)

    def _at_most(self, k: np.ndarray, *parameters: np.ndarray) -> np.ndarray:
        return gammaincc(k + 1, parameters[0])

    def _more_than(self, k: np.ndarray, *parameters: np.ndarray) -> np.ndarray:
        return pdtrc(k, parameters[0])

    def _log_masses(self, k: Array) -> Array:
        rate = self.rate[:, None]
        return k * namespace(rate).log(rate) - rate - log_gamma(k + 1)

    def _mean_up_to(self, k: np.ndarray) -> np.ndarray:
        return self.host[0] * self.cdf(k - 1)

    def _half_difference(self) -> np.ndarray:
        """By Bessel functions. Wei & Held (2014)."""
        rate = self.host[0]
        return rate * (i0e(2 * rate) + i1e(2 * rate))

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Rates between 1/2 and 10."""
        return cls(rng.uniform(0.5, 10, n))
