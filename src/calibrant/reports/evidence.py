"""What a calibrated model would show: one pool of redraws behind every p-value and band of a report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from calibrant.estimators.base import BaseEstimator, Statistic
from calibrant.estimators.counts import BinnedStatistic
from calibrant.estimators.quantile_cells import ShareBetween
from calibrant.estimators.scores import Score
from calibrant.estimators.tail_scan import TailStatistic
from calibrant.inference.pool import Pool, Redrawable
from calibrant.reports.kernels import kernel_errors
from calibrant.reports.problem import Problem
from calibrant.reports.slices import Slicing

EACH, EACH_MEAN, EACH_TAIL = "each class", "each mean", "each tail"
"""The names in the pool of the errors of single classes or labels, of their means, and of their tails."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """A pool of redraws; which statistics in it speak for themselves, and which families count as one.

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
        """How many redraws there are."""
        return self.pool.n_resamples

    def in_words(self, n: int) -> str:
        """How the p-value of all tests was made."""
        return f"aggregated exact test of {self.n_statistics} statistics with {self.n_resamples:,} redraws, n = {n:,}"


@dataclass(frozen=True, eq=False)
class LabelEvidence(Evidence):
    """Evidence on several labels, each tested by itself: they may depend on each other beyond what was predicted.

    Redraws take labels as independent, so that no mean over labels has an exact test. The p-value of every single one is
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
        return f"exact tests of {len(self.labels)} labels, each by itself, with at least {self.n_resamples:,} redraws, n = {n:,}"


@dataclass(frozen=True, eq=False)
class MeanAndEach:
    """The mean error over events, and then that of each, ``(m, 1 + events)``."""

    statistic: BinnedStatistic | TailStatistic

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """Of stacks of targets."""
        each = self.statistic.each(targets)
        return np.concatenate([each.mean(axis=1, keepdims=True), each], axis=1)


def gather(
    problem: Problem,
    measures: Mapping[str, BaseEstimator],
    slicings: Sequence[Slicing],
    each: Mapping[str, str] = {},
    redrawn_from: Redrawable | None = None,
) -> Evidence:
    """Redraw, and compute on the same redraws every measure, kernel errors of several scales, classes and slices.

    ``each`` names measures of several events, and what their errors of single events are called: the first are a family.
    Targets are redrawn from the predictions, or from what is said.
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
        redrawn_from or problem.predictions,
        problem.n_resamples,
        two_sided=[name for name, e in measures.items() if isinstance(e, Score | ShareBetween)],
        rng=problem.fresh_seeds,
        engine=problem.engine,
    )
    values = dict(pool.values)
    for name, single in each.items():
        values |= {name: pool.values[name][:, :1], single: pool.values[name][:, 1:]}
    return Evidence(Pool(values, pool.two_sided), tuple(estimators), tuple(each.values())[:1], tuple(slicings))
