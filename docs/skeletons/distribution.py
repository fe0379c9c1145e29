"""A complete family: Poisson counts. Copy, rename, change.

>>> import numpy as np
>>> from calibrant import ExactTest, LogLoss
>>> rng = np.random.default_rng(0)
>>> predictions = Poisson.example(rng, 300)
>>> honest = predictions.sample(rng, 1)[0]
>>> ExactTest(LogLoss(), alternative="two-sided")(honest, predictions).pvalue > 0.05
True
>>> ExactTest(LogLoss())(2 * honest, predictions).pvalue
0.001
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import gammaln, xlogy

from calibrant._validate import InputError, as_array, check_finite, check_not_empty
from calibrant.distributions.base import Distribution
from calibrant.typing import Array, ArrayLike


@dataclass(frozen=True, eq=False)
class Poisson(Distribution):
    """Counts with mean ``rate``, ``(n,)``."""

    rate: Array

    def __post_init__(self) -> None:
        rate = as_array(self.rate, "rate")
        check_not_empty(rate, "rate")
        low, _ = check_finite(rate, "rate")
        if low <= 0:
            raise InputError(f"rate must be positive; found {low:g}")
        object.__setattr__(self, "rate", rate)

    def __len__(self) -> int:
        return int(self.rate.shape[0])

    def __getitem__(self, rows: slice | Array) -> Self:
        return type(self)(self.rate[rows])

    def as_targets(self, y_true: ArrayLike) -> Array:
        """Whole numbers from 0."""
        y = as_array(y_true, "y_true")
        if y.dtype.kind not in "iu" or y.min() < 0:
            raise InputError(f"y_true must be counts; got {y.dtype} with minimum {y.min()}")
        return y

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Counts, ``(size, n)``."""
        return rng.poisson(self.rate, (size, len(self)))

    def log_prob(self, targets: Array) -> Array:
        """Log mass of each count."""
        return xlogy(targets, self.rate) - self.rate - gammaln(targets + 1)

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Rates between 1 and 10."""
        return cls(rng.uniform(1, 10, n))
