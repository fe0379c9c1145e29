"""Counts: Poisson predictions, and negative binomial ones, which vary more."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.special import betainc, betaincc, betaln, gammaincc, gammaln, i0e, i1e, pdtrc, xlogy

from calibrant._array import gammaln as log_gamma
from calibrant._array import matched, namespace, to_numpy
from calibrant._validate import MIN_NUMBER, InputError, check_finite
from calibrant.distributions.empirical.ensemble import Ensemble
from calibrant.distributions.parametric import Parametric, as_columns, check_positive
from calibrant.kernels import Kernel
from calibrant.kernels.base import closed_form
from calibrant.typing import Array, ArrayLike

TAIL = 1e-16
"""Probability beyond the last count of a sum."""

MAX_COUNTS = 2048
"""Sums over more counts than this cost more than another route."""

LARGEST_RATE = 1e100
"""Larger counts are taken as this one: the functions behind their levels end."""

MAX_RATE = 1e15
"""Larger rates have counts that double precision cannot tell apart."""


def check_rate(rate: Array) -> None:
    """Refuse rates that are not positive, or too large to count to."""
    check_positive(rate, "rate")
    _, high = check_finite(rate, "rate")
    if high > MAX_RATE:
        raise InputError(f"rate must be at most {MAX_RATE:g}, so that counts are whole numbers; found {high:g}")


@dataclass(frozen=True, eq=False, repr=False)
class Counts(Parametric):
    """A batch of distributions of counts.

    Coordinates are mean and standard deviation. Their Euclidean distance is the part of the Wasserstein distance W2 that is
    due to the first two moments, a lower bound of W2. Gelbrich (1990).
    """

    @property
    def coords(self) -> Array:
        """``(mean, standard deviation)``, ``(n, 2)``."""
        return namespace(self.mean).stack([self.mean, self.std], axis=1)

    @property
    def is_cheaper_by_features(self) -> bool:
        """Sums run over all pairs of counts."""
        return True

    def as_targets(self, y_true: ArrayLike) -> Array:
        """Whole numbers from zero, ``(n,)``, in floating point, as kernels on real numbers take them."""
        y = super().as_targets(y_true)
        host = to_numpy(y)
        wrong = (host < 0) | (host != np.floor(host))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(f"y_true must be counts: 0, 1, 2, ...; found {host[row]:g} in row {row}")
        return y

    @abstractmethod
    def _at_most(self, k: np.ndarray, *parameters: np.ndarray) -> np.ndarray:
        """``P(Y <= k)`` for whole k >= 0 and parameters that go with them."""

    @abstractmethod
    def _more_than(self, k: np.ndarray, *parameters: np.ndarray) -> np.ndarray:
        """``P(Y > k)``, with all digits however small."""

    @abstractmethod
    def _log_masses(self, k: Array) -> Array:
        """Log probabilities ``(n, m)`` of the counts k = 0, ..., m - 1, in the library of the parameters."""

    @abstractmethod
    def _mean_up_to(self, k: np.ndarray) -> np.ndarray:
        """``E Y 1{Y <= k}`` for whole k."""

    @abstractmethod
    def _half_difference(self) -> np.ndarray:
        """``E |Y - Y'| / 2``."""

    def cdf(self, y: Array) -> Array:
        """``P(Y <= y)``."""
        k = np.floor(to_numpy(y))
        return np.where(k < 0, 0.0, self._at_most(np.clip(k, 0, LARGEST_RATE), *self.host))

    def below(self, y: Array) -> Array:
        """``P(Y < y)``."""
        return self.cdf(np.ceil(to_numpy(y)) - 1)

    def quantile(self, u: Array) -> Array:
        """The least counts ``(n, m)`` with ``cdf >= u``, by bisection; ``inf`` at one."""
        levels = np.broadcast_to(to_numpy(u).astype(np.float64), (len(self), len(u)))
        found = self._first(lambda k, *parameters: self._at_most(k, *parameters) >= levels, levels < 1)
        return np.where(levels < 1, found, np.inf)

    @cached_property
    def last(self) -> int:
        """The count that no row exceeds but with a probability below rounding."""
        return int(self._first(lambda k, *parameters: self._more_than(k, *parameters) <= TAIL, None).max())

    def _first(self, reached: Any, wanted: Any) -> np.ndarray:
        """The least count of each row ``(n, m)`` from which a condition holds, where that is wanted."""
        parameters = [column[:, None] for column in self.host]
        mean, std = (to_numpy(x).astype(np.float64)[:, None] for x in (self.mean, self.std))
        high = np.floor(mean + 8 * std) + 1
        at_end = reached(high, *parameters)
        done = at_end if wanted is None else at_end | ~wanted
        low = np.full(done.shape, -1.0)
        high = np.broadcast_to(high, done.shape)
        while not done.all():
            low, high = np.where(done, low, high), np.where(done, high, 2 * high + 1)
            at_end = reached(high, *parameters)
            done = done | at_end
        while np.any(high - low > np.maximum(1, np.spacing(high))):  # from 2^53 on not every count is a number
            middle = np.floor((low + high) / 2)
            there = reached(np.maximum(middle, 0), *parameters) & (middle >= 0)
            low, high = np.where(there, low, middle), np.where(there, middle, high)
        return high

    def crps(self, y: Array) -> Array:
        """``E|Y - y| - E|Y - Y'| / 2``, both in closed form."""
        y = to_numpy(y).astype(np.float64)
        mean = to_numpy(self.mean).astype(np.float64)
        around = y * (2 * self.cdf(y) - 1) + mean - 2 * self._mean_up_to(np.floor(y))
        return around - self._half_difference()

    def masses(self, last: int) -> Array:
        """Probabilities of 0, ..., last, ``(n, last + 1)``."""
        first = self.parameters[0]
        k = namespace(first).astype(matched(np.arange(last + 1.0), first), first.dtype)
        return namespace(first).exp(self._log_masses(k))


