"""The spread of forecasts: how sharp they are, and whether errors are as large as it says."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import MAX_SQUARED, InputError, check_count, check_fraction
from calibrant.distributions.base import Distribution, needed
from calibrant.distributions.empirical.ensemble import Ensemble
from calibrant.distributions.reading.conversion import as_distribution
from calibrant.estimators.base import BaseEstimator, Statistic
from calibrant.estimators.binned.binning import EqualMass
from calibrant.estimators.mean_limits import MeanLimits, ReckonedLimits
from calibrant.estimators.scoring_rules.forecast_scores import central_interval
from calibrant.estimators.scoring_rules.proper_scores import MIN_ROWS, Score, likely_loss, thinned
from calibrant.results import Estimate, Table
from calibrant.typing import Array, ArrayLike

MIN_MEMBERS = 10
"""Members below which the squares of z-scores have tails too heavy for an interval of their mean."""


def moments_of(predictions: Distribution, asker: object) -> tuple[np.ndarray, np.ndarray]:
    """Predicted means and standard deviations, ``(n,)`` or ``(n, d)``; rows without spread are refused."""
    mean = needed(predictions.mean, "a mean", predictions, asker).astype(np.float64)
    spread = needed(predictions.std, "a standard deviation", predictions, asker).astype(np.float64)
    usable = (spread > 0) & np.isfinite(spread)
    if not usable.all():
        row = int(np.argmin(usable.reshape(len(usable), -1).all(axis=1)))
        raise InputError(
            f"{type(asker).__name__} divides by the predicted standard deviation, which is {spread[row]} in row {row}: "
            "drop such rows"
        )
    return mean, spread


def _z_scores(targets: Array, predictions: Distribution, asker: object) -> np.ndarray:
    """``(y - mean) / std``, coordinates first and rows last: ``(1, ..., n)`` or ``(d, ..., n)``."""
    mean, spread = moments_of(predictions, asker)
    with np.errstate(over="ignore"):
        z = (to_numpy(targets) - mean) / spread
    if np.abs(z).max() > MAX_SQUARED:
        raise InputError(
            f"y_true lies {np.abs(z).max():g} predicted standard deviations from its mean, and the square is no number: drop "
            "such rows, or give forecasts more spread"
        )
    return z[None] if mean.ndim == 1 else np.moveaxis(z, -1, 0)


@dataclass(frozen=True)
class ZMean(Score):
    """Mean z-score: the mean of ``z = (y - mean) / std``, which is 0 where the forecast is calibrated.

    Positive where predictions are too low. Of vectors, the mean over coordinates. The result has a standard error, and
    ``confidence_interval()``; ``ExactTest(ZMean(), alternative="two-sided")`` has a p-value. O(n).

    >>> from calibrant import Normal
    >>> ZMean()([1.0, 3.0], Normal([0.0, 0.0], 2.0)).value
    1.0
    """

    name = "ZMean"

    def losses(self, targets: Array, predictions: Distribution) -> np.ndarray:
        """The score of each row."""
        return _z_scores(targets, predictions, self).mean(axis=0)


@dataclass(frozen=True)
class ZVariance(BaseEstimator):
    """Variance of z-scores, ``mean (z - mean z)^2`` with ``z = (y - mean) / std``: 1 where the forecast is calibrated.

    Above 1 where predictions are too sure, below where they are too timid: its root is the factor that all standard
    deviations lack. Of vectors, the mean over coordinates. It is a mean over n rows, so that 1 - 1/n is expected of a calibrated
    forecast; ``ExactTest(ZVariance(), alternative="two-sided")`` takes that into account. O(n). Pernot (2022).

    >>> from calibrant import Normal
    >>> ZVariance()([1.0, 3.0, -1.0, -3.0], Normal(np.zeros(4), 1.0)).value
    5.0
    """

    least = 0.0
    resampling = None

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The variance and its standard error; limits reckon with squares that the forecast allows for."""
        w = _shares(predictions, weights)
        squares = self._squares(targets, predictions, w)
        seen = MeanLimits.of(squares, w, least=0.0)
        n, some = len(predictions), thinned(predictions)
        error = float(np.sqrt(seen.squares)) if n > 1 else None
        return Estimate(
            *("ZVariance", seen.mean, n, self),
            standard_error=error,
            limits=ReckonedLimits(seen, partial(self._likely, some)),
            withheld=_few_rows(seen.n) or _few_members(some),
        )

    def _squares(self, targets: Array, predictions: Distribution, shares: np.ndarray) -> np.ndarray:
        """Squared distances of z-scores from their mean, over coordinates."""
        z = _z_scores(targets, predictions, self)
        return ((z - (z @ shares)[..., None]) ** 2).mean(axis=0)

    def _likely(self, predictions: Distribution, seen: np.ndarray) -> tuple[float, float]:
        shares = _shares(predictions, None)
        return float(seen.min()), likely_loss(lambda y, some: self._squares(y, some, shares), seen, predictions)

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """The variance of every resample."""
        return _Variance(self, predictions, _shares(predictions, weights))


