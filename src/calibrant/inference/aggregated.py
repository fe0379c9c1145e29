"""Several statistics in one exact test: no bandwidth to choose."""

from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np

from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution
from calibrant.distributions.bernoulli import Bernoulli
from calibrant.distributions.categorical import Categorical
from calibrant.distributions.conversion import as_weighted_problem
from calibrant.distributions.quantiles import fan_of
from calibrant.estimators.base import as_estimate
from calibrant.estimators.binned import ECE
from calibrant.estimators.binning import EqualMass
from calibrant.estimators.kernel_problem import resolve_kernels
from calibrant.estimators.pit_error import PITError
from calibrant.estimators.quantile_error import QuantileError
from calibrant.estimators.skce import SKCE
from calibrant.estimators.tail_scan import TailScan
from calibrant.inference.exact import BUDGET, check_rests_on_levels, statistic_of, within_budget
from calibrant.inference.pool import Pool
from calibrant.kernels import Exponential, Kernel
from calibrant.kernels.base import Radial
from calibrant.lenses import ClassWise, TopLabel
from calibrant.results import TestResult, brief
from calibrant.typing import ArrayLike, Engine, Estimator, Seed

SCALES = (1 / 16, 1 / 8, 1 / 2)
"""Length scales on class probabilities, in median distances: more of them would cost power against fine errors."""

SCALES_OF_BOTH = tuple(product((1 / 4, 1.0), (1 / 3, 1.0, 3.0)))
"""Length scales on other predictions and on their targets, in median distances."""

BINS = (2, 5, 15, 50)


@dataclass(frozen=True)
class AggregatedTest:
    """The exact test with many statistics at once, by default kernel errors over a grid of length scales, and tails.

    Every statistic is ranked within the pool of the observed targets and their ``n_resamples`` redraws; the smallest rank
    over the statistics is ranked within the pool again, ties broken by how far the statistic stands out. Exact at every n
    by exchangeability, and nearly as powerful as the best of the statistics, whichever that is. Schrab et al. (2023) for
    the idea; the ranks make it exact.

    >>> from calibrant import AggregatedTest
    >>> rng = np.random.default_rng(0)
    >>> y_pred = rng.random(500)
    >>> y_true = (rng.random(500) < y_pred + 0.2 * np.sin(40 * y_pred)) * 1
    >>> AggregatedTest(n_resamples=199)(y_true, y_pred).pvalue
    0.005
    """

    estimators: tuple[Estimator, ...] | None = None
    n_resamples: int = 999
    budget: float = BUDGET

    def __post_init__(self) -> None:
        check_count(self.n_resamples, "n_resamples")
        if self.estimators is not None:
            object.__setattr__(self, "estimators", tuple(self.estimators))
            if not self.estimators or not all(callable(e) for e in self.estimators):
                raise InputError(f"estimators must be estimators such as (SKCE(), ECE()); got {self.estimators!r}")

    def __call__(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> TestResult:
        """Redraw, rank, and rank again; the result shows the statistic with the smallest rank.

        Of several there is no band of a calibrated model: the statistic shown is the one that stands out most, and would leave
        its own band more often than it says. ``ExactTest`` of that statistic has one.
        """
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight)
        wished = default_grid(predictions) if self.estimators is None else self.estimators
        for each in wished:
            check_rests_on_levels(each, predictions)
        share = self.budget / len(wished)
        chosen, notes = zip(*(within_budget(e, predictions, self.n_resamples, share) for e in wished), strict=True)
        if len(predictions) == 1:
            for estimator in chosen:  # those that need more rows say so
                as_estimate(estimator, targets, predictions, weights)
        statistics = {str(i): statistic_of(e, predictions, weights) for i, e in enumerate(chosen)}
        pool = Pool.draw(statistics, targets, predictions, self.n_resamples, rng=rng, engine=engine)
        alone = [pool.pvalue(name) for name in statistics]
        best = int(np.argmin(alone))
        estimate = as_estimate(chosen[best], targets, predictions, weights, engine)
        single = f"{brief(estimate.estimator)}, alone p = {alone[best]:.4g}"
        return TestResult(
            statistic=float(estimate),
            pvalue=pool.together(list(statistics)),
            n=len(predictions),
            test=self,
            estimate=estimate,
            null_distribution=pool.null("0") if len(wished) == 1 else None,
            notes=(
                f"{len(wished)} statistics; the strongest is {single}",
                *dict.fromkeys(note for some in notes for note in some),
            ),
        )


def default_grid(predictions: Distribution) -> tuple[Estimator, ...]:
    """Kernel errors over length scales from far below to above the median distance; binned errors of several labels.

    Of quantile forecasts, gaps at their levels. Probabilities have their tails looked at, too: few rows with high scores,
    or few events, hardly move a kernel error. Two classes then do without the middle scale: each statistic more costs
    the others some power.

    >>> len(default_grid(Categorical([0.2, 0.7, 0.6])))
    3
    """
    if isinstance(predictions, Bernoulli):
        return (*(ECE(EqualMass(bins)) for bins in BINS), TailScan())
    if fan_of(predictions) is not None:
        return (PITError("kuiper"), PITError("kolmogorov"), QuantileError())
    on_predictions, on_targets, _ = resolve_kernels(Exponential(), None, predictions)
    kernels, scans = scales_around(on_predictions, on_targets), tail_scans(predictions)
    if len(predictions) == 1:  # there are no pairs of rows
        kernels = tuple(replace(kernel, unbiased=False) for kernel in kernels)
    return (*(kernels[::2] if len(scans) == 1 else kernels), *scans)


def tail_scans(predictions: Distribution) -> tuple[TailScan, ...]:
    """Of the event of two classes; of the confidence and of every class of several."""
    if not isinstance(predictions, Categorical):
        return ()
    return (TailScan(),) if predictions.n_classes == 2 else (TailScan(TopLabel()), TailScan(ClassWise()))


def scales_around(on_predictions: Kernel, on_targets: Kernel) -> tuple[SKCE, ...]:
    """Kernel errors with multiples of the length scales of these kernels."""
    assert isinstance(on_predictions, Exponential)
    scaled = partial(replace, on_predictions)
    unit = on_predictions.unit
    if not isinstance(on_targets, Radial):
        return tuple(SKCE(scaled(lengthscale=factor * unit), on_targets) for factor in SCALES)
    return tuple(
        SKCE(scaled(lengthscale=a * unit), replace(on_targets, lengthscale=b * on_targets.unit))  # type: ignore[type-var]
        for a, b in SCALES_OF_BOTH
    )
