"""Consistency resampling, as published: for comparison with the exact test."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution
from calibrant.distributions.conversion import as_weighted_problem
from calibrant.distributions.quantiles import check_whole
from calibrant.estimators.base import BaseEstimator, as_estimate
from calibrant.inference.draws import draw
from calibrant.inference.ranks import at_least
from calibrant.results import TestResult
from calibrant.typing import ArrayLike, Engine, Estimator, Seed

NOTE = "consistency resampling is not exact: at small n it rejects calibrated models too often; ExactTest does not"


@dataclass(frozen=True)
class ConsistencyTest:
    """Test of calibration by consistency resampling, with any estimator as statistic.

    Predictions are drawn from the data with replacement and targets from them; the statistic is ranked among those of such
    data sets. :class:`calibrant.ExactTest` keeps the predictions and is exact for that reason; here, at 5 %, the ECE with 15
    bins rejects 9 % of calibrated data sets of 10 rows, and 8 % of those of 50. One estimate a draw.
    Bröcker & Smith (2007), Vaicenavicius et al. (2019).

    >>> from calibrant import ECE
    >>> y_pred = np.linspace(0.05, 0.95, 60)
    >>> y_true = (np.random.default_rng(3).random(60) < y_pred) * 1
    >>> ConsistencyTest(ECE(), n_resamples=99)(y_true, y_pred).pvalue > 0.05
    True
    """

    estimator: Estimator
    n_resamples: int = 999

    def __post_init__(self) -> None:
        if not callable(self.estimator):
            raise InputError(f"estimator must be an estimator such as ECE(); got {self.estimator!r}")
        check_count(self.n_resamples, "n_resamples")

    def __call__(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> TestResult:
        """Resample, compare and count."""
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight)
        check_whole(predictions, self)
        estimate = as_estimate(self.estimator, targets, predictions, weights)
        # The resolved estimator: its kernels and lenses are those of the data, not of each resample.
        estimator = estimate.estimator if isinstance(self.estimator, BaseEstimator) else self.estimator
        resample = partial(_resampled, estimator, predictions, weights)
        null = draw(resample, self.n_resamples, width=len(predictions), rng=rng, engine=engine)
        pvalue = float(at_least(np.append(null, float(estimate)))[-1] / (self.n_resamples + 1))
        return TestResult(float(estimate), pvalue, len(predictions), self, estimate, null, (*estimate.notes, NOTE))


def _resampled(
    estimator: Any, predictions: Distribution, weights: np.ndarray | None, seed: np.random.SeedSequence, size: int
) -> np.ndarray:
    """The statistic of so many resampled data sets."""
    rng, n = np.random.default_rng(seed), len(predictions)
    values = []
    for _ in range(size):
        rows = rng.integers(0, n, n)
        drawn = predictions[rows]
        w = None if weights is None else weights[rows]
        values.append(float(as_estimate(estimator, drawn.sample(rng, 1)[0], drawn, w)))
    return np.array(values)
