"""What may be believed: every statement of uncertainty, in many worlds

Each statement that the library, the command or a report can print (interval, lower bound, standard error, p-value, band,
verdict) is tried in worlds whose truth is known: calibrated and not, from 0.1 to 99.9 % events, with ties, exact zeros and
ones, even predictions, a dominant class, 2 to 100 classes, 20 to 10,000 rows, weights, slices, quantiles, ensembles and small
counts. `share` says in how many data sets the statement held, of those in which it was made; a statement that is withheld
with a reason is not made, and a world in which it is withheld twenty times out of twenty is left at that. Standard errors
are compared with the spread of the estimates: `share` is their ratio.

A cell counts as false where misses exceed what 99.9 % of studies would show if the promised 95 % were true, once, and again
in four times as many fresh data sets: of a thousand true cells one would fail the first time by chance alone. `part` is the
number of misses over the number allowed; above 1 is false. Tests that are offered as they were published are shown, too:
where their level fails, the result says that it is asymptotic.
"""

from collections.abc import Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from calibrant import __version__
from calibrant.lab.study import StudyRecord, resumed
from calibrant.results import Table, how_many
from calibrant.typing import Engine
from studies.coverage.catalogue import CLAIMS
from studies.coverage.claims import MIN_SETS, Claim, Finding
from studies.coverage.worlds import SETTINGS, Setting
from studies.layout import Section

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEED = 0
UNIT = "misses over misses allowed"
BOUND = 1.0

COSTLY_SETS = 400
"""Data sets at most the first time, where one takes long."""

AGAIN = 4
"""Times as many data sets where a cell seems false the first time."""

SILENT_SETS = 20
"""Data sets after which a cell ends where nothing was stated in any of them."""

Cell = tuple[int, int]
"""The number of a setting and of a claim."""


def study(
    n_sets: int = 1_000,
    *,
    settings: Sequence[Setting] = SETTINGS,
    claims: Sequence[Claim] = CLAIMS,
    seed: int = SEED,
    engine: Engine | None = None,
    folder: str | PathLike[str] | None = None,
) -> Table:
    """A row for every statement in every world; standard errors that are never stated have none.

    >>> table = study(100, settings=SETTINGS[1:2], claims=CLAIMS[:1])
    >>> table["world"].tolist(), table["statement"].tolist()
    (['even, n = 100'], ['interval'])
    """
    cells = [(i, j) for i, setting in enumerate(settings) for j, claim in enumerate(claims) if claim.applies(setting)]
    run = partial(_run, settings, claims, seed, engine, folder)
    first = run(cells, n_sets, 0)
    doubtful = [cell for cell in cells if any(finding.is_red for finding in first[cell])]
    again = run(doubtful, AGAIN * n_sets, 1) if doubtful else {}
    rows = [
        _row(settings[i], claims[j], *pair, is_again=(i, j) in again)
        for i, j in cells
        for pair in enumerate(again.get((i, j), first[i, j]))
    ]
    made = {(row["claim"], row["statement"]) for row in rows if row["stated"]}
    rows = [row for row in rows if row["statement"] != "standard error" or (row["claim"], "standard error") in made]
    return Table({key: [row[key] for row in rows] for key in rows[0]})


def _run(
    settings: Sequence[Setting],
    claims: Sequence[Claim],
    seed: int,
    engine: Engine | None,
    folder: str | PathLike[str] | None,
    cells: Sequence[Cell],
    n_sets: int,
    stage: int,
) -> dict[Cell, list[Finding]]:
    tasks = [(settings[i], claims[j]) for i, j in cells]
    names = [f"{setting.label}: {claim.name}" for setting, claim in tasks]
    about = {"calibrant": __version__, "cells": names, "n_sets": n_sets, "seed": seed, "stage": stage}
    record = None if folder is None else StudyRecord(Path(folder) / f"coverage-{stage + 1}.jsonl", about)
    seeds = [(seed, stage, crc32(name.encode())) for name in names]
    found = resumed(partial(_repeat, n_sets), list(zip(*zip(*tasks, strict=True), seeds, strict=True)), record, engine)
    return {cell: [Finding(*_revived(row)) for row in rows] for cell, rows in zip(cells, found, strict=True)}


