"""Tables as a page shows them: headings, texts, and what their rows are sorted by."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

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


def counted(n: float) -> str:
    """Rows."""
    return f"{int(n):,}"


FORMATS: dict[str, Callable[[float], str]] = {
    "rows": counted,
    "claimed": percent,
    "happened": percent,
    "error": percent,
    "null_low": percent,
    "null_high": percent,
    "pvalue": pvalue,
}
"""How columns of slices are written."""

HEADINGS = {"null_low": "if calibrated", "pvalue": "p"}
"""Columns that are called otherwise on the page."""


def columns_of(
    table: Table, *, noun: str = "", formats: dict[str, Callable[[float], str]] | None = None
) -> list[Column]:
    """What a page shows of a table: the ends of the null band in one column, the first one under its noun.

    >>> [column.texts for column in columns_of(Table(group=["a"], null_low=[0.0], null_high=[0.01]), formats=FORMATS)]
    [('a',), ('0.0 % to 1 %',)]
    """
    formats = formats or {}
    found = []
    for place, (name, values) in enumerate(table.items()):
        if name == "null_high" and "null_low" in table:
            continue
        is_number = values.dtype.kind in "fiu"
        write = formats.get(name, _text)
        texts = [write(v) for v in values.tolist()]
        if name == "null_low" and "null_high" in table:
            ends = map(formats.get("null_high", _text), table["null_high"].tolist())
            texts = [f"{low} to {high}" for low, high in zip(texts, ends, strict=True)]
        heading = noun if noun and place == 0 else HEADINGS.get(name, name.replace("_", " "))
        keys = tuple(repr(v) if is_number else str(v) for v in values.tolist())
        found.append(Column(heading, is_number, tuple(texts), keys))
    return found


def flags_of(table: Table) -> list[bool]:
    """Which rows show a defect: those with a small p-value."""
    return (table["pvalue"] <= 0.05).tolist() if "pvalue" in table else [False] * table.n_rows


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return "" if np.isnan(value) else number(value)
    return "" if value is None else str(value)
