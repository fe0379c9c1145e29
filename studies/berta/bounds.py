"""How often the lower bounds of variational errors hold: on the worlds of Berta et al. (2026).

Data sets of the scenarios of the paper, drawn anew. `Variational(Lp(p))` gives an estimate and a lower bound, which should
be below the true error in 95 % of all data sets; here the share should lie between 93 and 99 %. Limits of shares are
binomial, of 95 %. `mean` and `sd` are those of the estimates over data sets, `claimed` is the root mean square of the
standard errors that they come with; these, and the truth, are in hundredths.

The column `part` says how far the nearer limit of the share is from 96 %, in units of three points: above 1, the share lies
outside of 93 to 99 % by more than chance.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant import Variational, __version__
from calibrant.estimators import Lp
from calibrant.inference import interval_of_share
from calibrant.lab.study import StudyRecord, resumed
from calibrant.results import Table
from calibrant.typing import Engine
from studies import pictures
from studies.berta.data import SCENARIOS, truth

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS_OF_TWO, ROWS_OF_MANY = (300, 1_000, 3_000), (300, 1_000)
"""Rows of data sets of two classes, and of more, which take longer."""

LEVELS = (0.93, 0.95, 0.99)
"""The least that should hold, what is promised, and the most."""

SEED = 0

UNIT = "parts of what was to be shown"
BOUND = 1.0


def study(
    n_sets: int = 400,
    *,
    scenarios: Sequence[str] = tuple(SCENARIOS),
    sizes: Sequence[int] | None = None,
    settings: Mapping[str, Any] | None = None,
    seed: int = SEED,
    engine: Engine | None = None,
    folder: str | PathLike[str] | None = None,
) -> Table:
    """The share of data sets whose lower bound holds, for every scenario and size.

    ``settings`` are those of ``Variational`` other than its loss.

    >>> table = study(20, scenarios=["calibrated, 2 classes"], sizes=[200])
    >>> table.n_rows, bool(table["share"][0] > 0.6)
    (1, True)
    """
    cells = [
        (name, n)
        for name in scenarios
        for n in (sizes or (ROWS_OF_TWO if SCENARIOS[name].n_classes == 2 else ROWS_OF_MANY))
    ]
    seeds = np.random.SeedSequence(seed).spawn(len(cells))
    options = dict(settings or {})
    about = {"calibrant": __version__, "cells": cells, "n_sets": n_sets, "seed": seed, "settings": repr(options)}
    record = None if folder is None else StudyRecord(Path(folder) / "berta-coverage.jsonl", about)
    found = resumed(partial(_repeat, n_sets, options), list(zip(cells, seeds, strict=True)), record, engine)
    rows = [_row(*cell, values) for cell, values in zip(cells, found, strict=True)]
    return Table({key: [row[key] for row in rows] for key in rows[0]})


def summary(table: Table) -> Table:
    """Shares with their limits, in percent, and the errors in hundredths."""
    rows = list(table.rows())
    share = [f"{100 * r['share']:.1f} ({100 * r['low']:.1f} to {100 * r['high']:.1f})" for r in rows]
    hundredths = {key: [f"{100 * r[key]:.2f}" for r in rows] for key in ("truth", "mean", "sd", "claimed")}
    return Table(scenario=table["scenario"], n=table["n"], share=share, **hundredths, part=table["part"].round(2))


def figure(table: Table) -> "Figure":
    """Shares against sizes; grey is what was to be shown."""
    names = [row["scenario"].partition(", ") for row in table.rows()]
    shown = Table(
        classes=[classes for _, _, classes in names],
        scenario=[scenario for scenario, _, _ in names],
        n=table["n"],
        **{key: 100 * table[key] for key in ("share", "low", "high")},
    )
    low, level, high = (100 * x for x in LEVELS)
    return pictures.lines(
        shown,
        panels=("classes",),
        x="n",
        y="share",
        line="scenario",
        error=("low", "high"),
        label="% of lower bounds that hold",
        level=(low, level, high),
        columns=3,
    )


def _repeat(n_sets: int, settings: dict[str, Any], cell: tuple[str, int], seed: np.random.SeedSequence) -> np.ndarray:
    """Estimate, standard error and lower bound of every data set, ``(n_sets, 3)``."""
    name, n = cell
    scenario, rng = SCENARIOS[name], np.random.default_rng(seed)
    estimator = Variational(Lp(scenario.norm), **settings)
    values = np.empty((n_sets, 3))
    for i in range(n_sets):
        found = estimator(*scenario.draw(n, rng))
        assert found.interval is not None
        values[i] = found.value, found.standard_error, found.interval.low
    return values


def _row(name: str, n: int, values: np.ndarray) -> dict[str, Any]:
    error, n_sets = truth(name), len(values)
    held = int(np.sum(values[:, 2] <= error))
    low, high = interval_of_share(held, n_sets)
    middle, half = (LEVELS[0] + LEVELS[2]) / 2, (LEVELS[2] - LEVELS[0]) / 2
    return {
        "scenario": name,
        "n": n,
        "truth": error,
        "mean": values[:, 0].mean(),
        "sd": values[:, 0].std(ddof=1),
        "claimed": np.sqrt(np.mean(values[:, 1] ** 2)),
        "share": held / n_sets,
        "low": low,
        "high": high,
        "part": max(middle - high, low - middle, 0.0) / half,
        "data_sets": n_sets,
    }
