"""Tables a class and a slice: where the error sits, with the p-values that many looks call for."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError, as_column, check_same_length
from calibrant.distributions.bernoulli import Bernoulli
from calibrant.distributions.categorical import Categorical
from calibrant.inference.multiplicity import holm
from calibrant.lenses import ClassWise, Lens, MultiLabel, PositiveClass
from calibrant.reports.class_problem import ClassProblem, means_of
from calibrant.reports.model import Section
from calibrant.reports.problem import TEST_WORK, Problem, affordable
from calibrant.results import Table, TestResult
from calibrant.typing import ArrayLike

MOST_ROWS = 20
"""Classes or slices shown in a table."""

MOST_VALUES = 12
"""A numeric column with more different values than this is cut at its quartiles."""


def by_class(problem: ClassProblem) -> Section:
    """Each class, or each label, by itself; those with the largest error where there are many."""
    lens: Lens = MultiLabel() if isinstance(problem.predictions, Bernoulli) else ClassWise()
    error = replace(problem.error, lens=PositiveClass())
    events = lens.events(problem.predictions)
    singles = [
        replace(problem, targets=e.happened(problem.targets).view(np.uint8), predictions=Categorical(e.probability))
        for e in events
    ]
    errors = [float(error.estimate(s.targets, s.predictions, s.weights)) for s in singles]
    shown = np.sort(np.argsort(errors, kind="stable")[::-1][:MOST_ROWS])
    noun = "label" if isinstance(lens, MultiLabel) else "class"
    table = _table(
        [events[i].name for i in shown],
        [int(singles[i].targets.sum()) for i in shown],
        [
            means_of(to_numpy(singles[i].predictions.probs), to_numpy(singles[i].targets), problem.weights)
            for i in shown
        ],
        [singles[i].test(error, least_resamples=_enough(len(events), len(problem))) for i in shown],
        hypotheses=len(events),
    )
    more = f" The {MOST_ROWS} with the largest error, of {len(events)}." if len(events) > MOST_ROWS else ""
    return Section(
        f"Each {noun}", noun, f"Every {noun} against the rest; p-values allow for their number (Holm).{more}", table
    )


def by_column(problem: Problem, name: str, column: ArrayLike) -> Section:
    """Each slice that a column makes; the largest where there are many."""
    labels, names = slices(column, name)
    check_same_length(len(labels), len(problem), f"by[{name!r}]", "y_true")
    size = np.bincount(labels, minlength=len(names))
    shown = np.sort(np.argsort(-size, kind="stable")[:MOST_ROWS])
    parts = [problem.rows(np.flatnonzero(labels == i)) for i in shown]
    for i, part in zip(shown, parts, strict=True):
        if part.weights is not None and not part.weights.any():
            raise InputError(f"slice {names[i]!r} of {name!r} has no row with weight: drop its rows")
    named = [names[i] for i in shown]
    table = table_of_tests(named, [len(part) for part in parts], parts, hypotheses=len(shown))
    more = f" The {MOST_ROWS} largest of {len(names)}." if len(names) > MOST_ROWS else ""
    return Section(f"By {name}", name, f"p-values allow for looking at {len(shown)} slices (Holm).{more}", table)


def table_of_tests(names: list[str], rows: list[int], parts: Sequence[Problem], *, hypotheses: int) -> Table:
    """A row a part: what was claimed, what happened, and the error with its test."""
    enough = [_enough(hypotheses, len(part)) for part in parts]
    results = [part.test(part.error, least_resamples=draws) for part, draws in zip(parts, enough, strict=True)]
    return _table(names, rows, [part.means() for part in parts], results, hypotheses=hypotheses)


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


def _enough(tests: int, n: int) -> int:
    """Redraws that leave the smallest p-value at 0.025 after Holm, as far as the work allows."""
    return affordable(40 * tests - 1, n, TEST_WORK, least=1)


def _table(
    names: list[str],
    rows: list[int],
    means: list[tuple[float, float]],
    results: list[TestResult],
    *,
    hypotheses: int,
) -> Table:
    bands = [r.null_band() for r in results]
    return Table(
        {
            "group": names,
            "rows": rows,
            "claimed": [claimed for claimed, _ in means],
            "happened": [happened for _, happened in means],
            "error": [r.statistic for r in results],
            "null_low": [band.low for band in bands],
            "null_high": [band.high for band in bands],
            "pvalue": holm([r.pvalue for r in results], hypotheses=hypotheses),
        }
    )
