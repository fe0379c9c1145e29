"""What a calibrated model would show, one pool of resamples behind every p-value and band, and the verdict in words."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from calibrant._clusters import Clusters
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.estimators.base import BaseEstimator
from calibrant.estimators.binned.ece import BinnedStatistic
from calibrant.estimators.binned.tail_scan import TailStatistic
from calibrant.estimators.forecast_errors.quantile_cells import ShareBetween
from calibrant.estimators.kernel_errors.skce import SKCE
from calibrant.estimators.scoring_rules.proper_scores import Score
from calibrant.estimators.signs import BY_BOOTSTRAP, NO_LIMITS, WITHHELD
from calibrant.inference.exact_tests.aggregated import Pool, TargetSampler, scales_around
from calibrant.inference.exact_tests.cluster_signs import Signs
from calibrant.inference.exact_tests.exact_test import with_signs_within_budget, within_budget
from calibrant.planning.affordable import KERNEL_WORK, work_of
from calibrant.plots.comparisons.null import NullDisplay
from calibrant.reports.core.model import KeyNumber, Picture, Step, Verdict
from calibrant.reports.core.problem import FoundSlice, ReportProblem, Slicing
from calibrant.results import Estimate, Finding, Interval, TestResult, how_many, number, percent


def kernel_errors(
    predictions: Distribution, kernel: SKCE | None, n_resamples: int, clusters: Clusters | None = None
) -> dict[str, BaseEstimator]:
    """Kernel errors by name, as many as the work allows: the report's own, then others from coarse to fine.

    ``kernel`` is what the report shows; it is left out where only random features could stand for it. Signs of clusters need the
    sums over pairs of clusters once, whatever their number.

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
        if clusters is None:
            chosen, _ = within_budget(wished, predictions, n_resamples, KERNEL_WORK / 4)
        else:
            chosen, _ = with_signs_within_budget(wished, predictions, n_resamples, KERNEL_WORK / 4, clusters)
        if name == "kernel" and chosen is not wished:
            continue
        once = clusters is not None and isinstance(chosen, SKCE)
        work = (1 if once else n_resamples) * work_of(chosen, predictions)
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

    The p-value of all together is exact at every n: calibrated models raise an alarm in at most 5 % of cases. With ``clusters``,
    their number, the pool is one of signs, and this holds for many of them. Where nothing could be tested the pool is empty.
    """

    pool: Pool
    single: tuple[str, ...]
    classes: tuple[str, ...] = ()
    slicings: tuple[Slicing, ...] = ()
    clusters: int | None = None

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
        if self.clusters is not None:
            signs = f"{self.n_resamples:,} sets of signs of {self.clusters:,} clusters"
            return f"aggregated test of {self.n_statistics} statistics with {signs}, n = {n:,}"
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
    Targets are resampled from the predictions, or from what is said; with clusters signs are drawn instead.
    """
    if problem.untested is not None:
        return Evidence(Pool({}), ())
    clusters = problem.clusters
    kernels = kernel_errors(problem.predictions, problem.kernel_error, problem.n_resamples, clusters)
    estimators = {**{name: e for name, e in measures.items() if problem.can_test(e)}, **kernels}
    given = {name: problem.statistic(estimator) for name, estimator in estimators.items()}
    for name in each:
        statistic = given[name]
        assert isinstance(statistic, BinnedStatistic | TailStatistic)
        given[name] = MeanAndEach(statistic)
    given |= {slicing.key: slicing.statistic(problem) for slicing in slicings}
    sampler = resampled_from or problem.predictions if clusters is None else Signs(len(clusters))
    pool = Pool.draw(
        given,
        sampler.observed if isinstance(sampler, Signs) else problem.targets,
        sampler,
        problem.n_resamples,
        two_sided=[name for name, e in measures.items() if isinstance(e, Score | ShareBetween) and name in given],
        width=None if clusters is None else len(problem),
        rng=problem.fresh_seeds,
        engine=problem.engine,
    )
    values = dict(pool.values)
    for name, single in each.items():
        values |= {name: pool.values[name][:, :1], single: pool.values[name][:, 1:]}
    families = tuple(each.values())[:1], tuple(slicings)
    return Evidence(
        Pool(values, pool.two_sided), tuple(estimators), *families, None if clusters is None else len(clusters)
    )


Unit: TypeAlias = Literal["fraction", "number"]


