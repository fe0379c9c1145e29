"""Threshold calibration: whether the probabilities of exceeding thresholds are reliable."""

from dataclasses import dataclass, replace

import numpy as np

from calibrant._validate import check_count
from calibrant.distributions.base import Distribution
from calibrant.estimators.base import BaseEstimator, Statistic
from calibrant.estimators.binned import ECE
from calibrant.estimators.binning import Binning, EqualMass
from calibrant.estimators.marginal import pooled_thresholds
from calibrant.results import Estimate
from calibrant.thresholds import Exceeds, as_thresholds
from calibrant.typing import Array


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
