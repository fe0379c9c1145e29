"""What quantile forecasts say, and no more: between which of its quantiles each target lies."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.empirical.quantiles import Quantiles, fan_of, forecast_at, in_percent
from calibrant.estimators.base import BaseEstimator, Statistic
from calibrant.results import Estimate
from calibrant.typing import Array


def judged_at(fan: Quantiles) -> str:
    """What statements on quantile forecasts rest on, in words."""
    return f"judged at the levels given, {in_percent(fan.levels)}; nothing is assumed between and beyond them"


@dataclass(frozen=True, eq=False)
class SharesBelow:
    """Shares of targets below each of their quantiles: the least and the most that targets which equal one leave possible.

    Of all shares in between, that next to the level is taken. If forecasts are calibrated, some way of putting such targets to
    one side or the other has the law of cells, and a distance that grows with every gap is never larger than by that way:
    so tests keep their level, whatever probability single values have.
    """

    quantiles: np.ndarray
    levels: np.ndarray
    shares: np.ndarray

    @classmethod
    def of(cls, fan: Quantiles, weights: np.ndarray | None, levels: np.ndarray | None = None) -> Self:
        """At these levels, or at all that were forecast."""
        w = np.ones(len(fan)) if weights is None else weights
        at = fan.levels if levels is None else levels
        return cls(forecast_at(fan, at, cls), at, w / w.sum())

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """The shares of stacks of targets ``(m, n)``, ``(m, levels)``."""
        y = to_numpy(targets)
        columns = []
        for u, column in zip(self.levels, self.quantiles.T, strict=True):
            columns.append(np.clip(u, (y < column) @ self.shares, (y <= column) @ self.shares))
        return np.stack(columns, axis=-1)

    def beyond(self, targets: np.ndarray) -> np.ndarray:
        """Whether each target lies below its quantiles, less the levels, ``(n, levels)``; ties are shared as above."""
        y, columns = to_numpy(targets), []
        for u, column in zip(self.levels, self.quantiles.T, strict=True):
            least, tied = (y < column) @ self.shares, (y == column).astype(np.float64)
            part = np.clip((u - least) / max(float(tied @ self.shares), np.finfo(float).tiny), 0.0, 1.0)
            columns.append((y < column) + part * tied - u)
        return np.stack(columns, axis=-1)


@dataclass(frozen=True, eq=False)
class CellResamples:
    """Targets as calibrated quantile forecasts would have them, one for each cell: which of them is all that counts.

    Each cell has the probability between its levels, whatever the distribution within. Cells without width have their value.
    """

    quantiles: np.ndarray
    levels: np.ndarray

    @classmethod
    def of(cls, fan: Quantiles) -> Self:
        """Of these forecasts."""
        return cls(fan.quantiles, fan.levels)

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Targets ``(size, n)``."""
        q = self.quantiles
        inside = q[:, :-1] + (q[:, 1:] - q[:, :-1]) / 2
        ends = np.nextafter(q[:, :1], -np.inf), np.nextafter(q[:, -1:], np.inf)
        values = np.concatenate([ends[0], inside, ends[1]], axis=1)
        cell = np.searchsorted(self.levels, rng.random((size, len(q))), side="right")
        return values[np.arange(len(q)), cell]

    def rows(self, index: np.ndarray) -> Self:
        """Of these rows."""
        return type(self)(self.quantiles[index], self.levels)


@dataclass(frozen=True)
class ShareBetween(BaseEstimator):
    """Share of targets between two of their quantiles, by default the outer ones: ``high - low`` where calibrated.

    Targets that equal one of the two count so that the share is as near to that as they allow. Forecasts of other families
    must be told the levels. O(n).

    >>> from calibrant import Quantiles
    >>> fan = Quantiles([[-1.28, 0.0, 1.28]] * 4, [0.1, 0.5, 0.9])
    >>> ShareBetween()([0.5, -0.3, 2.0, 1.0], fan).value
    0.75
    """

    low: float | None = None
    high: float | None = None

    least = 0.0
    most = 1.0
    rests_on_levels = True

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The share."""
        value = float(self.given(predictions, weights)(to_numpy(targets)[None])[0])
        notes = () if fan_of(predictions) is None else (judged_at(fan_of(predictions)),)  # type: ignore[arg-type]
        return Estimate("ShareBetween", value, len(predictions), self, notes=notes)

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """The share of every resample."""
        levels = self._levels(predictions)
        ends = forecast_at(predictions, levels, self)
        w = np.ones(len(predictions)) if weights is None else weights
        return _Between(ends[:, 0], ends[:, 1], levels[1] - levels[0], w / w.sum())

    def _levels(self, predictions: Distribution) -> tuple[float, float]:
        fan = fan_of(predictions)
        if fan is not None and self.low is None and self.high is None:
            return float(fan.levels[0]), float(fan.levels[-1])
        if self.low is None or self.high is None or not 0 < self.low < self.high < 1:
            raise InputError(f"low and high must be two levels that increase; got {self.low!r} and {self.high!r}")
        return self.low, self.high


@dataclass(frozen=True, eq=False)
class _Between:
    low: np.ndarray
    high: np.ndarray
    expected: float
    shares: np.ndarray

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        y = to_numpy(targets)
        surely = ((y > self.low) & (y < self.high)) @ self.shares
        possibly = ((y >= self.low) & (y <= self.high)) @ self.shares
        return np.clip(self.expected, surely, possibly)
