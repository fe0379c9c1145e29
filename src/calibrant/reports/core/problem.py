"""One checked problem, how random work on it is done, and the slices of its rows."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self, TypeVar

import numpy as np

from calibrant._array import to_numpy
from calibrant._clusters import Clusters
from calibrant._validate import as_column, as_weights, check_same_length, named_columns
from calibrant.distributions.base import Distribution
from calibrant.estimators.base import BaseEstimator, Statistic
from calibrant.estimators.cluster_skewness import MIN_CLUSTERS, surprises_in
from calibrant.estimators.forecast_errors.spread import without_noise
from calibrant.estimators.kernel_errors.skce import SKCE
from calibrant.inference.exact_tests.aggregated import Pool, for_signs
from calibrant.inference.exact_tests.cluster_signs import MIN_SURPRISES
from calibrant.inference.exact_tests.exact_test import ExactTest
from calibrant.planning.affordable import PAIRS, affordable_kernel
from calibrant.reports.core.folds import DEPENDENT, Folds
from calibrant.reports.core.model import Section, Step
from calibrant.results import Estimate, Table, TestResult, how_many, number
from calibrant.results.text import plain_text
from calibrant.typing import Array, ArrayLike, Engine, Estimator

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class ReportProblem(ABC):
    """Targets and predictions of a report with their weights; resamples, seed and engine of its tests.

    Rows without weight are left out before; ``idle`` is their number. Rows of one of the ``clusters`` belong together: tests then
    take random signs of whole clusters instead of resampled targets.
    Subclasses say what is predicted, which error the verdict rests on, and what the kernel error may cost.
    """

    targets: Array
    predictions: Distribution
    weights: np.ndarray | None
    n_resamples: int
    seeds: np.random.SeedSequence
    engine: Engine | None
    idle: int = field(default=0, kw_only=True)
    clusters: Clusters | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        return len(self.predictions)

    @property
    @abstractmethod
    def kind(self) -> str:
        """What is predicted."""

    @property
    @abstractmethod
    def error(self) -> BaseEstimator:
        """The calibration error that the verdict rests on."""

    @abstractmethod
    def means(self) -> tuple[float, float]:
        """What is claimed on average, and what happened."""

    @property
    @abstractmethod
    def kernel_width(self) -> int:
        """Multiplications that a pair of rows costs the kernel error; 0 where rows lie on a line, and need no pairs."""

    @property
    def judged(self) -> "ReportProblem":
        """The problem whose error the verdict rests on: this one, or that of its PIT values."""
        return self

    @property
    def fresh_seeds(self) -> np.random.SeedSequence:
        """The seed as if unused, so that a plain call with the same seed repeats every number of the report."""
        return np.random.SeedSequence(self.seeds.entropy, spawn_key=self.seeds.spawn_key)

    def rows(self, index: np.ndarray) -> Self:
        """The problem of these rows alone."""
        return replace(
            self,
            targets=self.targets[index],
            predictions=self.predictions[index],
            weights=None if self.weights is None else self.weights[index],
            clusters=None if self.clusters is None else self.clusters[index],
        )

    @cached_property
    def kernel_error(self) -> SKCE | None:
        """The kernel error of whole predictions, length scales found; of blocks of rows where all pairs are too many."""
        is_plain = self.weights is None and self.clusters is None
        found = affordable_kernel(len(self), PAIRS, is_line=self.kernel_width == 0, in_blocks=is_plain)
        return None if found is None else found.resolved(self.predictions)

    @cached_property
    def surprises(self) -> float:
        """How many independent events of a rare kind those of the clusters are worth."""
        assert self.clusters is not None
        return surprises_in(self.targets, self.predictions, self.weights, self.clusters)

    @property
    def untested(self) -> str | None:
        """Why nothing can be tested with these clusters."""
        if self.clusters is None:
            return None
        if isinstance(self.clusters, Folds):
            return DEPENDENT
        if len(self.clusters) < MIN_CLUSTERS:
            return f"{len(self.clusters)} clusters do not show what is chance; {MIN_CLUSTERS} or more are tested"
        if self.surprises < MIN_SURPRISES:
            return (
                f"the rare events that are expected in {len(self.clusters):,} clusters are worth {number(self.surprises)} "
                f"independent ones, which do not show what is chance; {MIN_SURPRISES:g} or more are tested"
            )
        return None

    @property
    @abstractmethod
    def alike(self) -> float:
        """The correlation of residuals of rows of a cluster, between 0 and 1."""

    @cached_property
    def inflation(self) -> float:
        """How many times larger variances are than those of independent rows."""
        if self.clusters is None:
            return 1.0
        w = np.ones(len(self)) if self.weights is None else self.weights
        whole, squares = self.clusters.sums(w), float(w @ w)
        return 1 + self.alike * (float(whole @ whole) - squares) / squares

    def can_test(self, estimator: BaseEstimator) -> bool:
        """Whether the estimator has a test: with clusters, scores and others that are no sums of residuals have none."""
        return self.clusters is None or type(estimator).with_signs is not BaseEstimator.with_signs

    def statistic(self, estimator: BaseEstimator) -> Statistic:
        """The estimator as a function of targets, or of signs of clusters."""
        if self.clusters is None:
            return estimator.given(self.predictions, self.weights)
        suited = for_signs(estimator)
        assert isinstance(suited, BaseEstimator)
        return suited.with_signs(to_numpy(self.targets), self.predictions, self.weights, self.clusters)

    def estimate(self, estimator: BaseEstimator) -> Estimate:
        """The estimate, without what clusters do not allow."""
        if self.clusters is None or isinstance(self.clusters, Folds):
            found = estimator.estimate(self.targets, self.predictions, self.weights)
            if self.clusters is None:
                return found
            return replace(found, standard_error=None, interval=None, limits=None, withheld=DEPENDENT)
        return estimator.of_clusters(self.targets, self.predictions, self.weights, self.clusters)

    def test(self, estimator: Estimator, *, two_sided: bool = False, least_resamples: int = 1) -> TestResult:
        """The exact test of an estimator; with clusters, of its squares."""
        estimator = estimator if self.clusters is None else for_signs(estimator)
        test = ExactTest(estimator, max(self.n_resamples, least_resamples), "two-sided" if two_sided else "greater")
        return self.run(test)

    def run(self, measure: Callable[..., T]) -> T:
        """Any test, interval or curve, on this problem."""
        more = {} if self.clusters is None else {"clusters": self.clusters.codes}
        return measure(
            self.targets, self.predictions, sample_weight=self.weights, rng=self.fresh_seeds, engine=self.engine, **more
        )


MAX_ROWS = 20
"""Classes or slices shown in a table."""

MAX_VALUES = 12
"""A numeric column with more different values than this is cut at its quartiles."""

MIN_ROWS = 20
"""Slices with fewer rows than this show nothing by themselves, and are taken together."""

NAME_LETTERS = 40
"""Letters of a slice's name that are always shown."""


