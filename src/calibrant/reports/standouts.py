"""Classes and slices that a report flags, and the rows of its tables as people read them."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from calibrant.reports.model import ReportData, Section
from calibrant.results import number, percent

LEVEL = 0.05
"""A row is flagged where its p-value, which allows for the number of rows, is not above this."""

SHARES = ("claimed", "happened", "error")
"""Columns that are shares."""


class Standout(NamedTuple):
    """A flagged row: where it stands, its group, and its other cells as text, by their heading."""

    section: str
    group: str
    pvalue: float
    cells: Mapping[str, str]


class Texts(NamedTuple):
    """A table as text: its headings, of which a caller's column may repeat one, and its rows."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def standouts(report: ReportData) -> list[Standout]:
    """The flagged rows of all tables, those with the strongest evidence first."""
    found = [standout for section in report.sections for standout in _flagged(section)]
    return sorted(found, key=lambda standout: standout.pvalue)


def as_text(section: Section) -> Texts:
    """A table of the report with its cells as text and headings of words.

    >>> from calibrant.results import Table
    >>> table = Table(group=["a"], rows=[1200], claimed=[0.9], happened=[0.8], error=[0.1], pvalue=[0.004])
    >>> as_text(Section("By error", "error", "", table)).headings
    ('error', 'rows', 'claimed', 'happened', 'error', 'p')
    """
    found = [(str(row["group"]), cells(row)) for row in section.table.rows()]
    names = found[0][1] if found else cells(dict.fromkeys(section.table, 0.0))
    return Texts((section.noun, *names), tuple((group, *row.values()) for group, row in found))


def cells(row: Mapping[str, Any]) -> dict[str, str]:
    """A row of a table of the report as text without its group; what else it has than the usual is left out."""
    found = {"rows": number(row["rows"])}
    found |= {name: percent(row[name]) for name in SHARES if name in row}
    if "null_low" in row and "null_high" in row:
        found["if calibrated"] = f"{percent(row['null_low'])} to {percent(row['null_high'])}"
    return {**found, "p": number(row["pvalue"])} if "pvalue" in row else found


def _flagged(section: Section) -> Iterator[Standout]:
    for row in section.table.rows():
        if row.get("pvalue", 1.0) <= LEVEL:
            yield Standout(section.title, str(row["group"]), float(row["pvalue"]), cells(row))
