"""The interval score of central prediction intervals."""

from dataclasses import dataclass

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import check_fraction
from calibrant.distributions.base import Distribution
from calibrant.distributions.quantiles import forecast_at
from calibrant.estimators.scores import Score
from calibrant.typing import Array


def central_interval(predictions: Distribution, level: float, asker: object) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of the interval that leaves ``(1 - level) / 2`` on either side, ``(n,)`` each."""
    tail = (1 - level) / 2
    ends = forecast_at(predictions, [tail, 1 - tail], asker)
    return ends[:, 0], ends[:, 1]


@dataclass(frozen=True)
class IntervalScore(Score):
    """Interval score: the width of the central interval of a ``level``, and a penalty for targets outside.

    ``(high - low) + 2 / (1 - level) max(low - y, y - high, 0)``: least for the true quantiles, so a narrow interval pays only
    if it still holds what it promises. O(n). Winkler (1972); Gneiting & Raftery (2007).

    >>> from calibrant import IntervalScore, Normal
    >>> round(IntervalScore(0.8)([0.0, 3.0], Normal([0.0, 0.0], 1.0)).value, 2)  # 2.56 wide; missed by 1.72, times ten
    11.16
    """

    name = "IntervalScore"
    least = 0.0
    reads_quantiles = True

    level: float = 0.9

    def __post_init__(self) -> None:
        check_fraction(self.level, "level")

    def losses(self, targets: Array, predictions: Distribution) -> np.ndarray:
        """The score of each row."""
        low, high = central_interval(predictions, self.level, self)
        y = to_numpy(targets)
        missed = np.maximum(np.maximum(low - y, y - high), 0)
        return high - low + 2 / (1 - self.level) * missed
