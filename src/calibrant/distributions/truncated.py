"""Predictions of numbers that cannot lie outside of a range: what happens outside is not seen at all."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.bounded import Bounded
from calibrant.distributions.cells import is_whole
from calibrant.distributions.levels import HAIR, SYMMETRIC, above, at_least, value_above, value_at
from calibrant.distributions.piecewise import LEAST_LEVEL
from calibrant.typing import Array

LEAST = 1e-13
"""What must be left within the range where it is a difference of levels next to 1."""


@dataclass(frozen=True, eq=False, repr=False)
class Truncated(Bounded):
    """The distributions of ``base``, given that targets lie between ``low`` and ``high``, ends included.

    ``P(Y <= y) = P(low <= B <= y) / P(low <= B <= high)``. For amounts that are positive, rates below one; use
    :class:`Censored` where what lies outside is recorded at the end of the range. Far upper tails of normal and
    Laplace predictions keep their digits. Draws by inversion, row by row where the base has no faster way.

    >>> from calibrant import Normal
    >>> rain = Truncated(Normal([0.0, 2.0], 1.0), low=0.0)
    >>> rain.cdf(np.array([0.0, 2.0])).round(4)
    array([0.    , 0.4884])
    >>> bool(abs(rain.mean[0] - (2 / np.pi) ** 0.5) < 1e-9)
    True
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        least = 0.0 if isinstance(self.base, SYMMETRIC) else np.where(self._is_high, LEAST, 0.0)
        wrong = ~(self._kept > least)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(
                f"the range must hold some probability; {self.low[row]:g} to {self.high[row]:g} holds none of row {row}"
            )

    @cached_property
    def _before(self) -> tuple[np.ndarray, np.ndarray]:
        """``P(B < low)`` and ``P(B >= low)``."""
        return to_numpy(self.base.below(self.low)), at_least(self.base, self.low)

    @property
    def _is_high(self) -> np.ndarray:
        """Rows whose range begins above the median: their levels are counted from above."""
        return self._before[0] > 0.5

    @cached_property
    def _kept(self) -> np.ndarray:
        """``P(low <= B <= high)``."""
        return self._within(to_numpy(self.base.cdf(self.high)), above(self.base, self.high))

    def _within(self, under: np.ndarray, over: np.ndarray) -> np.ndarray:
        """What is between low and a value, from what is under and over the value."""
        return np.where(self._is_high, self._before[1] - over, under - self._before[0])

    def cdf(self, y: Array) -> np.ndarray:
        """``P(Y <= y)``."""
        y = to_numpy(y)
        inside = np.clip(y, self.low, self.high)
        share = self._within(to_numpy(self.base.cdf(inside)), above(self.base, inside)) / self._kept
        return np.where(y < self.low, 0.0, np.where(y >= self.high, 1.0, np.clip(share, 0, 1)))

    def below(self, y: Array) -> np.ndarray:
        """``P(Y < y)``."""
        y = to_numpy(y)
        inside = np.clip(y, self.low, self.high)
        share = self._within(to_numpy(self.base.below(inside)), at_least(self.base, inside)) / self._kept
        return np.where(y <= self.low, 0.0, np.where(y > self.high, 1.0, np.clip(share, 0, 1)))

    def log_prob(self, targets: Array) -> np.ndarray:
        """Log density of the base, over what the range holds."""
        y = to_numpy(targets)
        inside = to_numpy(self.base.log_prob(np.clip(y, self.low, self.high))) - np.log(self._kept)
        return np.where((y < self.low) | (y > self.high), -np.inf, inside)

    def quantile(self, u: Array) -> np.ndarray:
        """Values ``(n, m)`` at the levels u."""
        levels = to_numpy(u)
        return self._at(np.broadcast_to(levels[:, None], (len(levels), len(self)))).T

    def _at(self, u: np.ndarray) -> np.ndarray:
        """Values of each row at levels ``(..., n)``, counted from the nearer end of the base."""
        under = self._before[0] + u * self._kept
        over = above(self.base, self.high) + (1 - u) * self._kept
        lower = value_at(self.base, under * (1 - HAIR))
        hair = HAIR * np.where(u < 1, over if isinstance(self.base, SYMMETRIC) else 1.0, 0.0)
        upper = value_above(self.base, np.minimum(over + hair, 1))
        return np.clip(np.where(under < 0.5, lower, upper), self.low, self.high)

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draws ``(size, n)``: values at random levels."""
        drawn = self._at(np.maximum(rng.random((size, len(self))), LEAST_LEVEL))
        return drawn.astype(np.int64) if is_whole(self.base) else drawn

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Normal predictions, kept above zero, and below three where they are low."""
        from calibrant.distributions.normal import Normal

        base = Normal.example(rng, n)
        return cls(base, 0.0, np.where(base.loc > 0, np.inf, 3.0))