@dataclass(frozen=True, eq=False)
class Slicing:
    """A column and the slices it makes: their names, and the rows of each.

    ``key`` is its identity, by which the pool knows it; names are for people, and two columns may have the same. With clusters a
    slice has enough of them to be tested; there may be none that has, which the remark says.
    """

    key: str
    name: str
    groups: tuple[str, ...]
    rows: tuple[np.ndarray, ...]
    remark: str = ""

    @classmethod
    def of(cls, problem: ReportProblem, key: str, name: str, column: ArrayLike) -> "Slicing":
        """Slices with few rows, and all but the largest where there are many, are taken together."""
        labels, names = slices(column, name)
        check_same_length(len(labels), len(problem), f"by[{name!r}]", "y_true")
        size = np.bincount(labels, minlength=len(names))
        alone = np.argsort(-size, kind="stable")[: MAX_ROWS if len(names) <= MAX_ROWS else MAX_ROWS - 1]
        alone = np.sort(alone[size[alone] >= MIN_ROWS])
        if problem.clusters is not None:
            alone = alone[[problem.rows(np.flatnonzero(labels == i)).untested is None for i in alone]]
        rest = np.setdiff1d(np.arange(len(names)), alone)
        if len(rest) == 1 and problem.clusters is None:
            alone, rest = np.arange(len(names)), rest[:0]
        groups, rows = [names[i] for i in alone], [np.flatnonzero(labels == i) for i in alone]
        remark = ""
        others = np.flatnonzero(np.isin(labels, rest))
        few = how_many(len(rest), "slice with few rows or clusters is", "slices with few rows or clusters are")
        if len(rest) and problem.rows(others).untested is not None:
            remark = f"{few} left out."
        elif len(rest):
            groups.append(f"{len(rest):,} others")
            rows.append(others)
            remark = f"{len(rest):,} slices with few rows are taken together."
        return cls(key, name, told_apart(groups), tuple(rows), remark)

    @property
    def step(self) -> Step:
        """The work of its table."""
        return Step(f"By {self.name}")

    def statistic(self, problem: ReportProblem) -> Statistic:
        """The error of the problem in every slice."""
        parts, clusters = [problem.rows(rows) for rows in self.rows], problem.clusters
        places = self.rows if clusters is None else tuple(np.unique(clusters.codes[rows]) for rows in self.rows)
        return EachSlice(tuple(part.statistic(part.error) for part in parts), places)


