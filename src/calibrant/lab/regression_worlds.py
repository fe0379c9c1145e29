"""Worlds of real targets."""

from dataclasses import dataclass

import numpy as np

from calibrant._validate import check_count
from calibrant.distributions.base import Distribution
from calibrant.distributions.continuous.location_scale import Normal
from calibrant.distributions.multivariate import MultivariateNormal
from calibrant.lab.world import World, check_positive

TRUTH = {
    ("calibrated", 1): 0.0,
    ("calibrated", 10): 0.0,
    ("uncalibrated", 1): 0.11077370177373,
    ("uncalibrated", 10): 0.059597541130037,
}
"""SKCE of :class:`SyntheticNormal` in 1 and 10 dimensions, to all digits, for ``exp(-W2) exp(-|y - y'|^2 / 2)``."""


@dataclass(frozen=True)
class SyntheticNormal(World):
    """Predictions ``N(c 1, 0.1^2 I)`` with c uniform; uncalibrated, the first coordinate of targets is centred at 0.1.

    Widmann, Lindsten & Zachariah (2021), appendix A.2.

    >>> y, predictions = SyntheticNormal(dimensions=10).draw(4, np.random.default_rng(0))
    >>> y.shape, predictions
    ((4, 10), <MultivariateNormal: 4 predictions in 10 dimensions>)
    """

    is_calibrated: bool = True
    dimensions: int = 1

    def __post_init__(self) -> None:
        check_count(self.dimensions, "dimensions")

    def given(self, u: np.ndarray) -> tuple[Distribution, Distribution]:
        """The feature is c."""
        loc = np.repeat(u, self.dimensions, axis=1)
        centre = loc.copy()
        if not self.is_calibrated:
            centre[:, 0] = 0.1
        return MultivariateNormal(loc, scale=0.1), MultivariateNormal(centre, scale=0.1)


@dataclass(frozen=True)
class LeastSquares(World):
    """A straight line with one variance, fitted to ``sin(pi x) + |1 + x| N(0, 0.15^2)`` with x uniform on [-1, 1].

    Its quantiles are nearly right on average and wrong given the prediction. The line is the ordinary least-squares fit
    to ``training_rows`` rows drawn with ``training_seed``. Widmann, Lindsten & Zachariah (2021), figure 1, appendix A.1.

    >>> slope, intercept, spread = LeastSquares(training_rows=100_000).line
    >>> bool(abs(slope - 3 / np.pi) < 0.01 and abs(intercept) < 0.01)
    True
    """

    training_rows: int = 100
    training_seed: int = 0

    def __post_init__(self) -> None:
        check_count(self.training_rows, "training_rows", least=3)

    @property
    def is_calibrated(self) -> bool:
        """No straight line is a sine."""
        return False

    @property
    def line(self) -> tuple[float, float, float]:
        """Slope, intercept and residual standard deviation with n - 2 degrees of freedom."""
        rng = np.random.default_rng(self.training_seed)
        x = 2 * rng.random(self.training_rows) - 1
        y = _sine(x).sample(rng, 1)[0]
        slope, intercept = np.polyfit(x, y, 1)
        spread = np.sqrt(np.sum((y - intercept - slope * x) ** 2) / (self.training_rows - 2))
        return float(slope), float(intercept), float(spread)

    def given(self, u: np.ndarray) -> tuple[Distribution, Distribution]:
        """The feature is x, mapped to [0, 1]."""
        x = 2 * u[:, 0] - 1
        slope, intercept, spread = self.line
        return Normal(intercept + slope * x, spread), _sine(x)


def _sine(x: np.ndarray) -> Normal:
    return Normal(np.sin(np.pi * x), np.maximum(0.15 * np.abs(1 + x), np.finfo(float).tiny))


@dataclass(frozen=True)
class WrongScale(World):
    """Normal predictions whose standard deviations are ``factor`` times the true ones, which run from 1/2 to 3/2.

    >>> WrongScale(factor=0.5).is_calibrated
    False
    """

    factor: float = 1.0

    def __post_init__(self) -> None:
        check_positive(self.factor, "factor")

    @property
    def is_calibrated(self) -> bool:
        """Factor 1."""
        return self.factor == 1

    def given(self, u: np.ndarray) -> tuple[Distribution, Distribution]:
        """Location and scale grow with the feature."""
        loc, scale = 2 * u[:, 0] - 1, 0.5 + u[:, 0]
        return Normal(loc, self.factor * scale), Normal(loc, scale)
