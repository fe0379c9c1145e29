"""Negative binomial predictions: counts that vary more than Poisson counts."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import betainc, betaincc, betaln

from calibrant._array import namespace, to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import matched
from calibrant.distributions.counts import Counts, check_rate
from calibrant.distributions.parametric import as_columns, check_positive
from calibrant.typing import Array, ArrayLike

LARGEST = 9e18
"""Rates of Poisson draws beyond this are too large for whole numbers of 64 bits."""

STEP, REACH = 0.125, 40.0
"""Steps and range of the integral for mean differences, on a logarithmic scale: what is left is below rounding."""


@dataclass(frozen=True, eq=False, repr=False)
class NegativeBinomial(Counts):
    """Negative binomial distributions with mean ``rate`` and variance ``rate + dispersion rate^2``, ``(n,)`` each.

    Poisson counts whose own rate varies as a gamma variable. As the dispersion goes to zero they become Poisson; at one they
    are geometric. Coordinates are mean and standard deviation. Powers of the masses belong to another family, so there is
    no temperature. :meth:`from_total_count` takes the number of failures and the probability of one instead.

    >>> NegativeBinomial([2.0, 10.0], dispersion=0.5).std.round(4)
    array([2.   , 7.746])
    """

    rate: Array
    dispersion: Array

    def __post_init__(self) -> None:
        super().__post_init__()
        check_rate(self.rate)
        check_positive(self.dispersion, "dispersion")

    @classmethod
    def from_total_count(cls, total_count: ArrayLike, prob: ArrayLike) -> Self:
        """``P(Y = k) = binom(k + r - 1, k) p^r (1 - p)^k``: successes before failure number r, each trial failing at p.

        That is SciPy's ``nbinom(total_count, prob)``; what torch calls ``probs`` is ``1 - prob``. The count r may be any
        positive number.

        >>> NegativeBinomial.from_total_count([2.0, 2.0], prob=[0.5, 0.25]).rate
        array([2., 6.])
        """
        r, p = as_columns({"total_count": total_count, "prob": prob})
        check_positive(r, "total_count")
        check_positive(p, "prob")
        if bool(namespace(p).any(p >= 1)):
            raise InputError(f"prob must lie strictly between 0 and 1; found {float(namespace(p).max(p)):g}")
        return cls(r * (1 - p) / p, 1 / r)

    @property
    def mean(self) -> Array:
        """``rate``."""
        return self.rate

    @property
    def std(self) -> Array:
        """``sqrt(rate + dispersion rate^2)``."""
        return (self.rate * (1 + self.dispersion * self.rate)) ** 0.5

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Counts, ``(size, n)``."""
        rate, dispersion = self.host
        drawn = rate * dispersion * rng.standard_gamma(1 / dispersion, (size, len(rate)))
        return rng.poisson(np.minimum(drawn, LARGEST))

    def log_prob(self, targets: Array) -> Array:
        """Log probability; ``-inf`` for what is no count."""
        (rate, dispersion), y = self.host, to_numpy(targets).astype(np.float64)
        is_count = (y >= 0) & (y == np.floor(y))
        k, r = np.where(is_count, y, 0), 1 / dispersion
        ways = -np.log(r + k) - betaln(r, k + 1)
        failures = r * np.log1p(dispersion * rate)
        return np.where(is_count, ways - failures - k * np.log1p(1 / (dispersion * rate)), -np.inf)

    def cf(self, w: Array) -> tuple[Array, Array]:
        """``(1 + dispersion rate (1 - exp(i w)))^(-1 / dispersion)``."""
        xp, w = namespace(self.rate), matched(w, self.rate)
        r, odds = 1 / self.dispersion[:, None], (self.dispersion * self.rate)[:, None]
        half = xp.sin(w / 2)[None, :] ** 2
        size = xp.exp(-0.5 * r * xp.log1p(4 * odds * (1 + odds) * half))
        phase = r * xp.atan2(odds * xp.sin(w)[None, :], 1 + 2 * odds * half)
        return size * xp.cos(phase), size * xp.sin(phase)

    def _at_most(self, k: np.ndarray, *parameters: np.ndarray) -> np.ndarray:
        rate, dispersion = parameters
        return _level(1 / dispersion, k + 1, dispersion * rate)

    def _more_than(self, k: np.ndarray, *parameters: np.ndarray) -> np.ndarray:
        rate, dispersion = parameters
        return _level(k + 1, 1 / dispersion, 1 / (dispersion * rate))

    def _log_masses(self, k: Array) -> Array:
        """By the ratio of each count to the one before, so that no large numbers cancel."""
        xp = namespace(self.rate)
        rate, dispersion = self.rate[:, None], self.dispersion[:, None]
        before = k[:-1]
        ratios = xp.log1p(dispersion * before) + xp.log(rate / (1 + dispersion * rate)) - xp.log(before + 1)
        first = -xp.log1p(dispersion * rate) / dispersion
        return xp.concat([first, first + xp.cumulative_sum(ratios, axis=1)], axis=1)

    def _mean_up_to(self, k: np.ndarray) -> np.ndarray:
        rate, dispersion = self.host
        return rate * np.where(k >= 1, _level(1 + 1 / dispersion, np.maximum(k, 1), dispersion * rate), 0.0)

    def _half_difference(self) -> np.ndarray:
        """``integral (1 - |cf|^2) / v^2 dv / (2 pi)`` over ``v = tan(w / 2) > 0``, by the trapezoid rule in ``log v``."""
        rate, dispersion = (column[:, None] for column in self.host)
        odds = 4 * dispersion * rate * (1 + dispersion * rate)
        centre = -0.5 * np.log(odds / dispersion)
        x = centre + np.arange(-REACH, REACH, STEP)
        square = np.exp(2 * x)
        outside = -np.expm1(-np.log1p(odds * square / (1 + square)) / dispersion)
        return STEP / (2 * np.pi) * (outside * np.exp(-x)).sum(axis=1)

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Rates between 1/2 and 10, dispersions between 0.1 and 1."""
        return cls(rng.uniform(0.5, 10, n), rng.uniform(0.1, 1, n))


def _level(a: np.ndarray, b: np.ndarray, odds: np.ndarray) -> np.ndarray:
    """The incomplete beta integral ``I_x(a, b)`` at ``x = 1 / (1 + odds)``, by the smaller of x and 1 - x."""
    return np.where(odds > 1, betainc(a, b, 1 / (1 + odds)), betaincc(b, a, 1 / (1 + 1 / odds)))
