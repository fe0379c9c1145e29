"""The quantile calibration error: how often targets fall below their predicted quantiles."""

from dataclasses import dataclass

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import as_levels
from calibrant.distributions.base import Distribution
from calibrant.distributions.quantiles import fan_of, forecast_at
from calibrant.estimators.base import BaseEstimator, Statistic
from calibrant.estimators.pit import Levels, levels_of, share_upto
from calibrant.estimators.quantile_cells import SharesBelow, judged_at
from calibrant.results import Estimate, Table
from calibrant.typing import Array

TWENTIETHS = tuple(round(i / 20, 2) for i in range(1, 20))


@dataclass(frozen=True)
class QuantileError(BaseEstimator):
    """Quantile calibration error: mean over ``levels`` u of ``|share of targets below their u-quantile - u|``.

    With ``squared=True`` the mean of squares. Quantile forecasts have the levels that they were given at, and no others.
    A target whose value has a probability of its own counts for the part of it that lies below u, so that a calibrated
    forecast of counts has no error either. The table has each level. Never negative, hence biased upwards: read it beside
    the null band of :class:`~calibrant.ExactTest`. O(n) a level. Kuleshov, Fenner & Ermon (2018).

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
    rests_on_levels = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", as_levels(self.levels, "levels"))

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The mean over levels, with the share below each."""
        statistic, fan = self._shares(predictions, weights), fan_of(predictions)
        observed = statistic.observed(to_numpy(targets)[None])[0]
        table = Table(level=statistic.at, observed=observed, gap=observed - statistic.at)
        value = statistic(to_numpy(targets)[None])[0]
        notes = () if fan is None else (judged_at(fan),)
        return Estimate("QuantileError", float(value), len(predictions), self, table=table, notes=notes)

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """Shares of all redraws."""
        return self._shares(predictions, weights)

    def _shares(self, predictions: Distribution, weights: np.ndarray | None) -> "_Shares":
        if (fan := fan_of(predictions)) is not None:
            at = fan.levels if self.levels == TWENTIETHS else np.array(self.levels)
            forecast_at(fan, at, self)  # refuses others
            return _Shares(self.squared, at, SharesBelow.of(fan, weights, at))
        w = np.full(len(predictions), 1.0) if weights is None else weights
        at = np.array(self.levels)
        return _Shares(self.squared, at, _SharesUpto(at, levels_of(predictions, self), w / w.sum()))


@dataclass(frozen=True, eq=False)
class _SharesUpto:
    at: np.ndarray
    levels: Levels
    weights: np.ndarray

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """The share of targets below each level, ``(m, levels)``."""
        levels = self.levels(targets)
        return np.stack([share_upto(levels, u) @ self.weights for u in self.at], axis=-1)


@dataclass(frozen=True, eq=False)
class _Shares:
    squared: bool
    at: np.ndarray
    observed: Statistic

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        gap = np.abs(self.observed(targets) - self.at)
        return (gap**2 if self.squared else gap).mean(axis=-1)
