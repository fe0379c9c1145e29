"""Variational calibration errors: figures 1 and 3 and table 2 of Berta et al. (2026), and their synthetic results.

Predictions lie near the ends of the simplex, beta or Dirichlet distributed, and the truth is known. There are ten experiments
with fifteen data sets each, of 200 to 10,000 rows, and they are the paper's own, bit for bit: errors in bins of equal
mass, and isotonic regression in the sample and on held-out rows, come out with all eight digits that were published. (The
cells of three and ten classes come from another k-means. Some published cells have nine or eleven experiments.)

The error is L1 of the probability of class 1, or L2 of vectors. `soft sign` is `Variational(Lp(p))`; `hard sign` has
`sign="hard"`; `boosting` is the default of the paper, warm-started CatBoost, with its published numbers. In the table,
`rmse` is the root mean squared error in hundredths, averaged over sizes, `ratio` how that compares with boosting, `above`
how far estimates lie above the truth on average over sizes, in standard errors, and `most` how far at a single size.

The column `part` is how much of what was to be shown is used up; above 1, the command leaves with code 1. Soft signs may have
a ratio of 1.1. They may not lie above the truth beyond chance, at any of 15 sizes nor on average over sizes, and not below
it on average where predictions are calibrated, for there cross-fitted errors have mean 0. These are 163 statements about ten
experiments each. With two standard errors for each, an unbiased method breaks some in nearly every study, so the bound
allows for their number: each may fail by chance with probability 0.001 / 163, all of them together with 0.001. That is 8.6
standard errors at one size, by Student's t with 9 degrees of freedom, and 4.5 to 5 on average over sizes. The largest
deviation is of two calibrated classes: soft signs lie 2.3 standard errors below 0 on average. On the same data isotonic
regression lies 2.3 below and boosting, as published, 2.5; in data drawn anew, `berta-coverage`, the mean is 0 within its error.
Methods of the paper may be off by the last digit in print; cells of k-means, and table 2, by three standard errors of the
difference.
"""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.results import Table
from calibrant.typing import Engine
from studies import pictures
from studies.berta import confidence as berta_confidence
from studies.berta.data import RUNS, SCENARIOS, SIZES
from studies.berta.recovery import BOOSTING, MAX_DEVIATIONS, SOFT, recovery
from studies.layout import Section

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEED = 0

UNIT = "parts of what was to be shown"
BOUND = 1.0

DRAWN = ("bins", "isotonic, in sample", "isotonic", BOOSTING, SOFT)
"""Lines of the figures."""

TABLE_2 = "table 2: "
"""Before the names of its worlds."""

COLUMNS = (
    *("scenario", "n", "method", "truth", "mean", "error", "rmse"),
    *("published", "published_error", "ratio", "above", "part"),
)


def study(
    n_sets: int = RUNS,
    *,
    scenarios: Sequence[str] = tuple(SCENARIOS),
    sizes: Sequence[int] = SIZES,
    seed: int = SEED,
    engine: Engine | None = None,
    folder: str | PathLike[str] | None = None,
) -> Table:
    """Mean and root mean squared error of every method, scenario and size over ``n_sets`` experiments, and table 2.

    >>> table = study(2, scenarios=["over-confident, 2 classes"], sizes=[200])
    >>> table.n_rows, list(table)[:4]
    (15, ['scenario', 'n', 'method', 'truth'])
    """
    path = None if folder is None else Path(folder) / "berta.jsonl"
    rows = recovery(n_sets, scenarios, sizes, seed, engine, path)
    rows += [row for world in berta_confidence.WORLDS for row in _table_2(world, n_sets, seed)]
    return Table({key: [row[key] for row in rows] for key in COLUMNS})


def _table_2(world: str, n_sets: int, seed: int) -> list[dict[str, Any]]:
    values = np.array([berta_confidence.confidences(world, s) for s in range(seed, seed + n_sets)])
    about = {"scenario": TABLE_2 + world, "n": berta_confidence.N, "rmse": np.nan, "ratio": np.nan, "above": np.nan}
    rows = berta_confidence.compared(world, values)
    return [{**about, **row, "part": row["z"] / MAX_DEVIATIONS} for row in rows]


def summary(table: Table) -> Table:
    """A row a scenario and method, over all sizes, and the mean over scenarios; errors in hundredths."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in table.rows():
        if not row["scenario"].startswith(TABLE_2):
            groups.setdefault((row["scenario"], row["method"]), []).append(row)
    rows = [_over_sizes(some) for some in groups.values()]
    blank = dict.fromkeys(rows[0], "")
    for method in dict.fromkeys(method for _, method in groups):
        ratio = np.mean([some[0]["ratio"] for (_, other), some in groups.items() if other == method])
        rows.append({**blank, "scenario": "mean", "method": method, "ratio": f"{ratio:.2f}"})
    return Table({key: [row[key] for row in rows] for key in blank})


def _over_sizes(some: list[dict[str, Any]]) -> dict[str, str]:
    first, parts = some[0], [row["part"] for row in some if np.isfinite(row["part"])]
    return {
        "scenario": first["scenario"],
        "method": first["method"],
        "truth": f"{100 * first['truth']:.2f}",
        "rmse": f"{100 * np.mean([row['rmse'] for row in some]):.2f}",
        "ratio": f"{first['ratio']:.2f}",
        "above": f"{first['above']:+.1f}",
        "most": f"{max((row['mean'] - row['truth']) / row['error'] for row in some):+.1f}",
        "part": f"{max(parts):.2f}" if parts else "",
    }


def figure(table: Table) -> "Figure":
    """Figure 1: how far estimates of two classes lie from the truth."""
    return _figure(table, " 2 classes", 2)


def sections(table: Table) -> list[Section]:
    """Figure 3 and table 2."""
    return [
        Section("figure-3", "Figure 3: three and ten classes", figure=_figure(table, (" 3 classes", " 10 classes"), 3)),
        Section("table-2", "Table 2: over- and under-confidence", _confidences(table)),
    ]


def _figure(table: Table, ends: str | tuple[str, ...], columns: int) -> "Figure":
    rows = [row for row in table.rows() if row["scenario"].endswith(ends) and row["method"] in DRAWN]
    rows.sort(key=lambda row: DRAWN.index(row["method"]))
    shown = {key: [row[key] for row in rows] for key in ("scenario", "n", "method")}
    for key, name in (("mean", "off"), ("published", "published")):
        shown[name] = [100 * (row[key] - row["truth"]) for row in rows]
    shown["error"] = [100 * row["error"] for row in rows]
    return pictures.lines(
        Table(shown),
        panels=("scenario",),
        x="n",
        y="off",
        line="method",
        published="published",
        error="error",
        label="estimate less truth, in hundredths",
        level=(0.0, 0.0, 0.0),
        columns=columns,
    )


def _confidences(table: Table) -> Table:
    """Table 2 with the published numbers in parentheses."""
    groups: dict[str, dict[str, str]] = {}
    for row in table.rows():
        if row["scenario"].startswith(TABLE_2):
            text = f"{row['mean']:.4f} ± {row['error']:.4f} ({row['published']:.4f} ± {row['published_error']:.4f})"
            groups.setdefault(row["method"], {})[row["scenario"].removeprefix(TABLE_2)] = text
    worlds = berta_confidence.WORLDS
    return Table(error=list(groups), **{world: [cells[world] for cells in groups.values()] for world in worlds})