def _support(p: Counts, *others: Counts) -> Any:
    """Points ``(m, 1)`` that hold the counts of all batches, or ``NotImplemented`` where they are too many."""
    last = max(batch.last for batch in (p, *others))
    if last >= MAX_COUNTS:
        return NotImplemented
    first = p.parameters[0]
    return namespace(first).astype(matched(np.arange(last + 1.0)[:, None], first), first.dtype)


@closed_form(Kernel, Counts, Counts)
def _both(kernel: Kernel, p: Counts, q: Counts) -> Any:
    """A bilinear form in the masses of both."""
    points = _support(p, q)
    if points is NotImplemented:
        return NotImplemented
    last, xp = points.shape[0] - 1, namespace(points)
    return p.masses(last) @ (kernel(points, points) @ xp.permute_dims(q.masses(last), (1, 0)))


@closed_form(Kernel, Counts, Ensemble)
def _rows(kernel: Kernel, p: Counts, q: Ensemble) -> Any:
    """A sum over the masses of the first and the members of the second."""
    points = _support(p)
    if points is NotImplemented or q.members.ndim != 2:
        return NotImplemented
    xp = namespace(q.members)
    values = kernel(points, xp.reshape(q.members, (-1, 1)))
    by_member = xp.permute_dims(xp.reshape(values, (points.shape[0], *q.members.shape)), (1, 2, 0))
    return p.masses(points.shape[0] - 1) @ xp.permute_dims(q.average(by_member), (1, 0))


@closed_form(Kernel, Ensemble, Counts)
def _columns(kernel: Kernel, p: Ensemble, q: Counts) -> Any:
    """The same with the arguments exchanged."""
    found = _rows(kernel, q, p)
    return NotImplemented if found is NotImplemented else namespace(found).permute_dims(found, (1, 0))


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


MAX_DISPERSION = 1e6
"""Larger ones have a standard deviation of a thousand means."""

HEAVY = "give another rate to those rows, or drop them"

LARGEST_DRAWN_RATE = 9e18
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
        check_positive(self.dispersion, "dispersion", least=MIN_NUMBER, most=MAX_DISPERSION, remedy=HEAVY)

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
        return rng.poisson(np.minimum(drawn, LARGEST_DRAWN_RATE))

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
