"""Predictions of numbers that are recorded within a range only: what lies outside is seen at its end."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant._array import to_numpy
from calibrant.distributions.bounded import Bounded
from calibrant.distributions.levels import at_least
from calibrant.typing import Array


@dataclass(frozen=True, eq=False, repr=False)
class Censored(Bounded):
    """The distributions of ``min(max(B, low), high)``, B from ``base``: both ends have a probability of their own.

    Rain that is recorded as zero, demand that is capped by the stock, times that end with the study.
    ``log_prob`` is the log density inside and the log probability at the ends (Tobit), so the log loss is proper for
    targets that are recorded alike.

    >>> from calibrant import Normal
    >>> demand = Censored(Normal([5.0, 9.0], 2.0), low=0.0, high=8.0)
    >>> demand.below(np.array([8.0, 8.0])).round(4), demand.cdf(np.array([8.0, 8.0]))
    (array([0.9332, 0.3085]), array([1., 1.]))
    """

    def cdf(self, y: Array) -> np.ndarray:
        """``P(Y <= y)``."""
        y = to_numpy(y)
        inside = to_numpy(self.base.cdf(np.clip(y, self.low, self.high)))
        return np.where(y < self.low, 0.0, np.where(y >= self.high, 1.0, inside))

    def below(self, y: Array) -> np.ndarray:
        """``P(Y < y)``."""
        y = to_numpy(y)
        inside = to_numpy(self.base.below(np.clip(y, self.low, self.high)))
        return np.where(y <= self.low, 0.0, np.where(y > self.high, 1.0, inside))

    def log_prob(self, targets: Array) -> np.ndarray:
        """Log density inside, log probability at the ends."""
        y = to_numpy(targets)
        with np.errstate(divide="ignore"):
            ends = np.log(to_numpy(self.base.cdf(self.low))), np.log(at_least(self.base, self.high))
        inside = to_numpy(self.base.log_prob(np.clip(y, self.low, self.high)))
        found = np.where(y == self.low, ends[0], np.where(y == self.high, ends[1], inside))
        return np.where((y < self.low) | (y > self.high), -np.inf, found)

    def quantile(self, u: Array) -> np.ndarray:
        """Those of the base, kept in the range, ``(n, m)``."""
        return np.clip(to_numpy(self.base.quantile(to_numpy(u))), self.low[:, None], self.high[:, None])

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draws of the base, kept in the range, ``(size, n)``."""
        drawn = self.base.sample(rng, size)
        return np.clip(drawn, self.low, self.high).astype(drawn.dtype)

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Normal predictions between -1/2 and 1."""
        from calibrant.distributions.normal import Normal

        return cls(Normal.example(rng, n), -0.5, 1.0)
