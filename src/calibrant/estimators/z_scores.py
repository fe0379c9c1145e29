"""Standard scores of targets: errors of the mean prediction in units of the predicted spread."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution, needed
from calibrant.distributions.ensemble import Ensemble
from calibrant.estimators.base import BaseEstimator, Statistic
from calibrant.estimators.mean_limits import MeanLimits, ReckonedLimits
from calibrant.estimators.scores import FEWEST_ROWS, Score, likely_loss, thinned
from calibrant.results import Estimate
from calibrant.typing import Array

FEWEST_MEMBERS = 10
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
    z = (to_numpy(targets) - mean) / spread
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
        """The variance of every redraw."""
        return _Variance(self, predictions, _shares(predictions, weights))


def _few_rows(n: int) -> str | None:
    return f"fewer than {FEWEST_ROWS} rows do not show how far z-scores go" if n < FEWEST_ROWS else None


def _few_members(predictions: Distribution) -> str | None:
    """Whether z-scores of an ensemble have no spread to speak of: a few members can lie close together by chance."""
    if not isinstance(predictions, Ensemble):
        return None
    least = int(np.min(1 / (predictions.shares**2).sum(axis=1)) + 1e-9)
    few = f"spreads of {least} members are near zero by chance, and z-scores then have no typical size"
    return f"{few}; {FEWEST_MEMBERS} or more have an interval" if least < FEWEST_MEMBERS else None


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