class KeyMeasure(NamedTuple):
    """What is measured: its label, what it means, the estimator, the unit, and its key, among the resamples, too."""

    label: str
    meaning: str
    estimator: BaseEstimator
    unit: Unit
    key: str
    ideal: float | None = None

    @property
    def step(self) -> Step:
        """The work of measuring it."""
        return Step(self.label, 7.0) if self.key == "kernel" else Step(self.label)


def include_null(interval: Interval, test: TestResult) -> Interval:
    """The interval of a non-negative error, down to zero exactly when the exact test cannot rule zero out.

    >>> import numpy as np
    >>> from calibrant import ECE, ExactTest
    >>> y_pred = np.linspace(0.05, 0.95, 60)
    >>> y_true = (np.random.default_rng(3).random(60) < y_pred) * 1
    >>> interval = ECE()(y_true, y_pred).confidence_interval()
    >>> include_null(interval, ExactTest(ECE())(y_true, y_pred)).low
    0.0
    """
    if test.pvalue <= 1 - interval.level:
        return interval
    return interval if interval.low <= 0 else replace(interval, low=0.0, method=f"{interval.method} with exact test")


def number_of(problem: ReportProblem, measure: KeyMeasure, pool: Pool | None) -> KeyNumber:
    """The number with its interval, and with its test and band where it was resampled; signs of clusters give no band."""
    estimate = problem.estimate(measure.estimator)
    interval = estimate.confidence_interval() if estimate.has_interval else None
    band, pvalue = None, None
    if pool is not None and measure.key in pool.values:
        band = pool.null_band(measure.key) if problem.clusters is None else None
        pvalue = pool.pvalue(measure.key)
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
        withheld=_no_interval(estimate) if interval is None else None,
        ideal=measure.ideal,
    )


def _no_interval(estimate: Estimate) -> str | None:
    """Why an estimate has none: its own reason, what is special about the data, or why resampling of rows does not help."""
    if estimate.withheld in (WITHHELD, BY_BOOTSTRAP):  # a page gives the reason alone: what helps is written in Python
        return NO_LIMITS
    if estimate.withheld is not None:
        return estimate.withheld
    if not np.isfinite(float(estimate)) and estimate.notes:
        return estimate.notes[-1]
    return getattr(estimate.estimator, "resampling", None)


