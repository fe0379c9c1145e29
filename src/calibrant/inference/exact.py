"""The exact test of calibration: keep the predictions, redraw the targets from them."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution
from calibrant.distributions.conversion import as_weighted_problem
from calibrant.estimators.base import BaseEstimator, EachDraw, Statistic, as_estimate
from calibrant.inference.draws import draw
from calibrant.results import TestResult
from calibrant.typing import ArrayLike, Engine, Estimator, Seed

ROUNDING = 1e-12
"""Statistics closer than this, relative to their size, count as ties: rounding must not decide a p-value."""


@dataclass(frozen=True)
class ExactTest:
    """Test that the targets could have come from the predictions, with any estimator as statistic.

    If the model is calibrated then, given the predictions, targets are independent draws from them. So redraw them
    ``n_resamples`` times, and let ``p = (1 + #{T* >= T}) / (n_resamples + 1)``. The level holds exactly for *every*
    n and *every* statistic: a poor statistic costs power, never validity. The redraws are also the estimator's null
    band. Weights are taken as given: rows count more or less, but each remains one independent draw, so counts of
    aggregated rows must be written out. ``alternative="two-sided"`` suits scores, which are too small when the model is
    under-confident; it ranks the rank of the nearer tail, which is exact too.

    >>> import numpy as np
    >>> from calibrant import ECE, ExactTest
    >>> rng = np.random.default_rng(0)
    >>> y_pred = rng.random(500)
    >>> honest, boastful = (rng.random(500) < y_pred) * 1, (rng.random(500) < 0.3 + 0.4 * y_pred) * 1
    >>> ExactTest(ECE())(honest, y_pred).pvalue
    0.858
    >>> ExactTest(ECE())(boastful, y_pred).pvalue
    0.001
    """

    estimator: Estimator
    n_resamples: int = 999
    alternative: Literal["greater", "less", "two-sided"] = "greater"

    def __post_init__(self) -> None:
        if not callable(self.estimator):
            raise InputError(f"estimator must be an estimator such as ECE(); got {self.estimator!r}")
        check_count(self.n_resamples, "n_resamples")
        if self.alternative not in ("greater", "less", "two-sided"):
            raise InputError(f"alternative must be 'greater', 'less' or 'two-sided'; got {self.alternative!r}")

    def __call__(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> TestResult:
        """Redraw, compare and count."""
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight)
        estimator: Any = self.estimator
        estimate = as_estimate(estimator, targets, predictions, weights)
        if isinstance(estimator, BaseEstimator):
            estimator, targets, predictions = estimator.reduce(targets, predictions)
            statistic = estimator.given(predictions, weights)
        else:
            statistic = EachDraw(estimator, predictions, weights)
        observed = float(statistic(to_numpy(targets)[None])[0])
        redraw = partial(_redraw, statistic, predictions)
        null = draw(redraw, self.n_resamples, width=int(np.prod(targets.shape)), rng=rng, engine=engine)
        return TestResult(
            statistic=float(estimate),
            pvalue=self._pvalue(observed, null),
            n=len(predictions),
            test=self,
            estimate=estimate,
            null_distribution=null,
        )

    def _pvalue(self, observed: float, null: np.ndarray) -> float:
        pool = np.append(null, observed)
        if missing := int(np.isnan(pool).sum()):
            raise InputError(f"the statistic is not a number for {missing:,} of {len(pool):,} sets of targets")
        ordered = np.sort(pool)
        slack = ROUNDING * float(np.abs(ordered[np.isfinite(ordered)]).max(initial=0))
        # How many of the pool, the observed one among them, are at least as large or as small as each.
        greater = len(pool) - np.searchsorted(ordered, pool - slack, side="left")
        less = np.searchsorted(ordered, pool + slack, side="right")
        # Two-sided: the rank of the nearer tail, ranked again, so that a tail that cannot be reached costs nothing.
        nearer = np.minimum(greater, less)
        both = np.searchsorted(np.sort(nearer), nearer, side="right")
        ranks = {"greater": greater, "less": less, "two-sided": both}[self.alternative]
        return float(ranks[-1] / len(pool))


def _redraw(statistic: Statistic, predictions: Distribution, seed: np.random.SeedSequence, size: int) -> np.ndarray:
    return statistic(predictions.sample(np.random.default_rng(seed), size))
