"""A complete family: exponential waiting times. Copy, rename, change.

>>> import numpy as np
>>> from calibrant import SKCE, ExactTest, LogLoss
>>> from calibrant.checks import check_distribution
>>> rng = np.random.default_rng(0)
>>> check_distribution(WaitingTime, rng)
>>> predictions = WaitingTime.example(rng, 300)
>>> y_true = predictions.sample(rng, 1)[0]
>>> ExactTest(LogLoss(), alternative="two-sided")(y_true, predictions).pvalue > 0.05
True
>>> ExactTest(LogLoss())(2 * y_true, predictions).pvalue
0.001
>>> SKCE()(y_true, predictions).route
'spectral; plain'
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant._array import namespace, to_numpy
from calibrant.distributions import Parametric, as_positive_targets, check_positive, matched
from calibrant.typing import Array, ArrayLike


@dataclass(frozen=True, eq=False, repr=False)
class WaitingTime(Parametric):
    """Exponential distributions with ``rate``, ``(n,)``; :class:`Parametric` takes care of rows, repetition and words."""

    rate: Array

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self.rate, "rate")

    def as_targets(self, y_true: ArrayLike) -> Array:
        """Positive numbers, ``(n,)``."""
        return as_positive_targets(self, super().as_targets(y_true))

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draws, ``(size, n)``."""
        (rate,) = self.host
        return np.maximum(rng.standard_exponential((size, len(rate))) / rate, np.finfo(np.float64).tiny)

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Rates between 1/2 and 2."""
        return cls(rng.uniform(0.5, 2, n))

    # What follows is optional: scores need log_prob, kernel errors need coords and one of cf, quantile, a closed form.

    def log_prob(self, targets: Array) -> Array:
        """Log density."""
        (rate,), y = self.host, to_numpy(targets)
        return np.where(y > 0, np.log(rate) - rate * y, -np.inf)

    def cdf(self, y: Array) -> Array:
        """``P(Y <= y)``."""
        return -np.expm1(-self.host[0] * np.maximum(to_numpy(y), 0))

    def quantile(self, u: Array) -> Array:
        """Values ``(n, m)`` at the quantile levels u."""
        with np.errstate(divide="ignore"):
            return -np.log1p(-to_numpy(u)) / self.host[0][:, None]

    def cf(self, w: Array) -> tuple[Array, Array]:
        """``1 / (1 - i w / rate)``."""
        ratio = matched(w, self.rate)[None, :] / self.rate[:, None]
        return 1 / (1 + ratio**2), ratio / (1 + ratio**2)

    @property
    def coords(self) -> Array:
        """``sqrt2 / rate``, ``(n, 1)``: the Wasserstein distance W2."""
        return 2**0.5 / namespace(self.rate).reshape(self.rate, (-1, 1))
