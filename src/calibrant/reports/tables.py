"""Tables as a page shows them: headings, texts, and what their rows are sorted by."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from calibrant.results import Table, number, percent


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, and for each row a text and a key to sort by."""

    heading: str
    is_number: bool
    texts: tuple[str, ...]
    keys: tuple[str, ...]


def pvalue(p: float) -> str:
    """A p-value as people read it."""
    return "" if p != p else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def plain(value: Any) -> str:
    """Any value as people read it; nothing for what is not known."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return "" if value != value else number(value)
    return "" if value is None else str(value)


FORMATS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(["claimed", "happened", "error", "calibration_error", "null_low", "null_high"], percent),
    "change": lambda v: f"{v:+.2g}" if v else "",
    "standard_error": lambda v: f"{v:.1g}" if v > 0 else "",
    "pvalue": pvalue,
}
"""How columns are written; others as :func:`plain` does."""

PAIRS = {"null_low": ("null_high", " to "), "change": ("standard_error", " ± ")}
"""Columns that are shown together with another one, and what stands between them."""

HEADINGS = {"null_low": "if calibrated", "pvalue": "p"}
"""Columns that are called otherwise on the page."""


def columns_of(table: Table, noun: str = "") -> list[Column]:
    """What a page shows of a table: the ends of a band in one column, a change with its error, the first under its noun.

    >>> [column.texts for column in columns_of(Table(group=["a"], null_low=[0.0], null_high=[0.012]))]
    [('a',), ('0.0 % to 1.2 %',)]
    """
    seconds = {second for first, (second, _) in PAIRS.items() if first in table}
    columns = [_column(table, name) for name in table if name not in seconds]
    if noun:
        columns[0] = Column(noun, columns[0].is_number, columns[0].texts, columns[0].keys)
    return columns


def candidate_columns(table: Table) -> list[Column]:
    """Recalibrators as a page shows them: those of one score have its name above them, and need no column for it."""
    scores = set(table["score"].tolist()) if "score" in table else set()
    if len(scores) != 1:
        return columns_of(table)
    score = scores.pop()
    kept = {(score if name == "after" else name): v for name, v in table.items() if name not in ("score", "before")}
    return columns_of(Table(kept))


def flags_of(table: Table) -> list[bool]:
    """Which rows show a defect: those with a small p-value."""
    return (table["pvalue"] <= 0.05).tolist() if "pvalue" in table else [False] * table.n_rows


def _column(table: Table, name: str) -> Column:
    values: list[Any] = table[name].tolist()
    texts = _texts(name, values)
    second, between = PAIRS.get(name, ("", ""))
    if second in table:
        both = zip(texts, _texts(second, table[second].tolist()), strict=True)
        texts = [between.join(filter(None, pair)) for pair in both]
    is_number = table[name].dtype.kind in "fiu"
    keys = tuple(repr(v) if is_number else str(v) for v in values)
    return Column(HEADINGS.get(name, name.replace("_", " ")), is_number, tuple(texts), keys)


def _texts(name: str, values: Sequence[Any]) -> list[str]:
    write = FORMATS.get(name, plain)
    return [write(value) for value in values]
