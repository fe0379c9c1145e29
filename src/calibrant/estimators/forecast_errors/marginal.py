"""Marginal and threshold calibration: targets as a whole, and probabilities of exceeding thresholds."""

from dataclasses import dataclass, replace

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import check_count, check_norm
from calibrant.distributions.base import Distribution, needed
from calibrant.estimators.base import BaseEstimator, Statistic
from calibrant.estimators.binned.binning import Binning, EqualMass, lp_norm
from calibrant.estimators.binned.ece import ECE
from calibrant.lenses.thresholds import Exceeds, as_thresholds
from calibrant.results import Estimate, Table
from calibrant.typing import Array

LEVELS = (np.arange(19) + 0.5) / 19
"""Levels of the quantiles of each row from which thresholds are taken."""


def pooled_thresholds(predictions: Distribution, count: int, asker: object) -> tuple[float, ...]:
    """Values that cut the mean of all predictions into shares as equal as can be; they do not depend on the targets."""
    quantiles = needed(predictions.quantile(LEVELS), "quantiles", predictions, asker)
    pooled = np.sort(quantiles, axis=None).astype(np.float64)
    places = (np.arange(1, count + 1) * len(pooled)) // (count + 1)
    return tuple(np.unique(pooled[places]).tolist())


@dataclass(frozen=True)
class MarginalError(BaseEstimator):
    """Marginal calibration error: distance of the mean predicted distribution function from that of the targets.

    ``|mean_i F_i(t) - mean_i [y_i <= t]|`` over thresholds t, the largest (``norm=inf``), or in another norm their mean. The
    thresholds are ``n_thresholds`` quantiles of all predictions together, or those given. The table has each. A forecast that
    knows the climate and nothing else has no such error. Never zero: :class:`~calibrant.ExactTest` says what chance
    explains. O(n) a threshold. Gneiting, Balabdaoui & Raftery (2007).

    >>> from calibrant import Normal
    >>> MarginalError(thresholds=[0.0])([-1.0, 1.0, 2.0], Normal([0.0, 0.0, 0.0], 1.0)).table.to_dict()
    {'threshold': [0.0], 'predicted': [0.5], 'observed': [0.333...]}
    """

    thresholds: tuple[float, ...] | None = None
    n_thresholds: int = 50
    norm: float = np.inf

    least = 0.0
    most = 1.0

    def __post_init__(self) -> None:
        if self.thresholds is not None:
            object.__setattr__(self, "thresholds", tuple(sorted(as_thresholds(self.thresholds, "thresholds"))))
        check_count(self.n_thresholds, "n_thresholds")
        check_norm(self.norm)

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The distance, with both distribution functions at the thresholds."""
        statistic = self._marginal(predictions, weights)
        y = to_numpy(targets)[None]
        columns = {
            "threshold": statistic.thresholds,
            "predicted": statistic.predicted,
            "observed": statistic.observed(y)[0],
        }
        resolved = replace(self, thresholds=tuple(statistic.thresholds.tolist()))
        return Estimate("MarginalError", float(statistic(y)[0]), len(predictions), resolved, table=Table(columns))

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """The mean prediction is found once; resamples are counted."""
        return self._marginal(predictions, weights)

    def _marginal(self, predictions: Distribution, weights: np.ndarray | None) -> "_Marginal":
        w = np.full(len(predictions), 1.0) if weights is None else weights
        w = w / w.sum()
        chosen = self.thresholds or pooled_thresholds(predictions, self.n_thresholds, self)
        asked = (predictions.cdf(np.full(len(predictions), t)) for t in chosen)
        predicted = [needed(cdf, "a distribution function", predictions, self) @ w for cdf in asked]
        return _Marginal(np.array(chosen), np.array(predicted), w, self.norm)


@dataclass(frozen=True, eq=False)
class _Marginal:
    thresholds: np.ndarray
    predicted: np.ndarray
    weights: np.ndarray
    norm: float

    def observed(self, targets: np.ndarray) -> np.ndarray:
        """The share of targets up to each threshold, ``(m, thresholds)``."""
        m, cells = len(targets), len(self.thresholds) + 1
        cell = np.searchsorted(self.thresholds, targets) + cells * np.arange(m)[:, None]
        w = np.broadcast_to(self.weights, targets.shape)
        counts = np.bincount(cell.ravel(), weights=w.ravel(), minlength=m * cells).reshape(m, cells)
        return np.cumsum(counts, axis=1)[:, :-1]

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        return lp_norm(self.observed(targets) - self.predicted, np.ones(len(self.predicted)), self.norm)


@dataclass(frozen=True)
class ThresholdError(BaseEstimator):
    """Threshold calibration error: the binned error of ``P(Y > t)``, averaged over thresholds t.

    Of the rows that gave 70 % to exceeding t, did 70 % exceed it? Thresholds are ``n_thresholds`` quantiles of all
    predictions together, or those given: then it is ``ECE(bins, norm, lens=Exceeds(thresholds))``, and its table has the bins
    of each. Stronger than uniform levels, which are right on average over all rows. O(n log n) a threshold.
    Gneiting & Resin (2023).

    >>> from calibrant import ExactTest, Normal
    >>> rng = np.random.default_rng(0)
    >>> known, hidden = rng.normal(size=(2, 400))
    >>> swapped = Normal(hidden, 1.0)                                 # knows nothing, and has too much spread in all
    >>> ExactTest(ThresholdError(), n_resamples=99)(known, swapped).pvalue
    0.01
    """

    thresholds: tuple[float, ...] | None = None
    n_thresholds: int = 9
    bins: Binning = EqualMass(10)  # noqa: RUF009  # frozen
    norm: float = 1

    least = 0.0
    most = 1.0

    def __post_init__(self) -> None:
        check_count(self.n_thresholds, "n_thresholds")
        if self.thresholds is not None:
            object.__setattr__(self, "thresholds", as_thresholds(self.thresholds, "thresholds"))
        ECE(self.bins, self.norm)  # refuses what is no binning and no norm

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The mean over thresholds, with the bins of each."""
        chosen = self._chosen(predictions)
        found = self._binned(chosen).estimate(targets, predictions, weights)
        return replace(found, name="ThresholdError", estimator=replace(self, thresholds=chosen))

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """Bins are found once."""
        return self._binned(self._chosen(predictions)).given(predictions, weights)

    def _chosen(self, predictions: Distribution) -> tuple[float, ...]:
        return self.thresholds or pooled_thresholds(predictions, self.n_thresholds, self)

    def _binned(self, thresholds: tuple[float, ...]) -> ECE:
        return ECE(self.bins, self.norm, Exceeds(thresholds))
