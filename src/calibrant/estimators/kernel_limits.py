"""Confidence limits of the squared kernel calibration error."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from calibrant.distributions.base import Distribution
from calibrant.distributions.bernoulli import Bernoulli
from calibrant.distributions.categorical import Categorical
from calibrant.distributions.counts import Counts
from calibrant.estimators.error_limits import squares_within
from calibrant.estimators.kernel_sums import PairSpread
from calibrant.estimators.mean_limits import MeanLimits
from calibrant.results import Interval

CLEAR = 5.0
"""Spreads of chance from zero at which an error is far enough from calibration for the normal limit."""


@dataclass(frozen=True)
class PairLimits:
    """Limits of the unbiased estimate U of a squared error ``theta^2``, from both terms of its variance.

    Around a calibrated model U is a sum of squares less their mean. Its upper tail is longest where there is a single one:
    the lower limit allows for that. The upper limit is the largest ``theta^2`` for which U is not too small, whose first term is
    ``4 theta^2 lambda`` at most, ``lambda`` being the largest variance of the noise in any direction, at most the root of half
    the second term; far from calibration it is the normal one. Events that were not seen move the root by up to ``step z^2``.
    """

    value: float
    spread: PairSpread
    step: float

    def __call__(self, level: float) -> Interval:
        """The interval of a confidence level."""
        tail = (1 - level) / 2
        z, first, second = -float(ndtri(tail)), self.spread.first, self.spread.second
        longest = (float(ndtri(tail / 2)) ** 2 - 1) / np.sqrt(2)
        low = self.value - np.sqrt(z * z * first + longest**2 * second)
        largest = np.sqrt(second / 2)
        _, high = squares_within(max(self.value, 0.0), largest, second, z)
        if self.value > CLEAR * np.sqrt(second):
            high = min(high, self.value + z * np.sqrt(first + second))
        return moved(low, high, self.step * z * z, level)


@dataclass(frozen=True)
class BlockLimits:
    """Limits of the mean over blocks, which are independent."""

    mean: MeanLimits
    step: float

    @property
    def standard_error(self) -> float:
        """Of the mean over blocks."""
        return float(np.sqrt(self.mean.squares * self.mean.n / (self.mean.n - 1)))

    def __call__(self, level: float) -> Interval:
        """The interval of a confidence level; an estimate below zero counts as zero for the upper limit."""
        low, high = self.mean(level)
        z = float(ndtri((1 + level) / 2))
        return moved(low, high - min(self.mean.mean, 0.0), self.step * z * z, level)


def moved(low: float, high: float, root: float, level: float) -> Interval:
    """Limits of a square, whose roots are moved apart."""
    least, most = np.sqrt(max(low, 0.0)) - root, np.sqrt(max(high, 0.0)) + root
    return Interval(float(max(least, 0.0) ** 2), float(most**2), level, "pairs of rows")


def step_of(predictions: Distribution) -> float:
    """What one row adds to the root at most, where outcomes may be so rare that none was seen: classes, labels and counts."""
    return 2**0.5 / len(predictions) if isinstance(predictions, Categorical | Bernoulli | Counts) else 0.0
