"""The exact test of calibration: keep the predictions, redraw the targets from them."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution
from calibrant.distributions.conversion import as_weighted_problem
from calibrant.distributions.quantiles import check_whole
from calibrant.estimators.base import BaseEstimator, EachDraw, Statistic, as_estimate
from calibrant.inference.draws import draw, draw_until
from calibrant.inference.ranks import at_least, at_most, nearer_tail, rounding_of
from calibrant.results import TestResult, brief
from calibrant.typing import ArrayLike, Engine, Estimator, Seed

BUDGET = 2e11
"""Multiplications that redraws may cost by default: some ten seconds on two cores."""


@dataclass(frozen=True)
class ExactTest:
    """Test that the targets could have come from the predictions, with any estimator as statistic.

    If the model is calibrated then, given the predictions, targets are independent draws from them. So redraw them
    ``n_resamples`` times, and let ``p = (1 + #{T* >= T}) / (n_resamples + 1)``. The level holds exactly for *every*
    n and *every* statistic: a poor statistic costs power, never validity. The redraws are also the estimator's null
    band. Weights are taken as given: rows count more or less, but each remains one independent draw, so counts of
    aggregated rows must be written out. ``alternative="two-sided"`` suits scores, which are too small when the model is
    under-confident; it ranks the rank of the nearer tail, which is exact too.

    ``stop_after=h`` stops at the h-th redraw that is at least as extreme, with ``p = h / redraws``: also exact, and cheap
    where p is large (Besag & Clifford 1991). Kernel errors whose redraws would cost more than ``budget``
    multiplications are approximated by random features, and the result says so.

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
    stop_after: int | None = None
    budget: float = BUDGET

    def __post_init__(self) -> None:
        if not callable(self.estimator):
            raise InputError(f"estimator must be an estimator such as ECE(); got {self.estimator!r}")
        check_count(self.n_resamples, "n_resamples")
        if self.alternative not in ("greater", "less", "two-sided"):
            raise InputError(f"alternative must be 'greater', 'less' or 'two-sided'; got {self.alternative!r}")
        if self.stop_after is not None:
            check_count(self.stop_after, "stop_after")
            if self.alternative == "two-sided":
                raise InputError("stop_after goes with alternative='greater' or 'less'")

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
        check_rests_on_levels(self.estimator, predictions)
        estimator, notes = within_budget(self.estimator, predictions, self.n_resamples, self.budget)
        estimate = as_estimate(estimator, targets, predictions, weights, engine)
        if isinstance(estimator, BaseEstimator):
            estimator, targets, predictions = estimator.reduce(targets, predictions)
        statistic = statistic_of(estimator, predictions, weights)
        observed = float(statistic(to_numpy(targets)[None])[0])
        redraw = partial(_redraw, statistic, predictions)
        settings: dict[str, Any] = {"width": int(np.prod(targets.shape)), "rng": rng, "engine": engine}
        if self.stop_after is None:
            null = draw(redraw, self.n_resamples, **settings)
            pvalue = self._pvalue(observed, null)
        else:
            null, pvalue = self._sequential(redraw, observed, settings)
        return TestResult(float(estimate), pvalue, len(predictions), self, estimate, null, notes)

    def _pvalue(self, observed: float, null: np.ndarray) -> float:
        pool = np.append(null, observed)
        ranks = {"greater": at_least, "less": at_most, "two-sided": nearer_tail}[self.alternative](pool)
        return float(ranks[-1] / len(pool))

    def _sequential(self, redraw: Any, observed: float, settings: dict[str, Any]) -> tuple[np.ndarray, float]:
        """Redraws up to the one that is the h-th to reach the observed value."""
        assert self.stop_after is not None
        reached = partial(_reached, observed, self.alternative)
        null = draw_until(redraw, self.n_resamples, reached, self.stop_after, **settings)
        hits = int(reached(null).sum())
        return null, hits / len(null) if hits >= self.stop_after else (1 + hits) / (1 + len(null))


def _reached(observed: float, alternative: str, values: np.ndarray) -> np.ndarray:
    """Which redraws are at least as extreme as what was observed."""
    slack = rounding_of(np.append(values, observed))
    if np.isnan(values).any() or np.isnan(observed):
        raise InputError("the statistic is not a number for some sets of targets")
    return values >= observed - slack if alternative == "greater" else values <= observed + slack


def within_budget(
    estimator: Any, predictions: Distribution, n_redraws: int, budget: float
) -> tuple[Any, tuple[str, ...]]:
    """The estimator, or one of the same quantity that so many redraws can afford, and a note that says so."""
    if not isinstance(estimator, BaseEstimator):
        return estimator, ()
    chosen = estimator.affordable(predictions, n_redraws, budget)
    if chosen is estimator:
        return estimator, ()
    return chosen, (f"{n_redraws:,} redraws of all pairs exceed the budget of {budget:.0e}: {brief(chosen)} instead",)


def check_rests_on_levels(estimator: Any, predictions: Distribution) -> None:
    """Refuse to redraw quantile forecasts for a statistic that depends on what lies between their levels."""
    if not getattr(estimator, "rests_on_levels", False):
        check_whole(predictions, estimator)


def statistic_of(estimator: Any, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
    """The statistic as a function of stacks of targets."""
    if isinstance(estimator, BaseEstimator):
        return estimator.given(predictions, weights)
    return EachDraw(estimator, predictions, weights)


def _redraw(statistic: Statistic, predictions: Distribution, seed: np.random.SeedSequence, size: int) -> np.ndarray:
    return statistic(predictions.sample(np.random.default_rng(seed), size))