def null_of(problem: ReportProblem, pool: Pool, estimator: BaseEstimator, key: str, label: str) -> Picture:
    """The null distribution of an error in the pool, with the error of the data."""
    estimate = replace(
        estimator.estimate(problem.targets, problem.predictions, problem.weights),
        name=f"{label[:1].upper()}{label[1:]}",
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


DOUBT, CERTAINTY = 0.05, 0.02
"""P-values below which miscalibration is likely, and below which it is taken as shown."""

MIN_ROWS = 50
"""Fewer rows than this do not show that a model is calibrated, only that they cannot tell."""


@dataclass(frozen=True)
class Fault:
    """What is wrong, in one word and in words; the two means that show it; and where it is."""

    finding: Finding
    words: str
    means: str
    where: tuple[str, ...] = ()


def alarmed(
    fault: Fault,
    pvalue: float,
    tests: str,
    numbers: Sequence[KeyNumber],
    clearest: FoundSlice | None,
    noun: str,
    is_small: bool,
) -> Verdict:
    """The verdict on predictions that are wrong beyond chance: the sentence, then the evidence in order of weight."""
    is_shown = pvalue <= CERTAINTY
    main = numbers[0]
    words = f"Do not take these {noun} at face value" if is_shown else f"Treat these {noun} with care"
    headline = f"{words}: {fault.words}."
    tone: Literal["good", "unsure", "bad"] = "bad" if is_shown else "unsure"
    if is_small:
        headline = f"These {noun} are nearly right: {fault.words}, but by little ({main.text(main.value)} on average)."
        tone = "good"
    evidence = [
        f"All tests together: p = {number(pvalue)} ({tests}).",
        f"{magnitude(main)}; {would_show(main)}.",
        *_clearest(numbers),
        f"{fault.means}.",
        *fault.where,
        *in_slices(clearest),
    ]
    return Verdict(tone, headline, tuple(evidence), pvalue, fault.finding)


def undecided(problem: ReportProblem) -> Verdict:
    """That clusters are too few, or what happens in them too rare, for anything to be tested."""
    assert problem.clusters is not None
    assert problem.untested is not None
    few = f"{how_many(len(problem.clusters), 'cluster is', 'clusters are')} too few to tell."
    why = f"{problem.untested[:1].upper()}{problem.untested[1:]}."
    numbers = "The numbers below stand as they are, without what chance would show: collect rows of more clusters."
    return Verdict("unsure", few, (why, numbers), None, Finding.TOO_FEW_ROWS)


def consistent(pvalue: float, tests: str, main: KeyNumber, problem: ReportProblem, noun: str) -> Verdict:
    """That nothing speaks against the predictions, what is ruled out, or that there are too few rows to tell."""
    n = len(problem)
    evidence = [
        f"All tests together: p = {number(pvalue)} ({tests}).",
        f"{main.label}: {main.text(main.value)}, as chance alone would show; {would_show(main)}.",
    ]
    limit, worth = largest_left(main), n / problem.inflation
    if worth < MIN_ROWS:
        if limit is not None:
            evidence.append(f"An error of up to {main.text(limit)} would go unnoticed.")
        if n >= MIN_ROWS:
            evidence.append(
                f"{n:,} rows that are alike within their clusters tell as much as {worth:.0f} independent ones."
            )
        few = f"{how_many(n, 'row is', 'rows are')} too few to tell."
        return Verdict("unsure", few, tuple(evidence), pvalue, Finding.TOO_FEW_ROWS)
    if limit is None:
        evidence.append(
            "How large an error would go unnoticed is not stated: no limits are known that allow for clusters."
        )
    else:
        evidence.append(f"An error above {main.text(limit)} is ruled out (95 %); a smaller one is not.")
    return Verdict("good", f"These {noun} agree with what happened.", tuple(evidence), pvalue, Finding.NONE)


def largest_left(main: KeyNumber) -> float | None:
    """The largest error that 95 % of data sets like this one leave possible, where that is known.

    That is the upper end of the interval, so that a page states one limit. Without an interval the distances add up: the true
    error is at most the one seen and what chance makes of none.
    """
    if main.interval is not None:
        return main.interval.high
    return None if main.null_band is None else main.value + main.null_band.high


def magnitude(main: KeyNumber) -> str:
    """A number with its interval."""
    if main.interval is None:
        return f"{main.label}: {main.text(main.value)}"
    low, high = main.text(main.interval.low), main.text(main.interval.high)
    return f"{main.label}: {main.text(main.value)} (95 % interval {low} to {high})"


def would_show(main: KeyNumber) -> str:
    """What a calibrated model would show."""
    if main.pvalue is None:
        return "what a calibrated model would show was not computed"
    if main.null_band is None:
        return f"p = {number(main.pvalue)} by random signs of clusters"
    return f"a calibrated model with these very predictions would show {main.band()} (p = {number(main.pvalue)})"


def _clearest(numbers: Sequence[KeyNumber]) -> tuple[str, ...]:
    """The number that speaks clearest, where it is not the first."""
    tested = [x for x in numbers if x.pvalue is not None]
    if not tested or (numbers[0].pvalue or 0.0) <= DOUBT:
        return ()
    clearest = min(tested, key=lambda x: x.pvalue or 0.0)
    if clearest is numbers[0] or (clearest.pvalue or 0.0) > DOUBT:
        return ()
    return (f"{clearest.label}: {clearest.text(clearest.value)}; {would_show(clearest)}.",)


def in_slices(found: FoundSlice | None) -> tuple[str, ...]:
    """The slice where the evidence is clearest, where it is beyond chance."""
    if found is None:
        return ()
    predicted, observed = percent(found.predicted), percent(found.observed)
    return (
        f"Clearest where {found.name}: claimed {predicted}, happened {observed}, error "
        f"{percent(found.error)} (p = {number(found.pvalue)} among all slices).",
    )


def slice_fault(found: FoundSlice | None, too_much: Finding, too_little: Finding) -> Fault | None:
    """That all rows together are right, and one slice is not; words for claims above what happened, and below."""
    if found is None:
        return None
    gap = found.predicted - found.observed
    # a mean that is off by less than half the error does not explain it
    lean: str = "wrong" if abs(gap) < found.error / 2 else too_much if gap > 0 else too_little
    words = f"they agree with what happened on average, but are {lean} where {found.name}"
    means = f"There {percent(found.predicted)} was claimed, and {percent(found.observed)} happened"
    return Fault(Finding.SLICE, words, means)
