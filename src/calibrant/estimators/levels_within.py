"""The share of targets in the central part of their predictions."""

from dataclasses import dataclass

import numpy as np

from calibrant._validate import check_fraction
from calibrant.distributions.base import Distribution
from calibrant.distributions.quantiles import fan_of, forecast_at
from calibrant.estimators.base import Statistic
from calibrant.estimators.pit import Levels, levels_of, randomised
from calibrant.estimators.scores import Score
from calibrant.typing import Array


@dataclass(frozen=True)
class LevelsWithin(Score):
    """Share of rows whose level lies in the central part: the coverage of central intervals, ``level`` where calibrated.

    Levels are those of :class:`~calibrant.estimators.pit.PIT`: where single values have a probability of their own an
    interval can hold more than it should, and its ends count for a part, at random. Of an ensemble of m members the ends lie
    between members. O(n).

    >>> from calibrant import Normal
    >>> y_true = np.random.default_rng(0).normal(0.0, 2.0, 200)
    >>> LevelsWithin(0.9)(y_true, Normal(np.zeros(200), 1.0)).value  # intervals are half as wide as they should be
    0.6
    """

    name = "LevelsWithin"
    least = 0.0
    most = 1.0
    rests_on_levels = True

    level: float = 0.9
    seed: int = 0

    def __post_init__(self) -> None:
        check_fraction(self.level, "level")

    def losses(self, targets: Array, predictions: Distribution) -> np.ndarray:
        """Whether each level lies inside, as 0 or 1."""
        self._check(predictions)
        return self._inside(levels_of(predictions, self), targets)

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """Levels of all redraws."""
        self._check(predictions)
        return _Share(self, levels_of(predictions, self), np.ones(len(predictions)) if weights is None else weights)

    def _check(self, predictions: Distribution) -> None:
        """Refuse intervals that quantile forecasts have not both ends of."""
        if fan_of(predictions) is not None:
            forecast_at(predictions, [(1 - self.level) / 2, (1 + self.level) / 2], self)

    def _inside(self, levels: Levels, targets: Array) -> np.ndarray:
        inside: np.ndarray = np.abs(randomised(levels(targets), self.seed) - 0.5) <= self.level / 2
        return inside.astype(np.float64)


@dataclass(frozen=True, eq=False)
class _Share:
    score: LevelsWithin
    levels: Levels
    weights: np.ndarray

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        return self.score._inside(self.levels, targets) @ self.weights / self.weights.sum()