@dataclass(frozen=True, eq=False)
class EachSlice:
    """A statistic per slice, ``(m, slices)``, of the same resamples; ``places`` are the rows, or the clusters, of each."""

    statistics: tuple[Statistic, ...]
    places: tuple[np.ndarray, ...]

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """Each on its own rows, or on the signs of its own clusters."""
        pairs = zip(self.statistics, self.places, strict=True)
        return np.stack([statistic(np.take(targets, rows, axis=1, mode="clip")) for statistic, rows in pairs], axis=1)


def told_apart(names: Sequence[str]) -> tuple[str, ...]:
    """Names with a number before those that would look the same where names are shortened.

    >>> told_apart(["a", "x" * 50 + "1", "x" * 50 + "2"])[1][:8]
    '(1) xxxx'
    """
    shown = [plain_text(name, NAME_LETTERS) for name in names]
    seen: dict[str, int] = {}
    found = []
    for name, short in zip(names, shown, strict=True):
        seen[short] = seen.get(short, 0) + 1
        found.append(name if shown.count(short) == 1 else f"({seen[short]}) {name}")
    return tuple(found)


def columns_of(
    by: ArrayLike | Mapping[str, ArrayLike] | None, n: int, sample_weight: ArrayLike | None, argument: str = "by"
) -> dict[str, ArrayLike]:
    """The columns of the caller, n values each, without those of rows that have no weight; ``argument`` is what holds them.

    >>> columns_of({"site": ["a", "b", "c"]}, 3, [1.0, 0.0, 2.0])["site"].tolist()
    ['a', 'c']
    """
    given = named_columns(by, n, argument)
    columns = {name: as_column(column, name) for name, column in given.items()}
    for name, column in columns.items():
        check_same_length(len(column), n, f"{argument}[{name!r}]", "y_true")
    weights = as_weights(sample_weight, n)
    if weights is None or weights.min() > 0:
        return given
    return {name: column[weights > 0] for name, column in columns.items()}


def slicings_of(problem: ReportProblem, by: Mapping[str, ArrayLike]) -> tuple[Slicing, ...]:
    """The slices of every column of the caller."""
    return tuple(Slicing.of(problem, f"slices {i}", name, column) for i, (name, column) in enumerate(by.items()))


def split_slicings(slicings: Sequence[Slicing]) -> tuple[tuple[Slicing, ...], list[str]]:
    """Those that have slices, and what is to be said of the others."""
    missing = [f"There is no table by {part.name}: {part.remark}" for part in slicings if not part.groups]
    return tuple(part for part in slicings if part.groups), missing


@dataclass(frozen=True, eq=False)
class FoundSlice:
    """One slice: what it is called, its rows, what was claimed of them and happened, its error and its p-value of many."""

    column: str
    group: str
    rows: np.ndarray
    predicted: float
    observed: float
    error: float
    pvalue: float

    @property
    def name(self) -> str:
        """Column and slice, as sentences say them."""
        return f"{self.column} = {self.group}"


def clearest_slice(problem: ReportProblem, pool: Pool, family: Sequence[Slicing], level: float) -> FoundSlice | None:
    """The slice with the smallest p-value of those beyond chance, and among several the one furthest beyond it."""
    if not family:
        return None
    places = [(slicing, i) for slicing in family for i in range(len(slicing.groups))]
    pvalues = pool.adjusted([slicing.key for slicing in family])
    excess = np.concatenate([pool.excess(slicing.key) for slicing in family])
    best = int(np.lexsort([-excess, pvalues])[0])
    if pvalues[best] > level:
        return None
    slicing, i = places[best]
    part = problem.rows(slicing.rows[i])
    predicted, observed = part.means()
    error = pool.observed(slicing.key, i) if problem.clusters is None else float(part.estimate(part.error))
    return FoundSlice(
        slicing.name, slicing.groups[i], slicing.rows[i], predicted, observed, error, float(pvalues[best])
    )


