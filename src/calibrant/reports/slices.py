"""Slices of a problem: which rows belong together, what is redrawn of them, and the table that ranks them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from calibrant._validate import InputError, as_column, check_same_length
from calibrant.estimators.base import Statistic
from calibrant.inference.pool import Pool
from calibrant.reports.model import Section
from calibrant.reports.problem import Problem
from calibrant.results import Table
from calibrant.results.markdown import plain_text
from calibrant.typing import ArrayLike

MOST_ROWS = 20
"""Classes or slices shown in a table."""

MOST_VALUES = 12
"""A numeric column with more different values than this is cut at its quartiles."""

LEAST_ROWS = 20
"""Slices with fewer rows than this show nothing by themselves, and are taken together."""

NAME_LETTERS = 40
"""Letters of a slice's name that are always shown."""


@dataclass(frozen=True, eq=False)
class Slicing:
    """A column and the slices it makes: their names, and the rows of each.

    ``key`` is its identity, by which the pool knows it; names are for people, and two columns may have the same.
    """

    key: str
    name: str
    groups: tuple[str, ...]
    rows: tuple[np.ndarray, ...]
    remark: str = ""

    @classmethod
    def of(cls, problem: Problem, key: str, name: str, column: ArrayLike) -> "Slicing":
        """Slices with few rows, and all but the largest where there are many, are taken together."""
        labels, names = slices(column, name)
        check_same_length(len(labels), len(problem), f"by[{name!r}]", "y_true")
        size = np.bincount(labels, minlength=len(names))
        alone = np.argsort(-size, kind="stable")[: MOST_ROWS if len(names) <= MOST_ROWS else MOST_ROWS - 1]
        alone = np.sort(alone[size[alone] >= LEAST_ROWS])
        rest = np.setdiff1d(np.arange(len(names)), alone)
        if len(rest) == 1:
            alone, rest = np.arange(len(names)), rest[:0]
        groups, rows = [names[i] for i in alone], [np.flatnonzero(labels == i) for i in alone]
        remark = ""
        if len(rest):
            groups.append(f"{len(rest):,} others")
            rows.append(np.flatnonzero(np.isin(labels, rest)))
            remark = f"{len(rest):,} slices with few rows are taken together."
        for group, part in zip(groups, rows, strict=True):
            if problem.weights is not None and not problem.weights[part].any():
                raise InputError(f"slice {group!r} of {name!r} has no row with weight: drop its rows")
        return cls(key, name, told_apart(groups), tuple(rows), remark)

    def statistic(self, problem: Problem) -> Statistic:
        """The error of the problem in every slice."""
        parts = [problem.rows(rows) for rows in self.rows]
        return EachSlice(tuple(part.error.given(part.predictions, part.weights) for part in parts), self.rows)


@dataclass(frozen=True, eq=False)
class EachSlice:
    """A statistic a slice, ``(m, slices)``, of the same redraws."""

    statistics: tuple[Statistic, ...]
    rows: tuple[np.ndarray, ...]

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """Each on its own rows."""
        pairs = zip(self.statistics, self.rows, strict=True)
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


def slicings_of(problem: Problem, by: Mapping[str, ArrayLike]) -> tuple[Slicing, ...]:
    """The slices of every column of the caller."""
    return tuple(Slicing.of(problem, f"slices {i}", name, column) for i, (name, column) in enumerate(by.items()))


@dataclass(frozen=True, eq=False)
class FoundSlice:
    """One slice: what it is called, its rows, what was claimed of them and happened, its error and its p-value of many."""

    column: str
    group: str
    rows: np.ndarray
    claimed: float
    happened: float
    error: float
    pvalue: float

    @property
    def name(self) -> str:
        """Column and slice, as sentences say them."""
        return f"{self.column} = {self.group}"


def clearest_slice(problem: Problem, pool: Pool, family: Sequence[Slicing], level: float) -> FoundSlice | None:
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
    claimed, happened = problem.rows(slicing.rows[i]).means()
    error = pool.observed(slicing.key, i)
    return FoundSlice(slicing.name, slicing.groups[i], slicing.rows[i], claimed, happened, error, float(pvalues[best]))


def by_column(
    problem: Problem, pool: Pool, slicing: Slicing, family: Sequence[Slicing], title: str | None = None
) -> Section:
    """The slices of one column, the clearest evidence first; p-values allow for all slices of the family."""
    pvalues = pool.adjusted([other.key for other in family])
    first = sum(len(other.groups) for other in family[: [other.key for other in family].index(slicing.key)])
    table = ranked(
        pool,
        slicing.key,
        slicing.groups,
        [len(rows) for rows in slicing.rows],
        [problem.rows(rows).means() for rows in slicing.rows],
        pvalues[first : first + len(slicing.groups)],
    )
    looks = f"p-values allow for looking at {len(pvalues)} slices (Westfall and Young)."
    remark = f"The clearest evidence first; {looks} {slicing.remark}".strip()
    return Section(title or f"By {slicing.name}", slicing.name, remark, table)


def ranked(
    pool: Pool,
    key: str,
    groups: Sequence[str],
    rows: Sequence[int],
    means: Sequence[tuple[float, float]],
    pvalues: np.ndarray,
) -> Table:
    """A row a group: what was claimed and happened, the error, what chance shows, what is beyond it, and two p-values.

    By p-value, then by how far the error exceeds what chance shows on average. ``pvalue`` allows for all looks,
    ``pvalue_alone`` for this one only.
    """
    columns = range(len(groups))
    bands = [pool.null_band(key, i) for i in columns]
    excess = pool.excess(key)
    order = np.lexsort([-excess, pvalues])
    table = {
        "group": np.array(groups, dtype=object),
        "rows": np.array(rows),
        "claimed": np.array([claimed for claimed, _ in means]),
        "happened": np.array([happened for _, happened in means]),
        "error": np.array([pool.observed(key, i) for i in columns]),
        "null_low": np.array([band.low for band in bands]),
        "null_high": np.array([band.high for band in bands]),
        "excess": excess,
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
    if values.dtype.kind not in "iuf" or len(found) <= MOST_VALUES:
        return labels, [str(value) for value in found.tolist()]
    missing = np.isnan(values)
    cut = np.searchsorted(np.quantile(values[~missing], [0.25, 0.5, 0.75]), values, side="left")
    cut[missing] = 4
    used, labels = np.unique(cut, return_inverse=True)
    parts = [values[cut == i] for i in used]
    names = [f"{_short(part.min())} to {_short(part.max())}" for part in parts]
    return labels, [*names[:-1], "missing"] if missing.any() else names


def _short(x: float) -> str:
    """A number with as many digits as it needs, at most ten."""
    return f"{x:.10g}"
