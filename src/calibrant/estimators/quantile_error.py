"""The quantile calibration error: how often targets fall below their predicted quantiles."""

from dataclasses import dataclass

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import as_levels
from calibrant.distributions.base import Distribution
from calibrant.estimators.base import BaseEstimator, Statistic
from calibrant.estimators.pit import Levels, levels_of, share_upto
from calibrant.results import Estimate, Table
from calibrant.typing import Array

TWENTIETHS = tuple(round(i / 20, 2) for i in range(1, 20))


@dataclass(frozen=True)
class QuantileError(BaseEstimator):
    """Quantile calibration error: mean over ``levels`` u of ``|share of targets below their u-quantile - u|``.

    With ``squared=True`` the mean of squares. A target whose value has a probability of its own counts for the part of it that
    lies below u, so that a calibrated forecast of counts has no error either. The table has each level. Never negative, hence
    biased upwards: read it beside the null band of :class:`~calibrant.ExactTest`. O(n) a level.
    Kuleshov, Fenner & Ermon (2018).

    >>> from calibrant import Normal
    >>> QuantileError([0.25, 0.5, 0.75])([-1.0, 1.0], Normal([0.0, 0.0], 1.0)).table
    level  observed    gap
     0.25       0.5   0.25
      0.5       0.5      0
     0.75       0.5  -0.25
    """

    levels: tuple[float, ...] = TWENTIETHS
    squared: bool = False

    least = 0.0
    most = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", as_levels(self.levels, "levels"))

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The mean over levels, with the share below each."""
        statistic = self._shares(predictions, weights)
        observed = statistic.observed(to_numpy(targets)[None])[:, 0]
        table = Table(level=self.levels, observed=observed, gap=observed - self.levels)
        value = statistic(to_numpy(targets)[None])[0]
        return Estimate("QuantileError", float(value), len(predictions), self, table=table)

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """Shares of all redraws."""
        return self._shares(predictions, weights)

    def _shares(self, predictions: Distribution, weights: np.ndarray | None) -> "_Shares":
        w = np.full(len(predictions), 1.0) if weights is None else weights
        return _Shares(self, levels_of(predictions, self), w / w.sum())


@dataclass(frozen=True, eq=False)
class _Shares:
    error: QuantileError
    levels: Levels
    weights: np.ndarray

    def observed(self, targets: np.ndarray) -> np.ndarray:
        """The share of targets below each level, ``(levels, m)``."""
        levels = self.levels(targets)
        return np.stack([share_upto(levels, u) @ self.weights for u in self.error.levels])

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        gap = np.abs(self.observed(targets) - np.array(self.error.levels)[:, None])
        return (gap**2 if self.error.squared else gap).mean(axis=0)
