"""Families on a finite interval: beta predictions of shares and rates, and uniform ones."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self, TypeAlias

import numpy as np
from scipy.special import betainc, betaincinv, betaln, jv, xlog1py, xlogy

from calibrant._array import matched, namespace, to_numpy
from calibrant._validate import MIN_NUMBER, InputError, check_finite
from calibrant.distributions.base import check_temperature
from calibrant.distributions.continuous.positive import MIN_DRAW
from calibrant.distributions.parametric import Parametric, check_positive
from calibrant.kernels import Energy, Exponential
from calibrant.kernels.base import closed_form
from calibrant.typing import Array, ArrayLike

MAX_COUNT = 1e12
"""The largest parameter of a beta distribution: its standard deviation then is a millionth."""

BELOW_ONE = 1 - 2.0**-53
"""The largest number below one; draws are rounded to it rather than to one."""


@dataclass(frozen=True, eq=False, repr=False)
class Beta(Parametric):
    """Beta distributions, density proportional to ``y^(a - 1) (1 - y)^(b - 1)`` on (0, 1), ``(n,)`` each.

    Coordinates are mean and standard deviation, which say all of such a prediction. Their Euclidean distance is the part of
    the Wasserstein distance W2 that is due to the first two moments, a lower bound of W2. Gelbrich (1990). Tempering refers
    to the measure ``dy / (y (1 - y))`` and leaves the mean where it is. Widmann, Lindsten & Zachariah (2021), appendix F.

    >>> Beta(a=[1.0, 2.0], b=1.0).coords.round(4)
    array([[0.5   , 0.2887],
           [0.6667, 0.2357]])
    """

    a: Array
    b: Array

    def __post_init__(self) -> None:
        super().__post_init__()
        for column, name in ((self.a, "a"), (self.b, "b")):
            check_positive(
                column, name, least=MIN_NUMBER, most=MAX_COUNT, remedy="cut it off there, or drop those rows"
            )

    @property
    def coords(self) -> Array:
        """``(mean, standard deviation)``, ``(n, 2)``."""
        return namespace(self.a).stack([self.mean, self.std], axis=1)

    @property
    def mean(self) -> Array:
        """``a / (a + b)``."""
        return self.a / (self.a + self.b)

    @property
    def std(self) -> Array:
        """``sqrt(a b / (a + b + 1)) / (a + b)``."""
        total = self.a + self.b
        return (self.a / total * (self.b / total) / (total + 1)) ** 0.5

    @property
    def kinks(self) -> np.ndarray:
        """Both ends."""
        return np.tile([0.0, 1.0], (len(self), 1))

    def as_targets(self, y_true: ArrayLike) -> Array:
        """Numbers strictly between 0 and 1, ``(n,)``."""
        y = super().as_targets(y_true)
        low, high = check_finite(y, "y_true")
        if low <= 0 or high >= 1:
            raise InputError(
                "y_true must lie strictly between 0 and 1, as the ends cannot happen under Beta predictions; found "
                f"{low if low <= 0 else high:g}: leave those rows out, or divide percentages by 100"
            )
        return y

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draws ``(size, n)``."""
        a, b = self.host
        return np.clip(rng.beta(a, b, (size, len(a))), MIN_DRAW, BELOW_ONE)

    def log_prob(self, targets: Array) -> Array:
        """Log density; ``-inf`` outside of (0, 1)."""
        a, b = self.host
        y = to_numpy(targets)
        inside = (y > 0) & (y < 1)
        z = np.where(inside, y, 0.5)
        return np.where(inside, xlogy(a - 1, z) + xlog1py(b - 1, -z) - betaln(a, b), -np.inf)

    def cdf(self, y: Array) -> Array:
        """``P(Y <= y)``."""
        return betainc(*self.host, np.clip(to_numpy(y), 0, 1))

    def quantile(self, u: Array) -> Array:
        """Values ``(n, m)`` at the levels u."""
        a, b = (column[:, None] for column in self.host)
        return betaincinv(a, b, to_numpy(u)[None, :])

    def crps(self, y: Array) -> Array:
        """In closed form. Jordan, Krüger & Lerch (2019)."""
        a, b = self.host
        z = np.clip(to_numpy(y), 0, 1)
        mean = a / (a + b)
        around = to_numpy(y) * (2 * betainc(a, b, z) - 1) - mean * (2 * betainc(a + 1, b, z) - 1)
        return around - 2 / (a + b) * np.exp(betaln(2 * a, 2 * b) - 2 * betaln(a, b))

    def cf(self, w: Array) -> tuple[Array, Array]:
        """``1F1(a; a + b; i w)``, as a sum of Bessel functions times the means of Chebyshev polynomials."""
        a, b = self.host
        half = to_numpy(w).astype(np.float64) / 2
        means = _chebyshev_means(a, b, _terms(float(np.abs(half).max())))
        k = np.arange(len(means))
        weights = np.where(k == 0, 1, 2) * np.array([1, 1j, -1, -1j])[k % 4]
        found = (means.T @ (weights[:, None] * jv(k[:, None], half))) * np.exp(1j * half)
        return matched(found.real, self.a), matched(found.imag, self.a)

    def temper(self, temperature: float) -> Self:
        """Both parameters divided by T."""
        check_temperature(temperature)
        return self._trusted(self.a / temperature, self.b / temperature)

    def log_reference(self, y: Array) -> Array:
        """``1 / (y (1 - y))``, length on the scale of log-odds."""
        y = to_numpy(y)
        return -np.log(y) - np.log1p(-y)

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Parameters between 1 and 6."""
        return cls(rng.uniform(1, 6, n), rng.uniform(1, 6, n))


def _terms(z: float) -> int:
    """Bessel functions of z of higher orders than this are below rounding."""
    return int(z + 10 * z ** (1 / 3) + 30)


def _chebyshev_means(a: np.ndarray, b: np.ndarray, most: int) -> np.ndarray:
    """``E T_k(2 Y - 1)`` of Chebyshev polynomials up to the order ``most``, ``(most + 1, n)``. Piessens & Branders (1973)."""
    means = [np.ones_like(a), (a - b) / (a + b)]
    for k in range(1, most):
        means.append((2 * (a - b) * means[k] - (a + b - k) * means[k - 1]) / (a + b + k))
    return np.stack(means)


SERIES = 0.5
"""Widths in length scales below which a difference of nearly equal numbers is summed as a series."""


@dataclass(frozen=True, eq=False, repr=False)
class Uniform(Parametric):
    """Uniform distributions between ``low`` and ``high``, ``(n,)`` each; targets may lie outside, at probability zero.

    Coordinates are mean and standard deviation: their Euclidean distance is the Wasserstein distance W2. Exponential and
    energy kernels have closed forms; Gaussian kernels take their spectrum, which is exact to rounding as nothing lies outside.

    >>> Uniform([0.0, 1.0], high=4.0).coords.round(4)
    array([[2.    , 1.1547],
           [2.5   , 0.866 ]])
    """

    largest = math.inf

    low: Array
    high: Array

    def __post_init__(self) -> None:
        super().__post_init__()
        narrowest, _ = check_finite(self.high - self.low, "high - low")
        if narrowest <= 0:
            row = int(namespace(self.low).argmin(self.high - self.low))
            ends = f"{float(self.low[row]):g} and {float(self.high[row]):g}"
            raise InputError(f"low must lie below high; found {ends} in row {row}")
        check_positive(self.high - self.low, "high - low", least=MIN_NUMBER)

    @property
    def coords(self) -> Array:
        """``(mean, standard deviation)``, ``(n, 2)``."""
        return namespace(self.low).stack([self.mean, self.std], axis=1)

    @property
    def position(self) -> Array:
        """The lower ends."""
        return self.low

    def shifted(self, by: float) -> Self:
        """Between other ends."""
        return self._trusted(self.low + by, self.high + by)

    @property
    def mean(self) -> Array:
        """The middle."""
        return self.low / 2 + self.high / 2

    @property
    def std(self) -> Array:
        """The width over ``sqrt(12)``."""
        return (self.high - self.low) / 12**0.5

    @property
    def kinks(self) -> np.ndarray:
        """Both ends."""
        return np.stack(self.host, axis=1)

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
        with np.errstate(over="ignore"):
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


Average: TypeAlias = Callable[[Array, Array, Array], Array]
"""A mean over two ranges from their distance and their widths."""


def _over_pieces(p: Uniform, q: Uniform, apart: Average, within: Average) -> Array:
    """The mean of a function of ``|X - Y|``, ``(n, m)``, from its means over ranges that lie apart or coincide.

    Each range is cut at the ends of the other, so that pieces are apart but for the middle ones, which coincide (or are
    points); nothing cancels, however narrow the ranges are.
    """
    xp = namespace(p.low)
    a, b, c, d = (x + 0 * (p.low[:, None] + q.low[None, :]) for x in (p.low[:, None], p.high[:, None], q.low, q.high))
    first, second = _pieces(a, b, c, d), _pieces(c, d, a, b)
    total = xp.zeros_like(a)
    for i, (low, high, share) in enumerate(first):
        for j, (bottom, top, part) in enumerate(second):
            gap = xp.maximum(xp.maximum(bottom - high, low - top), xp.zeros_like(a))
            mean = within if i == j == 1 else apart
            total = total + share * part * mean(gap, high - low, top - bottom)
    return total


def _pieces(a: Array, b: Array, c: Array, d: Array) -> list[tuple[Array, Array, Array]]:
    """The range from a to b cut at c and d: both ends of each piece, and its share of the whole; a point is the middle one."""
    xp = namespace(a)
    cuts = [a, *(xp.minimum(xp.maximum(x, a), b) for x in (c, d)), b]
    width = b - a
    spread = width > 0
    unit = xp.where(spread, width, xp.ones_like(a))
    found = []
    for i, (low, high) in enumerate(pairwise(cuts)):
        of_point = xp.ones_like(a) if i == 1 else xp.zeros_like(a)
        found.append((low, high, xp.where(spread, (high - low) / unit, of_point)))
    return found


@closed_form(Exponential, Uniform, Uniform)
def _exponential(kernel: Exponential, p: Uniform, q: Uniform) -> Any:
    """Products of means over each range where they are apart."""
    if kernel.power != 1:
        return NotImplemented
    unit, xp = kernel.unit, namespace(p.low)

    def apart(gap: Array, h: Array, k: Array) -> Array:
        return xp.exp(-gap / unit) * _mean_decay(h / unit) * _mean_decay(k / unit)

    def within(gap: Array, h: Array, k: Array) -> Array:  # noqa: ARG001
        return xp.exp(-gap / unit) * _mean_decay_within(h / unit)

    return _over_pieces(p, q, apart, within)


def _mean_decay(h: Array) -> Array:
    """The mean of ``exp(-x)`` from 0 to h."""
    xp = namespace(h)
    some = h > 0
    width = xp.where(some, h, xp.ones_like(h))
    return xp.where(some, -xp.expm1(-width) / width, xp.ones_like(h))


def _mean_decay_within(h: Array) -> Array:
    """The mean of ``exp(-|x - y|)`` for x and y from 0 to h: ``2 (h + exp(-h) - 1) / h^2``."""
    xp = namespace(h)
    near = xp.minimum(h, SERIES * xp.ones_like(h))
    series = sum(2 * (-near) ** k / math.factorial(k + 2) for k in range(14))
    far = xp.maximum(h, SERIES * xp.ones_like(h))
    return xp.where(h < SERIES, series, 2 * (far + xp.expm1(-far)) / far**2)


@closed_form(Energy, Uniform, Uniform)
def _energy(kernel: Energy, p: Uniform, q: Uniform) -> Array:  # noqa: ARG001
    """From mean distances of each other and of zero."""
    origin = p.point(namespace(p.low).zeros_like(p.low[:1]))
    rows, columns = _mean_distance(p, origin), _mean_distance(origin, q)
    return (rows + columns - _mean_distance(p, q)) / 2


def _mean_distance(p: Uniform, q: Uniform) -> Array:
    """``E |X - Y|``."""
    return _over_pieces(p, q, lambda gap, h, k: gap + (h + k) / 2, lambda gap, h, k: gap + (h + k) / 6)
