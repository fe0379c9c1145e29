"""The pinball loss of quantiles."""

from dataclasses import dataclass, replace

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import as_levels
from calibrant.distributions.base import Distribution
from calibrant.distributions.quantiles import fan_of, forecast_at
from calibrant.estimators.scores import Score
from calibrant.results import Estimate, Table
from calibrant.typing import Array

DECILES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class Pinball(Score):
    """Pinball loss: the mean over ``levels`` u of ``([y < q] - u) (q - y)`` with q the predicted quantile at u.

    The score that quantile regression minimises; at 1/2 it is half the absolute error of the median. Twice its mean over
    all levels is the CRPS. Quantile forecasts have the levels that they were given at, and no others. The table has each
    level by itself. O(n) a level. Koenker & Bassett (1978).

    >>> from calibrant import Normal, Pinball
    >>> Pinball([0.5, 0.9])([1.0, -1.0], Normal([0.0, 0.0], 1.0)).table
    level   value
      0.5     0.5
      0.9  0.1282
    """

    name = "Pinball"
    least = 0.0
    reads_quantiles = True

    levels: tuple[float, ...] = DECILES

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", as_levels(self.levels, "levels"))

    def of_levels(self, targets: Array, predictions: Distribution) -> np.ndarray:
        """The loss of each level and row, ``(levels, ..., n)``."""
        u = self._levels(predictions)
        quantiles = forecast_at(predictions, u, self)
        y = to_numpy(targets)
        return np.stack([((y < q) - level) * (q - y) for level, q in zip(u, quantiles.T, strict=True)])

    def _levels(self, predictions: Distribution) -> np.ndarray:
        """Those asked for; where nothing was said, quantile forecasts have their own."""
        fan = fan_of(predictions)
        return np.array(self.levels) if fan is None or self.levels != DECILES else fan.levels

    def losses(self, targets: Array, predictions: Distribution) -> np.ndarray:
        """The mean over levels of each row."""
        return self.of_levels(targets, predictions).mean(axis=0)

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The mean loss, its standard error, and the mean of each level."""
        values = np.average(self.of_levels(targets, predictions), axis=1, weights=weights)
        return replace(
            super().estimate(targets, predictions, weights), table=Table(level=self._levels(predictions), value=values)
        )
