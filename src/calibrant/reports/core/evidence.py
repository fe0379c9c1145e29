"""What a calibrated model would show: one pool of resamples behind every p-value and band of a report."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from calibrant.distributions.base import Distribution
from calibrant.distributions.categorical import Bernoulli
from calibrant.estimators.base import BaseEstimator, Statistic
from calibrant.estimators.binned.bin_sums import BinnedStatistic
from calibrant.estimators.binned.tail_scan import TailStatistic
from calibrant.estimators.forecast_errors.quantile_cells import ShareBetween
from calibrant.estimators.kernel_errors.skce import SKCE
from calibrant.estimators.scoring_rules.proper_scores import Score
from calibrant.inference.exact_tests.aggregated import Pool, TargetSampler, scales_around
from calibrant.inference.exact_tests.exact_test import within_budget
from calibrant.inference.intervals import include_null
from calibrant.planning.affordable import KERNEL_WORK, work_of
from calibrant.plots.comparisons.null import NullDisplay
from calibrant.reports.core.model import KeyNumber, Picture, Step
from calibrant.reports.core.problem import ReportProblem, Slicing
from calibrant.results import TestResult, percent


def kernel_errors(predictions: Distribution, kernel: SKCE | None, n_resamples: int) -> dict[str, BaseEstimator]:
    """Kernel errors by name, as many as the work allows: the report's own, then others from coarse to fine.

    ``kernel`` is what the report shows; it is left out where only random features could stand for it.

    >>> from calibrant import Categorical
    >>> list(kernel_errors(Categorical([0.2, 0.7]), SKCE(), 99))
    ['kernel', 'kernel 1', 'kernel 2', 'kernel 3']
    >>> list(kernel_errors(Categorical([0.2, 0.7]), SKCE(), 10**9))
    []
    """
    if kernel is None or isinstance(predictions, Bernoulli):  # labels have no common kernel
        return {}
    left, found = KERNEL_WORK, dict[str, BaseEstimator]()
    for name, wished in _wished(kernel.resolved(predictions)):
        chosen, _ = within_budget(wished, predictions, n_resamples, KERNEL_WORK / 4)
        if name == "kernel" and chosen is not wished:
            continue
        work = n_resamples * work_of(chosen, predictions)
        if work <= left:
            left -= work
            found[name] = chosen
    return found


def _wished(kernel: SKCE) -> Iterator[tuple[str, SKCE]]:
    assert kernel.on_targets is not None
    if kernel.block is None:
        yield "kernel", kernel
    # From coarse to fine, but the finest second: two scales far from each other see more than two close ones.
    coarse, *rest = reversed(scales_around(kernel.on_predictions, kernel.on_targets))
    for i, estimator in enumerate([coarse, *reversed(rest)]):
        yield f"kernel {i + 1}", estimator


EACH, EACH_MEAN, EACH_TAIL = "each class", "each mean", "each tail"
"""The names in the pool of the errors of single classes or labels, of their means, and of their tails."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """A pool of resamples; which statistics in it speak for themselves, and which families count as one.

    The p-value of all together is exact at every n: calibrated models raise an alarm in at most 5 % of cases.
    """

    pool: Pool
    single: tuple[str, ...]
    classes: tuple[str, ...] = ()
    slicings: tuple[Slicing, ...] = ()

    @property
    def slices(self) -> tuple[str, ...]:
        """The slices of all columns, one family."""
        return tuple(slicing.key for slicing in self.slicings)

    @property
    def pvalue(self) -> float:
        """Of everything together."""
        return self.pool.together(self.single, [self.classes, self.slices])

    @property
    def pvalue_of_all_rows(self) -> float:
        """Without the slices."""
        return self.pool.together(self.single, [self.classes])

    @property
    def n_statistics(self) -> int:
        """How many statistics were put together; a family is one."""
        return len(self.single) + bool(self.classes) + bool(self.slicings)

    @property
    def n_resamples(self) -> int:
        """How many resamples there are."""
        return self.pool.n_resamples

    def in_words(self, n: int) -> str:
        """How the p-value of all tests was made."""
        return f"aggregated exact test of {self.n_statistics} statistics with {self.n_resamples:,} resamples, n = {n:,}"


@dataclass(frozen=True, eq=False)
class LabelEvidence(Evidence):
    """Evidence on several labels, each tested by itself: they may depend on each other beyond what was predicted.

    Resamples take labels as independent, so that no mean over labels has an exact test. The p-value of every single one is
    exact, and two ways of putting them together hold whatever the dependence: the smallest times their number, and twice the
    median; the better one counts twice. Rueger (1978).
    """

    labels: tuple[float, ...] = ()

    @property
    def pvalue(self) -> float:
        """Of all labels together."""
        return min(1.0, 2 * min(len(self.labels) * min(self.labels), 2 * float(np.median(self.labels))))

    @property
    def pvalue_of_all_rows(self) -> float:
        """The same: slices do not count."""
        return self.pvalue

    def in_words(self, n: int) -> str:
        """How the p-value of all tests was made."""
        return f"exact tests of {len(self.labels)} labels, each by itself, with at least {self.n_resamples:,} resamples, n = {n:,}"


def resamples(count: int) -> Step:
    """The step that takes longest."""
    return Step(f"{count:,} resamples", 50.0)


@dataclass(frozen=True, eq=False)
class MeanAndEach:
    """The mean error over events, and then that of each, ``(m, 1 + events)``."""

    statistic: BinnedStatistic | TailStatistic

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """Of stacks of targets."""
        each = self.statistic.each(targets)
        return np.concatenate([each.mean(axis=1, keepdims=True), each], axis=1)


def gather(
    problem: ReportProblem,
    measures: Mapping[str, BaseEstimator],
    slicings: Sequence[Slicing],
    each: Mapping[str, str] = {},
    resampled_from: TargetSampler | None = None,
) -> Evidence:
    """Resample, and compute on the same resamples every measure, kernel errors of several scales, classes and slices.

    ``each`` names measures of several events, and what their errors of single events are called: the first are a family.
    Targets are resampled from the predictions, or from what is said.
    """
    kernels = kernel_errors(problem.predictions, problem.kernel_error, problem.n_resamples)
    estimators = {**measures, **kernels}
    given: dict[str, Statistic] = {
        name: estimator.given(problem.predictions, problem.weights) for name, estimator in estimators.items()
    }
    for name in each:
        statistic = given[name]
        assert isinstance(statistic, BinnedStatistic | TailStatistic)
        given[name] = MeanAndEach(statistic)
    given |= {slicing.key: slicing.statistic(problem) for slicing in slicings}
    pool = Pool.draw(
        given,
        problem.targets,
        resampled_from or problem.predictions,
        problem.n_resamples,
        two_sided=[name for name, e in measures.items() if isinstance(e, Score | ShareBetween)],
        rng=problem.fresh_seeds,
        engine=problem.engine,
    )
    values = dict(pool.values)
    for name, single in each.items():
        values |= {name: pool.values[name][:, :1], single: pool.values[name][:, 1:]}
    return Evidence(Pool(values, pool.two_sided), tuple(estimators), tuple(each.values())[:1], tuple(slicings))


Unit: TypeAlias = Literal["percent", "number"]


class KeyMeasure(NamedTuple):
    """What is measured: its label, what it means, the estimator, the unit, and its key, among the resamples, too."""

    label: str
    meaning: str
    estimator: BaseEstimator
    unit: Unit
    key: str

    @property
    def step(self) -> Step:
        """The work of measuring it."""
        return Step(self.label, 7.0) if self.key == "kernel" else Step(self.label)


def number_of(problem: ReportProblem, measure: KeyMeasure, pool: Pool | None) -> KeyNumber:
    """The number with its interval, and with its test and band where it was resampled."""
    estimate = measure.estimator.estimate(problem.targets, problem.predictions, problem.weights)
    interval = estimate.confidence_interval() if estimate.has_interval else None
    band, pvalue = None, None
    if pool is not None and measure.key in pool.values:
        band, pvalue = pool.null_band(measure.key), pool.pvalue(measure.key)
    if measure.estimator == problem.error and interval is not None and pvalue is not None:
        interval = include_null(interval, TestResult(float(estimate), pvalue, len(problem), measure, estimate))
    return KeyNumber(
        label=measure.label,
        meaning=measure.meaning,
        value=float(estimate),
        unit=measure.unit,
        interval=interval,
        null_band=band,
        pvalue=pvalue,
        estimator=repr(estimate.estimator),
        estimator_name=type(estimate.estimator).__name__,
        key=measure.key,
        withheld=estimate.withheld if interval is None else None,
    )


def null_of(problem: ReportProblem, pool: Pool, estimator: BaseEstimator, key: str, label: str) -> Picture:
    """The null distribution of an error in the pool, with the error of the data."""
    estimate = replace(
        estimator.estimate(problem.targets, problem.predictions, problem.weights), name=label.capitalize()
    )
    null, pvalue = pool.null(key), pool.pvalue(key)
    test = TestResult(float(estimate), pvalue, len(problem), estimator, estimate, null)
    above = float(np.mean(null >= float(estimate)))
    band = pool.null_band(key)
    return Picture(
        "null",
        "What chance alone would show",
        f"The {label} of {len(null):,} sets of outcomes drawn anew from the predictions, which are calibrated by construction. "
        "The line is this model; far to the right of the bars, chance does not explain it.",
        f"Histogram of the {label} if calibrated, from {percent(band.low)} to {percent(band.high)} in 95 % of resamples; this "
        f"model shows {percent(float(estimate))}, and {percent(above)} of resamples as much or more.",
        NullDisplay.from_result(test).tables,
    )
