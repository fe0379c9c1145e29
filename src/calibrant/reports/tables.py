"""Tables as a page shows them: headings, texts, and what their rows are sorted by."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.results import Table, number, percent


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, and for each row a text and a key to sort by.

    Errors that have a null band have ``bars``, too: where the band begins and ends and where the error is, in percent of
    the largest of all.
    """

    heading: str
    is_number: bool
    texts: tuple[str, ...]
    keys: tuple[str, ...]
    bars: tuple[tuple[float, float, float], ...] = ()


def pvalue(p: float) -> str:
    """A p-value as people read it."""
    if p != p:
        return ""
    return "<0.001" if p < 0.0005 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def plain(value: Any) -> str:
    """Any value as people read it; nothing for what is not known."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return "" if value != value else number(value)
    return "" if value is None else str(value)


def points(value: float) -> str:
    """A difference of shares, with its sign.

    >>> points(0.0123), points(-0.2), points(0.0)
    ('+1.2 %', '-20.0 %', '0.0 %')
    """
    return f"{100 * value:+.1f} %" if round(100 * value, 1) else "0.0 %"


def _scores(value: float) -> str:
    """Standard scores, to hundredths."""
    return "" if value != value else f"{value:z.2f}"


FORMATS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(["claimed", "happened", "error", "calibration_error", "null_low", "null_high"], percent),
    "change": lambda v: f"{v:+.2g}" if v else "",
    "standard_error": lambda v: f"{v:.1g}" if v > 0 else "",
    "pvalue": pvalue,
    "beyond_chance": lambda v: "yes" if v else "",
    **dict.fromkeys(["gap", "gap_high"], points),
    "gap_low": lambda v: points(v).removesuffix(" %"),  # the other end has the unit
    **dict.fromkeys(["bias", "bias_low", "bias_high", "spread", "spread_low", "spread_high"], _scores),
}
"""How columns are written; others as :func:`plain` does."""

PAIRS = {
    "null_low": ("null_high", " to "),
    "change": ("standard_error", " ± "),
    "first_row": ("last_row", " to "),
    **{f"{name}_low": (f"{name}_high", " to ") for name in ("gap", "bias", "spread")},
}
"""Columns that are shown together with another one, and what stands between them."""

ERRORS = ("error", "calibration_error")
"""Columns that a null band belongs to."""

HIDDEN = ("excess", "pvalue_alone")
"""Columns that only the data have."""

HEADINGS = {
    "pvalue": "p",
    "first_row": "rows",
    "beyond_chance": "beyond",
    **dict.fromkeys(["null_low", "gap_low", "bias_low", "spread_low"], "if calibrated"),
}
"""Columns that are called otherwise on the page."""


def columns_of(table: Table, noun: str = "") -> list[Column]:
    """What a page shows of a table: the ends of a band in one column, a change with its error, the first under its noun.

    >>> [column.texts for column in columns_of(Table(group=["a"], null_low=[0.0], null_high=[0.012]))]
    [('a',), ('0.0 % to 1.2 %',)]
    """
    seconds = {second for first, (second, _) in PAIRS.items() if first in table}
    columns = [_column(table, name) for name in table if name not in seconds and name not in HIDDEN]
    if noun:
        columns[0] = replace(columns[0], heading=noun)
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
    """Which rows show a defect: those said to be beyond chance, or with a small p-value; else those beyond their null band."""
    if "beyond_chance" in table:
        return [bool(beyond) for beyond in table["beyond_chance"]]
    if "pvalue" in table:
        return (table["pvalue"] <= 0.05).tolist()
    error = next((table[name] for name in ERRORS if name in table and "null_high" in table), None)
    return [False] * table.n_rows if error is None else (error > table["null_high"]).tolist()


def _column(table: Table, name: str) -> Column:
    values: list[Any] = table[name].tolist()
    texts = _texts(name, values)
    second, between = PAIRS.get(name, ("", ""))
    if second in table:
        both = zip(texts, _texts(second, table[second].tolist()), strict=True)
        texts = [between.join(filter(None, pair)) for pair in both]
    is_number = table[name].dtype.kind in "fiu"
    keys = tuple(repr(v) if is_number else str(v) for v in values)
    heading = HEADINGS.get(name, name.replace("_", " "))
    return Column(heading, is_number, tuple(texts), keys, _bars(table, name) if name in ERRORS else ())


def _bars(table: Table, name: str) -> tuple[tuple[float, float, float], ...]:
    if "null_low" not in table or "null_high" not in table:
        return ()
    ends = np.stack([table["null_low"], table["null_high"], table[name]], axis=1)
    shares = 100 * ends / (np.nanmax(ends) or 1.0)
    return tuple((low, high, value) for low, high, value in np.nan_to_num(shares).clip(0, 100).round(1).tolist())


def _texts(name: str, values: Sequence[Any]) -> list[str]:
    write = FORMATS.get(name, plain)
    return [write(value) for value in values]
