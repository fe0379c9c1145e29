"""How sharp forecasts are: their spread, whatever happened."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from calibrant._validate import check_count, check_fraction
from calibrant.distributions.base import Distribution, needed
from calibrant.distributions.conversion import as_distribution
from calibrant.estimators.base import Statistic
from calibrant.estimators.binning import EqualMass
from calibrant.estimators.interval_score import central_interval
from calibrant.estimators.scores import Score
from calibrant.typing import Array, ArrayLike


class Spread(Score):
    """The mean over rows of a number of the predictions alone: smaller is sharper, and says nothing of being right."""

    least = 0.0

    @abstractmethod
    def of(self, predictions: Distribution) -> np.ndarray:
        """The spread of each row."""

    def losses(self, targets: Array, predictions: Distribution) -> np.ndarray:
        """The spread of each row, ``(n,)``, whatever the targets."""
        return self.of(predictions)

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """The same for every redraw."""
        return _Constant(float(np.average(self.of(predictions), weights=weights)))


@dataclass(frozen=True, eq=False)
class _Constant:
    value: float

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        return np.full(len(targets), self.value)


@dataclass(frozen=True)
class MeanStd(Spread):
    """Mean predicted standard deviation; of vectors, over coordinates too. O(n).

    >>> from calibrant import Normal
    >>> MeanStd()([0.0, 0.0], Normal([0.0, 0.0], [1.0, 2.0])).value
    1.5
    """

    name = "MeanStd"

    def of(self, predictions: Distribution) -> np.ndarray:
        """The standard deviation of each row."""
        return _stds(predictions, self)


@dataclass(frozen=True)
class MeanWidth(Spread):
    """Mean width of the central interval of a ``level``. O(n).

    >>> from calibrant import Normal
    >>> round(MeanWidth(0.95)([0.0, 0.0], Normal([0.0, 0.0], 1.0)).value, 2)
    3.92
    """

    name = "MeanWidth"
    reads_quantiles = True

    level: float = 0.9

    def __post_init__(self) -> None:
        check_fraction(self.level, "level")

    def of(self, predictions: Distribution) -> np.ndarray:
        """The width of each row's interval."""
        low, high = central_interval(predictions, self.level, self)
        return high - low


def _stds(predictions: Distribution, asker: object) -> np.ndarray:
    std = needed(predictions.std, "a standard deviation", predictions, asker).astype(np.float64)
    return std if std.ndim == 1 else std.mean(axis=1)


def by_spread(y_pred: ArrayLike, n_bins: int = 5) -> np.ndarray:
    """The group of each row by its predicted standard deviation, for ``by=``: the mean of its group, ``(n,)``.

    Groups are as equal as ties allow. With :func:`calibrant.groups` and the like it says whether a forecast is as
    calibrated where it is sure as where it is not. O(n log n).

    >>> from calibrant import Normal
    >>> by_spread(Normal(np.zeros(4), [1.0, 5.0, 3.0, 1.0]), n_bins=2)
    array([1., 4., 4., 1.])
    """
    check_count(n_bins, "n_bins")
    spread = _stds(as_distribution(y_pred), "by_spread")
    which = EqualMass(n_bins).bins(spread).index(spread)
    return (np.bincount(which, spread) / np.maximum(np.bincount(which), 1))[which]
