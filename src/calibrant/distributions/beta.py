"""Beta predictions: shares and rates between 0 and 1."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import betainc, betaincinv, betaln, jv, xlog1py, xlogy

from calibrant._array import namespace, to_numpy
from calibrant._validate import InputError, check_finite
from calibrant.distributions.base import check_temperature, matched
from calibrant.distributions.parametric import Parametric, check_positive
from calibrant.distributions.positive import SMALLEST
from calibrant.typing import Array, ArrayLike

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
        check_positive(self.a, "a")
        check_positive(self.b, "b")

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
        return np.clip(rng.beta(a, b, (size, len(a))), SMALLEST, BELOW_ONE)

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
