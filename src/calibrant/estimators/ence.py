"""The expected normalised calibration error: predicted against observed spread, along the predicted spread."""

from dataclasses import dataclass

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import check_count
from calibrant.distributions.base import Distribution
from calibrant.estimators.base import BaseEstimator, Statistic
from calibrant.estimators.binning import EqualMass
from calibrant.estimators.z_scores import moments_of
from calibrant.results import Estimate, Table
from calibrant.typing import Array


@dataclass(frozen=True)
class ENCE(BaseEstimator):
    """Expected normalised calibration error: mean over bins of ``|RMV - RMSE| / RMV``.

    Rows are cut into ``n_bins`` of equal size by their predicted standard deviation (equal ones share a bin). RMV is the root
    of the mean predicted variance of a bin, RMSE that of the mean squared error of the predicted means; bins count by
    their rows. Of vectors, variances and squares are means over coordinates. Never zero, and the larger the fewer rows
    a bin has: read it beside the null band of :class:`~calibrant.ExactTest`. The table has the bins. O(n log n).
    Levi et al. (2022).

    >>> from calibrant import Normal
    >>> ENCE(n_bins=2)([1.0, -1.0, 3.0, -3.0], Normal(np.zeros(4), [1.0, 1.0, 2.0, 2.0])).table
    lower  upper  weight  predicted  observed
        1      1       2          1         1
        2      2       2          2         3
    """

    n_bins: int = 10

    least = 0.0

    def __post_init__(self) -> None:
        check_count(self.n_bins, "n_bins")

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The error with its bins."""
        spreads = self.spreads(predictions, weights)
        y = to_numpy(targets)[None]
        table = Table(
            lower=[spreads.spread[cell].min() for cell in spreads.rows],
            upper=[spreads.spread[cell].max() for cell in spreads.rows],
            weight=spreads.weight,
            predicted=spreads.predicted,
            observed=spreads.observed(y)[0],
        )
        return Estimate("ENCE", float(spreads(y)[0]), len(predictions), self, table=table)

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """Bins, and the spreads predicted in them, are found once."""
        return self.spreads(predictions, weights)

    def spreads(self, predictions: Distribution, weights: np.ndarray | None) -> "Spreads":
        """The bins of these predictions."""
        mean, std = moments_of(predictions, self)
        variance = std**2 if std.ndim == 1 else (std**2).mean(axis=1)
        spread = np.sqrt(variance)
        which = EqualMass(self.n_bins).bins(spread, weights).index(spread)
        indicator = (which[:, None] == np.unique(which)).astype(np.float64)
        indicator *= 1.0 if weights is None else weights[:, None]
        weight = indicator.sum(axis=0)
        return Spreads(mean, spread, indicator, weight, np.sqrt(variance @ indicator / weight))


@dataclass(frozen=True, eq=False)
class Spreads:
    """Rows in bins by their predicted spread, and what redrawn targets show there."""

    mean: np.ndarray
    spread: np.ndarray
    indicator: np.ndarray
    weight: np.ndarray
    predicted: np.ndarray

    @property
    def rows(self) -> list[np.ndarray]:
        """Which rows each bin holds."""
        return [column > 0 for column in self.indicator.T]

    def observed(self, targets: np.ndarray) -> np.ndarray:
        """The root of the mean squared error of each bin, ``(m, bins)``."""
        squares = (targets - self.mean) ** 2
        squares = squares if self.mean.ndim == 1 else squares.mean(axis=-1)
        return np.sqrt(squares @ self.indicator / self.weight)

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """The error of each redraw."""
        gap = np.abs(self.predicted - self.observed(targets)) / self.predicted
        return gap @ self.weight / self.weight.sum()