def by_column(
    problem: ReportProblem, pool: Pool, slicing: Slicing, family: Sequence[Slicing], title: str | None = None
) -> Section:
    """The slices of one column, the clearest evidence first; p-values allow for all slices of the family."""
    pvalues = pool.adjusted([other.key for other in family])
    first = sum(len(other.groups) for other in family[: [other.key for other in family].index(slicing.key)])
    parts = [problem.rows(rows) for rows in slicing.rows]
    table = ranked(
        pool,
        slicing.key,
        slicing.groups,
        [len(rows) for rows in slicing.rows],
        [part.means() for part in parts],
        pvalues[first : first + len(slicing.groups)],
        None if problem.clusters is None else [float(part.estimate(part.error)) for part in parts],
    )
    looks = f"p-values allow for looking at {len(pvalues)} slices (Westfall and Young)."
    remark = f"The clearest evidence first; {looks} {slicing.remark}".strip()
    return Section(title or f"By {slicing.name}", slicing.name, remark, table)


def clearest_first(pool: Pool, key: str, pvalues: np.ndarray) -> np.ndarray:
    """The order of groups by p-value, then by how far the error exceeds what chance shows on average."""
    return np.lexsort([-pool.excess(key), pvalues])


def ranked(
    pool: Pool,
    key: str,
    groups: Sequence[str],
    rows: Sequence[int],
    means: Sequence[tuple[float, float]],
    pvalues: np.ndarray,
    errors: Sequence[float] | None = None,
) -> Table:
    """A row per group: what was claimed and happened, the error, what chance shows, what is beyond it, and two p-values.

    By p-value, then by how far the error exceeds what chance shows on average. ``pvalue`` allows for all looks,
    ``pvalue_alone`` for this one only. Where ``errors`` are given the pool has others, of signs of clusters, and no bands.
    """
    columns = range(len(groups))
    bands = [pool.null_band(key, i) for i in columns if errors is None]
    shown = [pool.observed(key, i) for i in columns] if errors is None else errors
    order = clearest_first(pool, key, pvalues)
    table = {
        "group": np.array(groups, dtype=object),
        "rows": np.array(rows),
        "claimed": np.array([predicted for predicted, _ in means]),
        "happened": np.array([observed for _, observed in means]),
        "error": np.array(shown),
        **(
            {"null_low": np.array([b.low for b in bands]), "null_high": np.array([b.high for b in bands])}
            if bands
            else {}
        ),
        "excess": pool.excess(key),
        "pvalue": pvalues,
        "pvalue_alone": np.array([pool.pvalue(key, i) for i in columns]),
    }
    return Table({name: column[order] for name, column in table.items()})


def slices(column: ArrayLike, name: str) -> tuple[np.ndarray, list[str]]:
    """The slice number of each row, and the names of the slices; long numeric columns are cut at their quartiles.

    >>> slices([*range(20)], "age")[1]
    ['0 to 4', '5 to 9', '10 to 14', '15 to 19']
    """
    values = as_column(column, name)
    found, labels = np.unique(values, return_inverse=True)
    if values.dtype.kind not in "iuf" or len(found) <= MAX_VALUES:
        return labels, [str(value) for value in found.tolist()]
    if values.dtype.kind == "f" and np.isfinite(values).all():
        different, same = np.unique(without_noise(values, DIGITS - 1), return_inverse=True)
        if len(different) <= MAX_VALUES:
            return same, [_short(value) for value in different.tolist()]
    missing = np.isnan(values)
    cut = np.searchsorted(np.quantile(values[~missing], [0.25, 0.5, 0.75]), values, side="left")
    cut[missing] = 4
    used, labels = np.unique(cut, return_inverse=True)
    parts = [values[cut == i] for i in used]
    names = [f"{_short(part.min())} to {_short(part.max())}" for part in parts]
    return labels, [*names[:-1], "missing"] if missing.any() else names


DIGITS = 10
"""Of numbers in names of slices; those that no digit tells apart are one value."""


def _short(x: float) -> str:
    """A number with as many digits as it needs, and no more than tell numbers apart."""
    return f"{x:.{DIGITS}g}"
