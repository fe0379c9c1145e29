"""Exact tests of calibration: targets are resampled from the predictions, or, in time series, PIT values are shuffled in blocks."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from calibrant._array import to_numpy
from calibrant._clusters import Clusters, refuse_clusters
from calibrant._spellings import Settings
from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution, needed
from calibrant.distributions.empirical.quantiles import check_whole
from calibrant.distributions.reading.conversion import Classes, as_clustered_problem, as_weighted_problem
from calibrant.estimators.base import SINGLE, BaseEstimator, EachDraw, Statistic, as_estimate
from calibrant.estimators.forecast_errors.pit import PIT
from calibrant.inference.exact_tests.cluster_signs import Signs, check_clusters
from calibrant.inference.monte_carlo import (
    at_least,
    at_most,
    check_blocks,
    draw,
    draw_until,
    nearer_tail,
    rounding_of,
    shuffled_rows,
)
from calibrant.results import TestResult, brief
from calibrant.typing import Array, ArrayLike, Engine, Estimator, Seed

BUDGET = 2e11
"""Multiplications that resamples may cost by default: some ten seconds on two cores."""


@dataclass(frozen=True)
class ExactTest(Settings):
    """Test that the targets could have come from the predictions, with any estimator as statistic.

    If the model is calibrated then, given the predictions, targets are independent draws from them. So resample them
    ``n_resamples`` times, and let ``p = (1 + #{T* >= T}) / (n_resamples + 1)``. The level holds exactly for *every*
    n and *every* statistic: a poor statistic costs power, never validity. The resamples are also the estimator's null
    band. Weights are taken as given: rows count more or less, but each remains one independent draw, so counts of
    aggregated rows must be written out. ``alternative="two-sided"`` suits scores, which are too small when the model is
    under-confident; it ranks the rank of the nearer tail, which is exact too.

    ``stop_after=h`` stops at the h-th resample that is at least as extreme, with ``p = h / resamples``: also exact, and cheap
    where p is large (Besag & Clifford 1991). Kernel errors whose resamples would cost more than ``budget``
    multiplications are approximated by random features, and the result says so.

    ``clusters`` has one label per row: rows with the same label may depend on each other in any way, such as questions about one
    text or visits of one patient. Targets cannot be drawn anew then; the sums of residuals over each cluster get random signs
    instead. That is exact where the residuals of a cluster are symmetric together, and holds for many clusters else. It is
    refused where clusters, or events, are too few, and for estimators that are no function of sums of residuals.

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
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        clusters: ArrayLike | None = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> TestResult:
        """Resample, compare and count."""
        targets, predictions, weights, groups = as_clustered_problem(
            y_true, y_pred, sample_weight, clusters, Classes(labels, pos_label)
        )
        check_rests_on_quantiles(self.estimator, predictions)
        if groups is not None and not groups.are_single_rows:
            return self._with_signs(targets, predictions, weights, groups, rng, engine)
        estimator, notes = within_budget(self.estimator, predictions, self.n_resamples, self.budget)
        estimate = as_estimate(estimator, targets, predictions, weights, engine)
        if isinstance(estimator, BaseEstimator):
            estimator, targets, predictions = estimator.reduce(targets, predictions)
        statistic = statistic_of(estimator, predictions, weights)
        observed = float(statistic(to_numpy(targets)[None])[0])
        resample = partial(_resample, statistic, predictions)
        settings: dict[str, Any] = {"width": int(np.prod(targets.shape)), "rng": rng, "engine": engine}
        if self.stop_after is None:
            null = draw(resample, self.n_resamples, **settings)
            pvalue = self._pvalue(observed, null)
        else:
            null, pvalue = self._sequential(resample, observed, settings)
        notes = notes if groups is None else (*notes, SINGLE)
        return TestResult(float(estimate), pvalue, len(predictions), self, estimate, null, notes)

    def _with_signs(
        self,
        targets: Array,
        predictions: Distribution,
        weights: np.ndarray | None,
        clusters: Clusters,
        rng: Seed,
        engine: Engine | None,
    ) -> TestResult:
        """Signs of clusters in the place of resampled targets."""
        if self.alternative != "greater":
            raise InputError(f"alternative must be 'greater' with clusters; got {self.alternative!r}")
        (own,), told = check_clusters(self, (self.estimator,), targets, predictions, weights, clusters)
        estimator, notes = with_signs_within_budget(own, predictions, self.n_resamples, self.budget, clusters)
        estimate = as_estimate(estimator, targets, predictions, weights, engine, clusters)
        statistic, signs = estimator.with_signs(to_numpy(targets), predictions, weights, clusters), Signs(len(clusters))
        observed = float(statistic(signs.observed[None])[0])
        settings: dict[str, Any] = {"width": len(predictions), "rng": rng, "engine": engine}
        resample = partial(_resample, statistic, signs)
        if self.stop_after is None:
            null = draw(resample, self.n_resamples, **settings)
            pvalue = self._pvalue(observed, null)
        else:
            null, pvalue = self._sequential(resample, observed, settings)
        notes = (*told, *notes)
        return TestResult(float(estimate), pvalue, len(predictions), self, estimate, null, notes, has_band=False)

    def _pvalue(self, observed: float, null: np.ndarray) -> float:
        pool = np.append(null, observed)
        ranks = {"greater": at_least, "less": at_most, "two-sided": nearer_tail}[self.alternative](pool)
        return float(ranks[-1] / len(pool))

    def _sequential(self, resample: Any, observed: float, settings: dict[str, Any]) -> tuple[np.ndarray, float]:
        """Resamples up to the one that is the h-th to reach the observed value."""
        assert self.stop_after is not None
        reached = partial(_reached, observed, self.alternative)
        null = draw_until(resample, self.n_resamples, reached, self.stop_after, **settings)
        hits = int(reached(null).sum())
        return null, hits / len(null) if hits >= self.stop_after else (1 + hits) / (1 + len(null))


def _reached(observed: float, alternative: str, values: np.ndarray) -> np.ndarray:
    """Which resamples are at least as extreme as what was observed."""
    slack = rounding_of(np.append(values, observed))
    if np.isnan(values).any() or np.isnan(observed):
        raise InputError("the statistic is not a number for some sets of targets")
    return values >= observed - slack if alternative == "greater" else values <= observed + slack


def within_budget(
    estimator: Any, predictions: Distribution, n_resamples: int, budget: float
) -> tuple[Any, tuple[str, ...]]:
    """The estimator, or one of the same quantity that so many resamples can afford, and a note that says so."""
    if not isinstance(estimator, BaseEstimator):
        return estimator, ()
    chosen = estimator.affordable(predictions, n_resamples, budget)
    if chosen is estimator:
        return estimator, ()
    return chosen, (
        f"{n_resamples:,} resamples of all pairs exceed the budget of {budget:.0e}: {brief(chosen)} instead",
    )


def with_signs_within_budget(
    estimator: BaseEstimator, predictions: Distribution, n_resamples: int, budget: float, clusters: Clusters
) -> tuple[BaseEstimator, tuple[str, ...]]:
    """The same for signs of clusters."""
    chosen = estimator.affordable_with_signs(predictions, n_resamples, budget, clusters)
    if chosen is estimator:
        return estimator, ()
    return chosen, (
        f"all pairs of {len(predictions):,} rows in {len(clusters):,} clusters are many: {brief(chosen)} instead",
    )


def check_rests_on_quantiles(estimator: Any, predictions: Distribution) -> None:
    """Refuse to resample quantile forecasts for a statistic that depends on what lies between their levels."""
    if not getattr(estimator, "rests_on_levels", False):
        check_whole(predictions, estimator)


def statistic_of(estimator: Any, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
    """The statistic as a function of stacks of targets."""
    if isinstance(estimator, BaseEstimator):
        return estimator.given(predictions, weights)
    return EachDraw(estimator, predictions, weights)


def _resample(
    statistic: Statistic, predictions: Distribution | Signs, seed: np.random.SeedSequence, size: int
) -> np.ndarray:
    return statistic(predictions.sample(np.random.default_rng(seed), size))


BLIND = "PIT values that are uneven in all rows alike are not seen by this test: look at PITHistogram as well"


@dataclass(frozen=True)
class ShuffleTest(Settings):
    """Test that how outcomes lie in their forecasts has nothing to do with what was forecast, for rows in the order of time.

    The PIT values ``F_i(y_i)`` of ``block`` rows after each other are kept together and handed to other rows, at random; each
    outcome is then the quantile of its new forecast at that level, and the statistic is ranked among those of
    ``n_resamples`` such series. If blocks of PIT values are exchangeable and independent of the forecasts, as those of a calibrated
    forecast are when errors depend on errors up to a block before, the level holds exactly at every n, for every
    statistic. Tests for independent rows, :class:`ExactTest` among them, reject such series far too often.

    What all rows have in common is not seen: forecasts that are too narrow everywhere keep their levels. With ``block=1`` it
    is a permutation test. PIT values of counts are randomised. For forecasts of numbers; O(n) quantiles a resample.

    >>> from calibrant import SKCE, Normal
    >>> rng = np.random.default_rng(0)
    >>> loc = rng.normal(size=200)
    >>> errors = np.repeat(rng.normal(size=40), 5)  # for five days the same
    >>> ShuffleTest(SKCE(), block=10, n_resamples=99)(loc + errors, Normal(loc, 1.0)).pvalue > 0.05
    True
    >>> ShuffleTest(SKCE(), block=10, n_resamples=99)(errors - loc, Normal(loc, 1.0)).pvalue
    0.01
    """

    estimator: Estimator
    block: int
    n_resamples: int = 999
    seed: int = 0

    def __post_init__(self) -> None:
        if not callable(self.estimator):
            raise InputError(f"estimator must be an estimator such as SKCE(); got {self.estimator!r}")
        check_count(self.block, "block")
        check_count(self.n_resamples, "n_resamples")
        check_count(self.seed, "seed", least=0)

    def __call__(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        clusters: ArrayLike | None = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> TestResult:
        """Hand PIT values around, compare and count."""
        refuse_clusters(self, clusters)
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight, Classes(labels, pos_label))
        check_whole(predictions, self)
        check_blocks(self.block, len(predictions))
        needed(predictions[:1].quantile(np.array([0.5])), "quantiles", predictions, self)
        pit = PIT(seed=self.seed).of(to_numpy(targets), predictions)
        estimate = as_estimate(self.estimator, targets, predictions, weights)
        statistic = statistic_of(self.estimator, predictions, weights)
        observed = float(statistic(to_numpy(targets)[None])[0])
        resample = partial(_handed, statistic, predictions, pit, self.block)
        null = draw(resample, self.n_resamples, width=len(predictions), rng=rng, engine=engine)
        pvalue = float(at_least(np.append(null, observed))[-1] / (len(null) + 1))
        return TestResult(float(estimate), pvalue, len(predictions), self, estimate, null, (BLIND,))


def _handed(
    statistic: Statistic,
    predictions: Distribution,
    pit: np.ndarray,
    block: int,
    seed: np.random.SeedSequence,
    size: int,
) -> np.ndarray:
    """The statistic of outcomes at PIT values of other rows, ``(size,)``."""
    rng, n = np.random.default_rng(seed), len(pit)
    others = np.stack([pit[shuffled_rows(n, block, rng)] for _ in range(size)])
    rows = [to_numpy(predictions[i : i + 1].quantile(others[:, i]))[0] for i in range(n)]
    return statistic(np.stack(rows, axis=1))
