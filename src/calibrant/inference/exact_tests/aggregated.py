"""Several statistics in one exact test: no bandwidth to choose."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, Protocol

import numpy as np

from calibrant._array import to_numpy
from calibrant._clusters import Clusters
from calibrant._spellings import Settings
from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.empirical.quantiles import fan_of
from calibrant.distributions.reading.conversion import Classes, as_clustered_problem
from calibrant.estimators.base import SINGLE, Statistic, as_estimate
from calibrant.estimators.binned.binning import EqualMass
from calibrant.estimators.binned.ece import ECE
from calibrant.estimators.binned.tail_scan import TailScan
from calibrant.estimators.forecast_errors.pit_error import PITError, QuantileError
from calibrant.estimators.kernel_errors.kernel_problem import resolve_kernels
from calibrant.estimators.kernel_errors.skce import SKCE
from calibrant.inference.exact_tests.cluster_signs import Signs, check_clusters
from calibrant.inference.exact_tests.exact_test import (
    BUDGET,
    check_rests_on_quantiles,
    statistic_of,
    with_signs_within_budget,
    within_budget,
)
from calibrant.inference.monte_carlo import at_least, draw, nearer_tail
from calibrant.kernels import Exponential, Kernel
from calibrant.kernels.base import Radial
from calibrant.lenses.class_lenses import ClassWise, TopLabel
from calibrant.results import Estimate, Interval, TestResult, brief
from calibrant.results.result import USUAL_LEVEL, central_band
from calibrant.typing import Array, ArrayLike, Engine, Estimator, Seed


class TargetSampler(Protocol):
    """What targets are resampled from: predictions, as a rule."""

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Targets ``(size, n, ...)``."""
        ...