def _few_rows(n: int) -> str | None:
    return f"fewer than {MIN_ROWS} rows do not show how far z-scores go" if n < MIN_ROWS else None


def _few_members(predictions: Distribution) -> str | None:
    """Whether z-scores of an ensemble have no spread to speak of: a few members can lie close together by chance."""
    if not isinstance(predictions, Ensemble):
        return None
    least = int(np.min(1 / (predictions.shares**2).sum(axis=1)) + 1e-9)
    few = f"spreads of {least} members are near zero by chance, and z-scores then have no typical size"
    return f"{few}; {MIN_MEMBERS} or more have an interval" if least < MIN_MEMBERS else None


def _shares(predictions: Distribution, weights: np.ndarray | None) -> np.ndarray:
    return np.full(len(predictions), 1 / len(predictions)) if weights is None else weights / weights.sum()


@dataclass(frozen=True, eq=False)
class _Variance:
    asker: ZVariance
    predictions: Distribution
    shares: np.ndarray

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        z = _z_scores(targets, self.predictions, self.asker)
        return ((z - (z @ self.shares)[..., None]) ** 2 @ self.shares).mean(axis=0)


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
        alike = without_noise(spread)
        which = EqualMass(self.n_bins).bins(alike, weights).index(alike)
        indicator = (which[:, None] == np.unique(which)).astype(np.float64)
        indicator *= 1.0 if weights is None else weights[:, None]
        weight = indicator.sum(axis=0)
        return Spreads(mean, spread, indicator, weight, np.sqrt(variance @ indicator / weight))


@dataclass(frozen=True, eq=False)
class Spreads:
    """Rows in bins by their predicted spread, and what resampled targets show there."""

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
        """The error of each resample."""
        gap = np.abs(self.predicted - self.observed(targets)) / self.predicted
        return gap @ self.weight / self.weight.sum()


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
        """The same for every resample."""
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
        with np.errstate(invalid="ignore"):  # two ends beyond all numbers have no distance
            return high - low


def _stds(predictions: Distribution, asker: object) -> np.ndarray:
    std = needed(predictions.std, "a standard deviation", predictions, asker).astype(np.float64)
    return std if std.ndim == 1 else std.mean(axis=1)


DIGITS = 6
"""Digits after the first to which spreads must differ to be told apart: single precision has no more."""


def without_noise(values: np.ndarray, digits: int = DIGITS) -> np.ndarray:
    """Numbers to so many digits after the first: a constant that was computed in different ways is one number, and not sliced.

    >>> np.unique(without_noise(np.array([1.458, 1.4580000000000002, 1.4579999999999997, 2.0]))).tolist()
    [1.458, 2.0]
    """
    size = 10.0 ** np.floor(np.log10(np.maximum(np.abs(values), np.finfo(np.float64).tiny)))
    found: np.ndarray = np.round(values / size, digits) * size
    return found


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
    alike = without_noise(spread)
    which = EqualMass(n_bins).bins(alike).index(alike)
    return (np.bincount(which, spread) / np.maximum(np.bincount(which), 1))[which]
