"""Gamma predictions: positive targets such as waiting times, amounts and costs."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import betaln, gammainc, gammaincinv, gammaln

from calibrant._array import namespace, to_numpy
from calibrant.distributions.base import check_temperature, matched
from calibrant.distributions.parametric import Parametric, check_positive
from calibrant.distributions.positive import SMALLEST, as_positive_targets, log_of_positive
from calibrant.typing import Array, ArrayLike


@dataclass(frozen=True, eq=False, repr=False)
class Gamma(Parametric):
    """Gamma distributions, density proportional to ``y^(shape - 1) exp(-rate y)``, ``(n,)`` each.

    Coordinates are mean and standard deviation, ``(shape, sqrt(shape)) / rate``, which say all of such a prediction. Their
    Euclidean distance is the part of the Wasserstein distance W2 that is due to the first two moments: a lower bound of W2,
    which it equals for predictions of one shape. Gelbrich (1990). Tempering refers to the measure ``dy / y``, as for
    Dirichlet distributions, and leaves the mean where it is.

    >>> Gamma(shape=[1.0, 4.0], rate=2.0).coords
    array([[0.5, 0.5],
           [2. , 1. ]])
    """

    shape: Array
    rate: Array

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self.shape, "shape")
        check_positive(self.rate, "rate")

    @property
    def coords(self) -> Array:
        """``(mean, standard deviation)``, ``(n, 2)``."""
        return namespace(self.shape).stack([self.mean, self.std], axis=1)

    @property
    def mean(self) -> Array:
        """``shape / rate``."""
        return self.shape / self.rate

    @property
    def std(self) -> Array:
        """``sqrt(shape) / rate``."""
        return self.shape**0.5 / self.rate

    @property
    def kinks(self) -> np.ndarray:
        """Zero, below which nothing lies."""
        return np.zeros((len(self), 1))

    def as_targets(self, y_true: ArrayLike) -> Array:
        """Positive numbers, ``(n,)``."""
        return as_positive_targets(self, super().as_targets(y_true))

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draws ``(size, n)``."""
        shape, rate = self.host
        return np.maximum(rng.standard_gamma(shape, (size, len(shape))) / rate, SMALLEST)

    def log_prob(self, targets: Array) -> Array:
        """Log density; ``-inf`` for what is not positive."""
        shape, rate = self.host
        y = to_numpy(targets)
        logs = log_of_positive(rate * y)
        with np.errstate(invalid="ignore"):
            found = (shape - 1) * logs - rate * y - gammaln(shape) + np.log(rate)
        return np.where(logs == -np.inf, -np.inf, found)

    def cdf(self, y: Array) -> Array:
        """``P(Y <= y)``."""
        shape, rate = self.host
        with np.errstate(over="ignore"):
            return gammainc(shape, rate * np.maximum(to_numpy(y), 0))

    def quantile(self, u: Array) -> Array:
        """Values ``(n, m)`` at the levels u."""
        shape, rate = (column[:, None] for column in self.host)
        return gammaincinv(shape, to_numpy(u)[None, :]) / rate

    def crps(self, y: Array) -> Array:
        """In closed form. Möller & Scheuerer (2015)."""
        shape, rate = self.host
        z = rate * np.maximum(to_numpy(y), 0)
        around = rate * to_numpy(y) * (2 * gammainc(shape, z) - 1) - shape * (2 * gammainc(shape + 1, z) - 1)
        return (around - np.exp(-betaln(0.5, shape))) / rate

    def cf(self, w: Array) -> tuple[Array, Array]:
        """``(1 - i w / rate)^-shape``."""
        xp, w = namespace(self.shape), matched(w, self.shape)
        ratio = w[None, :] / self.rate[:, None]
        size = xp.exp(-0.5 * self.shape[:, None] * xp.log1p(ratio**2))
        phase = self.shape[:, None] * xp.atan(ratio)
        return size * xp.cos(phase), size * xp.sin(phase)

    def temper(self, temperature: float) -> Self:
        """Shape and rate divided by T."""
        check_temperature(temperature)
        return self._trusted(self.shape / temperature, self.rate / temperature)

    def log_reference(self, y: Array) -> Array:
        """``1 / y``, length on the scale of logarithms."""
        return -np.log(to_numpy(y))

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Shapes between 1 and 5, rates between 1/2 and 2."""
        return cls(rng.uniform(1, 5, n), rng.uniform(0.5, 2, n))