@dataclass(frozen=True, eq=False)
class Pool:
    """Statistics by name, ``(resamples + 1, columns)``, the observed one last; ``two_sided`` ones are extreme at both ends.

    If the model is calibrated all rows are exchangeable, so whatever ranks them all alike has exact p-values at every n:
    the rank of one column, of the smallest rank over columns (:meth:`together`), and of the largest standard score over a
    family of columns, which allows for their number and for how they depend (:meth:`adjusted`). Schrab et al. (2023);
    Westfall & Young (1993).

    >>> pool = Pool({"a": np.array([[1.0], [2.0], [4.0], [5.0]]), "b": np.array([[0.0], [1.0], [0.0], [0.5]])})
    >>> pool.pvalue("a"), pool.together(["a", "b"])
    (0.25, 0.5)
    """

    values: Mapping[str, np.ndarray]
    two_sided: frozenset[str] = frozenset()

    @classmethod
    def draw(
        cls,
        statistics: Mapping[str, Statistic],
        targets: Array,
        predictions: TargetSampler,
        n_resamples: int,
        *,
        two_sided: Sequence[str] = (),
        width: int | None = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> "Pool":
        """All statistics, of one number or of several, on the targets and on the same resamples of them."""
        parts = tuple(statistics.values())
        observed = [_columns(part, to_numpy(targets)[None]) for part in parts]
        width = int(np.prod(targets.shape)) if width is None else width
        null = draw(partial(_resample, parts, predictions), n_resamples, width=width, rng=rng, engine=engine)
        pool = np.concatenate([null, np.concatenate(observed, axis=1)])
        ends = np.cumsum([part.shape[1] for part in observed])[:-1]
        return cls(dict(zip(statistics, np.split(pool, ends, axis=1), strict=True)), frozenset(two_sided))

    @property
    def n_resamples(self) -> int:
        """How many resamples there are."""
        return len(next(iter(self.values.values()))) - 1

    def null(self, name: str, column: int = 0) -> np.ndarray:
        """What a calibrated model shows."""
        return self.values[name][:-1, column]

    def observed(self, name: str, column: int = 0) -> float:
        """What these targets show."""
        return float(self.values[name][-1, column])

    def excess(self, name: str) -> np.ndarray:
        """How far each column exceeds what a calibrated model shows on average."""
        values = self.values[name]
        return values[-1] - values[:-1].mean(axis=0)

    def null_band(self, name: str, column: int = 0) -> Interval:
        """The central range of what a calibrated model shows."""
        return central_band(self.null(name, column), USUAL_LEVEL)

    def pvalue(self, name: str, column: int = 0) -> float:
        """Of one statistic by itself."""
        return float(self._rank(name)(self.values[name][:, column])[-1] / (self.n_resamples + 1))

    def together(self, names: Sequence[str], families: Sequence[Sequence[str]] = ()) -> float:
        """One p-value for all: the smallest rank, ranked again, ties broken by how far a statistic stands out.

        Each of the ``families``, lists of names, counts as one statistic, its largest standard score.
        """
        largest = [self._scores(family).max(axis=1, keepdims=True) for family in families if family]
        ranks = [self._ranks(name) for name in names] + [at_least(column[:, 0])[:, None] for column in largest]
        scores = [self._scores([name]) for name in names] + largest
        least, score = np.concatenate(ranks, axis=1).min(axis=1), np.concatenate(scores, axis=1).max(axis=1)
        tied = (least == least[-1]) & (at_least(score) <= at_least(score)[-1])
        return float(np.mean((least < least[-1]) | tied))

    def adjusted(self, family: Sequence[str]) -> np.ndarray:
        """A p-value per column of the family that allows for looking at all of them: the rank of its score among the largest."""
        scores = self._scores(family)
        largest = scores.max(axis=1)
        return np.array([at_least(np.append(largest[:-1], score))[-1] for score in scores[-1]]) / len(largest)

    def strongest(self, names: Sequence[str]) -> str:
        """The one of these with the smallest rank, and among several the one that stands out most."""
        key = [(self._ranks(name)[-1].min(), -self._scores([name])[-1].max()) for name in names]
        return names[min(range(len(names)), key=key.__getitem__)]

    def _ranks(self, name: str) -> np.ndarray:
        return np.stack([self._rank(name)(column) for column in self.values[name].T], axis=1)

    def _rank(self, name: str) -> Callable[[np.ndarray], np.ndarray]:
        return nearer_tail if name in self.two_sided else at_least

    def _scores(self, names: Sequence[str]) -> np.ndarray:
        return np.concatenate([_standard(self.values[name], name in self.two_sided) for name in names], axis=1)


def _standard(pool: np.ndarray, is_two_sided: bool) -> np.ndarray:
    """Standard scores within the pool, without sign where both ends are extreme; what is infinite stands out without end."""
    known = np.isfinite(pool)
    _, size = np.frexp(np.max(np.abs(pool), axis=0, where=known, initial=0.0))  # so that squares are numbers
    finite = np.where(known, np.ldexp(np.where(known, pool, 0.0), -size), np.where(known.any(axis=0), np.nan, 0.0))
    spread = np.nanstd(finite, axis=0)
    score = (finite - np.nanmean(finite, axis=0)) / np.where(spread > 0, spread, 1)
    return np.where(known, np.abs(score) if is_two_sided else score, np.inf)


def _columns(statistic: Statistic, targets: np.ndarray) -> np.ndarray:
    values = statistic(targets)
    return values[:, None] if values.ndim == 1 else values


def _resample(
    statistics: tuple[Statistic, ...], predictions: TargetSampler, seed: np.random.SeedSequence, size: int
) -> np.ndarray:
    """``(size, columns)``: all of them on the same resamples."""
    targets = predictions.sample(np.random.default_rng(seed), size)
    return np.concatenate([_columns(statistic, targets) for statistic in statistics], axis=1)


SCALES = (1 / 16, 1 / 8, 1 / 2)
"""Length scales on class probabilities, in median distances: more of them would cost power against fine errors."""

SCALES_OF_BOTH = tuple(product((1 / 4, 1.0), (1 / 3, 1.0, 3.0)))
"""Length scales on other predictions and on their targets, in median distances."""

BINS = (2, 5, 15, 50)


@dataclass(frozen=True)
class AggregatedTest(Settings):
    """The exact test with many statistics at once, by default kernel errors over a grid of length scales, and tails.

    Every statistic is ranked within the pool of the observed targets and their ``n_resamples`` resamples; the smallest rank
    over the statistics is ranked within the pool again, ties broken by how far the statistic stands out. Exact at every n
    by exchangeability, and nearly as powerful as the best of the statistics, whichever that is. Schrab et al. (2023) for
    the idea; the ranks make it exact.

    ``clusters`` are those of :class:`ExactTest`: all statistics are ranked on the same signs of whole clusters.

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
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        clusters: ArrayLike | None = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> TestResult:
        """Resample, rank, and rank again; the result shows the statistic with the smallest rank.

        Of several there is no band of a calibrated model: the statistic shown is the one that stands out most, and would leave
        its own band more often than it says. ``ExactTest`` of that statistic has one.
        """
        targets, predictions, weights, groups = as_clustered_problem(
            y_true, y_pred, sample_weight, clusters, Classes(labels, pos_label)
        )
        if groups is not None and not groups.are_single_rows:
            return self._with_signs(targets, predictions, weights, groups, rng, engine)
        wished = default_grid(predictions) if self.estimators is None else self.estimators
        for each in wished:
            check_rests_on_quantiles(each, predictions)
        share = self.budget / len(wished)
        chosen, notes = zip(*(within_budget(e, predictions, self.n_resamples, share) for e in wished), strict=True)
        if len(predictions) == 1:
            for estimator in chosen:  # those that need more rows say so
                as_estimate(estimator, targets, predictions, weights)
        statistics = {str(i): statistic_of(e, predictions, weights) for i, e in enumerate(chosen)}
        pool = Pool.draw(statistics, targets, predictions, self.n_resamples, rng=rng, engine=engine)
        best = _strongest(pool)
        estimate = as_estimate(chosen[best], targets, predictions, weights, engine)
        null = pool.null("0") if len(wished) == 1 else None
        single = () if groups is None else (SINGLE,)
        return self._result(pool, estimate, null, [*notes, single])

    def _with_signs(
        self,
        targets: Array,
        predictions: Distribution,
        weights: np.ndarray | None,
        clusters: Clusters,
        rng: Seed,
        engine: Engine | None,
    ) -> TestResult:
        """All statistics on the same signs of clusters."""
        wished = grid_with_signs(predictions) if self.estimators is None else self.estimators
        for each in wished:
            check_rests_on_quantiles(each, predictions)
        own, told = check_clusters(self, wished, targets, predictions, weights, clusters)
        share, y, signs = self.budget / len(wished), to_numpy(targets), Signs(len(clusters))
        chosen, notes = zip(
            *(with_signs_within_budget(e, predictions, self.n_resamples, share, clusters) for e in own),
            strict=True,
        )
        statistics = {str(i): e.with_signs(y, predictions, weights, clusters) for i, e in enumerate(chosen)}
        pool = Pool.draw(
            statistics, signs.observed, signs, self.n_resamples, width=len(predictions), rng=rng, engine=engine
        )
        estimate = as_estimate(chosen[_strongest(pool)], targets, predictions, weights, engine, clusters)
        return self._result(pool, estimate, None, [told, *notes])

    def _result(
        self, pool: Pool, estimate: Estimate, null: np.ndarray | None, notes: Sequence[Sequence[str]]
    ) -> TestResult:
        """What all statistics say together, with the estimate of the strongest."""
        alone = pool.pvalue(str(_strongest(pool)))
        strongest = (
            f"{len(pool.values)} statistics; the strongest is {brief(estimate.estimator)}, alone p = {alone:.4g}"
        )
        return TestResult(
            statistic=float(estimate),
            pvalue=pool.together(list(pool.values)),
            n=estimate.n,
            test=self,
            estimate=estimate,
            null_distribution=null,
            notes=(strongest, *dict.fromkeys(note for some in notes for note in some)),
        )


def _strongest(pool: Pool) -> int:
    """The place of the statistic with the smallest p-value, the first of several."""
    return int(np.argmin([pool.pvalue(name) for name in pool.values]))


def for_signs(estimator: Estimator) -> Estimator:
    """Squares of gaps, on whose mean skewness has no influence, in the place of their sizes; others as they are.

    >>> for_signs(ECE(EqualMass(2))).norm
    2
    """
    return replace(estimator, norm=2) if isinstance(estimator, ECE) else estimator


def grid_with_signs(predictions: Distribution) -> tuple[Estimator, ...]:
    """The default grid for clusters, with squares of gaps.

    >>> grid_with_signs(Bernoulli([[0.2, 0.7]]))[0]
    ECE(bins=EqualMass(n_bins=2, ties='together'), norm=2, lens=None, label_binned=False)
    """
    return tuple(map(for_signs, default_grid(predictions)))


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