STATEMENTS = ("interval", "bound", "standard error", "p-value", "band", "verdict", "limit")


def _revived(row: np.ndarray) -> tuple[Any, ...]:
    statement, data_sets, made, share, part = row
    return STATEMENTS[int(statement)], int(data_sets), int(made), float(share), float(part)


def _repeat(n_sets: int, setting: Setting, claim: Claim, seed: tuple[int, int, int]) -> np.ndarray:
    """The findings of a cell as numbers, ``(statements, 5)``."""
    sets = min(n_sets, COSTLY_SETS * (AGAIN if seed[1] else 1)) if claim.costly else n_sets
    rng = np.random.default_rng(seed)
    values: list[Sequence[float]] = []
    with np.errstate(all="ignore"):
        for i in range(sets):
            values.append(claim.found(setting.draw(rng), i))
            if i + 1 == SILENT_SETS and not claim.is_stated(np.array(values, dtype=float)):
                break
    findings = claim.findings(setting, np.array(values, dtype=float))
    numbers = [(STATEMENTS.index(f.statement), f.data_sets, f.stated, f.share, f.part) for f in findings]
    return np.array(numbers, dtype=float).reshape(-1, 5)


def _row(setting: Setting, claim: Claim, place: int, finding: Finding, *, is_again: bool) -> dict[str, Any]:
    return {
        "world": setting.label,
        "kind": setting.kind,
        "calibrated": setting.is_calibrated,
        "claim": claim.name,
        "place": place,
        "statement": finding.statement,
        "data_sets": finding.data_sets,
        "stated": finding.stated,
        "share": finding.share,
        "part": finding.part if finding.stated >= MIN_SETS else np.nan,
        "again": is_again,
    }


def tally(table: Table) -> str:
    """How many statements there are, in how many worlds, and what came of them."""
    rows = list(table.rows())
    made = [row for row in rows if row["stated"] >= MIN_SETS]
    false = sum(row["part"] > 1 for row in made)
    worlds = len({row["world"] for row in rows})
    held, withheld = len(made) - false, len(rows) - len(made)
    return (
        f"{len(rows):,} statements in {how_many(worlds, 'world')}: {held:,} hold, {withheld:,} are withheld or never made, "
        f"{false:,} are false."
    )


def summary(table: Table) -> Table:
    """One row per claim and statement: in how many worlds it was made, where it held least, and how many cells are false."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in table.rows():
        groups.setdefault((row["claim"], row["statement"]), []).append(row)
    rows = [_summed(*key, cells) for key, cells in groups.items()]
    return Table({key: [row[key] for row in rows] for key in rows[0]})


def _summed(claim: str, statement: str, cells: list[dict[str, Any]]) -> dict[str, Any]:
    made = [cell for cell in cells if cell["stated"] >= MIN_SETS]
    worst = max(made, key=lambda cell: cell["part"], default=None)
    return {
        "claim": claim,
        "statement": statement,
        "worlds": len(cells),
        "withheld": len(cells) - len(made),
        "least share": "" if worst is None else f"{worst['share']:.3f}",
        "where": "" if worst is None else worst["world"],
        "false": sum(cell["part"] > 1 for cell in made),
    }


def sections(table: Table) -> list[Section]:
    """The cells that are false."""
    red = [row for row in table.rows() if row["part"] > 1]
    if not red:
        return [Section("false", "Cells that are false", text="None.")]
    columns = {
        "world": [row["world"] for row in red],
        "claim": [row["claim"] for row in red],
        "statement": [row["statement"] for row in red],
        "share": [f"{row['share']:.3f}" for row in red],
        "stated": [row["stated"] for row in red],
        "part": [f"{row['part']:.2f}" for row in red],
    }
    return [Section("false", "Cells that are false", Table(columns))]


def figure(table: Table) -> "Figure":
    """The map: a row per statement, a column per world."""
    from studies.coverage.map import drawn

    return drawn(table)
