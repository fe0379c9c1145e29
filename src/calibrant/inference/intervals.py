"""Confidence intervals and standard errors of any estimator, by resampling rows and by leaving rows out."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit

from calibrant._clusters import Clusters
from calibrant._spellings import Settings
from calibrant._tasks import mapping
from calibrant._validate import InputError, check_count, check_fraction
from calibrant.distributions.base import Distribution
from calibrant.distributions.reading.conversion import Classes, as_clustered_problem
from calibrant.estimators.base import SINGLE, BaseEstimator, as_estimate
from calibrant.estimators.cluster_skewness import MIN_SURPRISES_OF_LIMITS, too_few_clusters
from calibrant.estimators.mean_limits import MeanLimits, skewed_quantile
from calibrant.estimators.scoring_rules.proper_scores import Score
from calibrant.estimators.signs import BY_BOOTSTRAP
from calibrant.inference.monte_carlo import as_seed_sequence, block_rows, check_blocks, draw
from calibrant.results import Estimate, Interval
from calibrant.typing import Array, ArrayLike, Engine, Estimator, Seed


@dataclass(frozen=True)
class Bootstrap(Settings):
    """An estimate with a bootstrap interval and standard error.

    Rows are drawn with replacement. With the standard deviation s and the skewness g of the resampled values the interval is
    ``T + s Q(tail)``, Q being the quantiles of a Pearson III law of skewness 2g, as for means (:class:`MeanLimits`): one g is
    seen in the values, the other is due to the spread, which grows with them. Efron & Tibshirani (1993), Johnson (1978). It is
    never narrower than the estimator's own: resamples show no loss that was not seen.

    It is for smooth functions of means over rows: scores, slopes, variances of z-scores, functions of your own. Resampled rows
    repeat, which calibration errors take for miscalibration; those that are no such functions are refused, and most have an
    interval of their own, ``ECE()(y_true, y_pred).confidence_interval()``.

    ``block=b`` is for rows in the order of time: b rows after each other are drawn together, so that what depends on what
    was shortly before stays with it; the last row is followed by the first. Politis & Romano (1992).

    ``clusters`` has one label per row: whole clusters are drawn with replacement, so that what rows of a cluster have in common
    stays with it. Where clusters, or rare events in them, are too few, the interval is withheld.

    >>> import numpy as np
    >>> from calibrant import Bootstrap, Brier
    >>> rng = np.random.default_rng(0)
    >>> y_pred = rng.random(400)
    >>> y_true = (rng.random(400) < y_pred) * 1
    >>> low, high = Bootstrap(Brier(), n_resamples=199)(y_true, y_pred).interval
    >>> low < 1 / 6 < high
    True
    """

    estimator: Estimator
    n_resamples: int = 999
    confidence_level: float = 0.95
    block: int = 1

    def __post_init__(self) -> None:
        if not callable(self.estimator):
            raise InputError(f"estimator must be an estimator such as Brier(); got {self.estimator!r}")
        if (reason := unsuited(self.estimator)) is not None:
            name = type(self.estimator).__name__
            raise InputError(
                f"estimator must suit resampling of rows, and {name} does not: {reason}. Leave out the bootstrap: "
                f"{name}(...)(y_true, y_pred).confidence_interval() is its own interval, or says why it has none"
            )
        check_count(self.n_resamples, "n_resamples", least=2)
        check_count(self.block, "block")
        check_fraction(self.confidence_level, "confidence_level")

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
    ) -> Estimate:
        """The estimate, its standard error and interval."""
        targets, predictions, weights, groups = as_clustered_problem(
            y_true, y_pred, sample_weight, clusters, Classes(labels, pos_label)
        )
        value = partial(value_of_rows, self.estimator, targets, predictions, weights)
        if groups is not None and self.block > 1:
            raise InputError(f"block={self.block} draws consecutive rows together: leave out block, or clusters")
        if groups is not None and not groups.are_single_rows:
            estimate = self._of_clusters(targets, predictions, weights, groups, engine)
            if estimate.withheld is not None:
                return estimate
            resample = partial(_resample_clusters, value, rows_of_clusters(groups))
            values = draw(resample, self.n_resamples, width=len(predictions), rng=rng, engine=engine)
            return with_spread(estimate, values, self.confidence_level, self.estimator, groups.effective)
        estimate = value(slice(None), engine)
        estimate = estimate if groups is None else replace(estimate, notes=(*estimate.notes, SINGLE))
        check_blocks(self.block, len(predictions))
        resample = partial(_resample, value, len(predictions), self.block)
        values = draw(resample, self.n_resamples, width=len(predictions), rng=rng, engine=engine)
        n_blocks = max(len(predictions) // self.block, 2)
        return with_spread(estimate, values, self.confidence_level, self.estimator, n_blocks)

    def _of_clusters(
        self,
        targets: Array,
        predictions: Distribution,
        weights: np.ndarray | None,
        clusters: Clusters,
        engine: Engine | None,
    ) -> Estimate:
        """The estimate, with its own interval if that allows for clusters, or with the reason why there is none."""
        if isinstance(self.estimator, Score):
            return as_estimate(self.estimator, targets, predictions, weights, engine, clusters)
        few = too_few_clusters(targets, predictions, weights, clusters, MIN_SURPRISES_OF_LIMITS)
        found = as_estimate(self.estimator, targets, predictions, weights, engine)
        return replace(found, interval=None, standard_error=None, limits=None, withheld=found.withheld or few)


def unsuited(estimator: object) -> str | None:
    """Why resampling of rows gives an estimator no interval that holds; ``None`` where it does, or where only its author knows."""
    return estimator.resampling if isinstance(estimator, BaseEstimator) else None


def with_spread(estimate: Estimate, values: np.ndarray, level: float, estimator: object, n: int) -> Estimate:
    """The estimate with the interval that resampled values of n independent parts give it; none where its own is withheld."""
    if estimate.withheld is not None:
        return estimate
    if not np.isfinite(values).all():
        count = int((~np.isfinite(values)).sum())
        return replace(estimate, withheld=f"{count:,} of {len(values):,} resamples give no finite value")
    error = float(np.std(values, ddof=1) * np.sqrt(n / (n - 1)))
    if error <= 1e-12 * abs(float(estimate)):
        return replace(estimate, withheld="all resamples give the same value, which says nothing of other rows")
    skewness, tail = float(np.mean(((values - values.mean()) / values.std()) ** 3)), (1 - level) / 2
    heavier = float(stdtrit(n - 1, tail) / ndtri(tail))
    low, high = (float(estimate) + heavier * error * skewed_quantile(2 * skewness, p) for p in (tail, 1 - tail))
    if estimate.has_interval:  # which allows for what resamples cannot show, such as losses that were not seen
        own = estimate.confidence_interval(level)
        low, high = min(low, own.low), max(high, own.high)
    least, most = getattr(estimator, "least", -np.inf), getattr(estimator, "most", np.inf)
    interval = Interval(max(low, least), min(high, most), level, "bootstrap")
    return replace(estimate, standard_error=error, interval=interval, limits=None, withheld=None)


@dataclass(frozen=True)
class WithInterval(Settings):
    """An estimate with the interval that the estimator knows, else that of the bootstrap, else the reason why there is none.

    >>> from calibrant import ECE
    >>> found = WithInterval(ECE())([1, 0, 1, 1], [0.9, 0.2, 0.6, 0.7])
    >>> found.interval.low, found.interval.method
    (0.0, 'normal noise')
    """

    estimator: Estimator
    n_resamples: int = 999

    def __call__(self, y_true: ArrayLike, y_pred: ArrayLike, **options: Any) -> Estimate:
        """The estimate of targets and predictions; ``sample_weight``, ``rng`` and ``engine`` as for :class:`Bootstrap`."""
        plain = {key: value for key, value in options.items() if key != "rng"}
        if not isinstance(self.estimator, BaseEstimator):
            return Bootstrap(self.estimator, self.n_resamples)(y_true, y_pred, **options)
        if options.get("clusters") is not None and self.estimator.resampling is None:
            return Bootstrap(self.estimator, self.n_resamples)(y_true, y_pred, **options)
        estimate = self.estimator(y_true, y_pred, **plain)
        if estimate.has_interval:
            return replace(estimate, interval=estimate.confidence_interval())
        if estimate.withheld is not None:
            return estimate
        if self.estimator.resampling is not None:
            return replace(
                estimate, withheld=f"none is known, and the bootstrap does not suit it: {self.estimator.resampling}"
            )
        return Bootstrap(self.estimator, self.n_resamples)(y_true, y_pred, **options)


def value_of_rows(
    estimator: Callable[..., Any],
    targets: Array,
    predictions: Distribution,
    weights: np.ndarray | None,
    rows: slice | np.ndarray,
    engine: Engine | None = None,
) -> Estimate:
    """The estimate from some rows of a problem, which may repeat."""
    w = None if weights is None else weights[rows]
    return as_estimate(estimator, targets[rows, ...], predictions[rows], w, engine)


def _resample(
    value: Callable[[np.ndarray], Any], n: int, block: int, seed: np.random.SeedSequence, size: int
) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.array([float(value(block_rows(n, block, rng))) for _ in range(size)])


def rows_of_clusters(clusters: Clusters) -> list[np.ndarray]:
    """The numbers of the rows of each cluster.

    >>> rows_of_clusters(Clusters(np.array([1, 0, 1]), 2))
    [array([1]), array([0, 2])]
    """
    return np.split(np.argsort(clusters.codes, kind="stable"), np.cumsum(clusters.sums())[:-1])


def cluster_rows(rows: list[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """The rows of as many clusters as there are, drawn with replacement."""
    return np.concatenate([rows[i] for i in rng.integers(0, len(rows), len(rows))])


def _resample_clusters(
    value: Callable[[np.ndarray], Any], rows: list[np.ndarray], seed: np.random.SeedSequence, size: int
) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.array([float(value(cluster_rows(rows, rng))) for _ in range(size)])


MAX_SINGLE_ROWS = 500
"""Up to so many rows each is left out by itself, unless a number of groups is given."""

N_GROUPS = 100
"""Groups of more rows than that: the standard error is then known to seven percent or so."""

TASKS = 20
"""Tasks for an engine: each carries all rows."""


@dataclass(frozen=True)
class Jackknife(Settings):
    """An estimate with the jackknife's standard error, and an interval where leaving out rows suits the estimator.

    Rows are dealt at random into G ``groups``, and the estimator is asked G times with one group left out:
    ``se^2 = (G - 1)/G sum_g (T_-g - mean T_-.)^2``. Without ``groups``, every row is a group of its own up to 500 rows,
    and there are 100 groups of more. For a mean with equal weights the former is the usual standard error. It needs an
    estimator that moves little when a row goes, such as a score or the SKCE far from calibration; not the largest gap of
    a few bins, nor blocks of consecutive rows. The interval is that of :class:`MeanLimits`, with the pseudo-values
    ``G T - (G - 1) T_-g`` for values; calibration errors, which are no smooth functions of means, get none. Length scales
    are those of all rows. Quenouille (1956), Tukey (1958).

    ``clusters`` has one label per row: whole clusters are dealt into groups. There is a standard error then, and no interval.

    >>> from calibrant import Brier
    >>> y_true, y_pred = [1, 0, 1, 1], [0.8, 0.4, 0.6, 0.9]
    >>> bool(np.isclose(Jackknife(Brier())(y_true, y_pred).standard_error, Brier()(y_true, y_pred).standard_error))
    True
    """

    estimator: Estimator
    groups: int | None = None
    confidence_level: float = 0.95

    def __post_init__(self) -> None:
        if not callable(self.estimator):
            raise InputError(f"estimator must be an estimator such as Brier(); got {self.estimator!r}")
        if self.groups is not None:
            check_count(self.groups, "groups", least=2)
        check_fraction(self.confidence_level, "confidence_level")

    def __call__(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> Estimate:
        """The estimate, its standard error and interval."""
        targets, predictions, weights, given = as_clustered_problem(
            y_true, y_pred, sample_weight, clusters, Classes(labels, pos_label)
        )
        together = None if given is None or given.are_single_rows else given
        estimate = value_of_rows(self.estimator, targets, predictions, weights, slice(None), engine)
        fixed: Any = estimate.estimator if isinstance(self.estimator, BaseEstimator) else self.estimator
        value = partial(value_of_rows, fixed, targets, predictions, weights)
        group = self._group_of_rows(len(predictions), rng)
        if together is not None:
            group = self._group_of_rows(len(together), rng, "clusters")[together.codes]
        tasks = np.array_split(np.arange(group.max() + 1), min(TASKS, group.max() + 1))
        values = np.concatenate(list(mapping(engine)(partial(_left_out, value, group), tasks)))
        found = self._with_limits(estimate, values)
        if together is not None:
            why = unsuited(self.estimator) or BY_BOOTSTRAP
            return replace(found, interval=None, limits=None, withheld=found.withheld or why)
        return found if given is None else replace(found, notes=(*found.notes, SINGLE))

    def _group_of_rows(self, n: int, rng: Seed, noun: str = "rows") -> np.ndarray:
        """The group of each row or cluster, as many in each as can be."""
        count = self.groups or (n if n <= MAX_SINGLE_ROWS else N_GROUPS)
        if not 2 <= count <= n:
            raise InputError(f"groups must be at least 2 and at most the number of {noun}, {n:,}; got {count:,}")
        if count == n:
            return np.arange(n)
        return np.random.default_rng(as_seed_sequence(rng)).permutation(np.arange(n) % count)

    def _with_limits(self, estimate: Estimate, values: np.ndarray) -> Estimate:
        """The standard error from the values without each group, and the limits of their pseudo-values."""
        if not np.isfinite(values).all():
            return replace(estimate, standard_error=None, interval=None, limits=None, withheld=INFINITE)
        g = len(values)
        error = float(np.sqrt((g - 1) * np.var(values)))
        plain = replace(
            estimate,
            standard_error=error,
            interval=None,
            limits=None,
            withheld=estimate.withheld or unsuited(self.estimator),
        )
        if plain.withheld is not None or not np.isfinite(error):
            return plain
        least, most = getattr(self.estimator, "least", -np.inf), getattr(self.estimator, "most", np.inf)
        of_groups = MeanLimits.of(g * float(estimate) - (g - 1) * values, least=least, most=most)
        limits = replace(of_groups, mean=float(estimate))
        interval = replace(limits(self.confidence_level), method="jackknife")
        return replace(plain, interval=interval, limits=limits)


INFINITE = "without some rows the value is infinite, so it has no spread"
"""Why the jackknife has no interval."""


def _left_out(value: Callable[[np.ndarray], Any], group: np.ndarray, without: np.ndarray) -> np.ndarray:
    """The values without each of some groups."""
    return np.array([float(value(np.flatnonzero(group != g))) for g in without])
