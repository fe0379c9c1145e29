"""Columns of quantiles: the levels that their names say, and their order."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from calibrant._validate import InputError
from calibrant._wording import said
from calibrant.io.columns import Columns
from calibrant.io.long_format import LongFormat
from calibrant.results import how_many


def levels_of_names(names: Sequence[str], n_levels: int | None = None) -> list[float]:
    """Levels of quantiles as their columns are called: ``q_0.05``, or ``q05``, ``q_5`` or ``5%`` in percent.

    ``n_levels`` is how many there are, where a name stands for several. Names whose numbers may count the columns, such as
    q1 to q9, are refused, as they would be read as 1 % to 9 %.

    >>> levels_of_names(["q_0.1", "q_0.5"]), levels_of_names(["p10", "p97.5"]), levels_of_names(["m2_q05", "m2_q95"])
    ([0.1, 0.5], [0.1, 0.975], [0.05, 0.95])
    """
    texts = _varying_numbers(names)
    parts = (len(names) if n_levels is None else n_levels) + 1
    evenly = _as_levels([i / parts for i in range(1, parts)])
    if texts is None:
        shown = ", ".join(names[:4])
        raise InputError(
            f"{said('predict')} Quantiles: the columns {shown} do not say their levels as in q_0.05: give them, {evenly}"
        )
    values = [float(text.rstrip("%")) for text in texts]
    have_points, have_signs = any("." in text for text in texts), all("%" in text for text in texts)
    if have_points and max(values) <= 1 and not have_signs:
        return values
    shares = [value / 100 for value in values]
    if have_points or have_signs:
        return shares
    is_count = values[0] <= 1 and len(values) != 99 and set(np.diff(values)) == {1.0}
    if is_count or max(values) < 10 or max(values) >= 100:
        either = f", or {_as_levels(shares)}" if max(values) < 100 else ""
        raise InputError(
            f"{said('predict')} Quantiles: the numbers in {names[0]} to {names[-1]} may be percent, or count the columns: say "
            f"which, {evenly}{either}"
        )
    return shares


def check_is_whole(name: str, given: Mapping[str, Any], table: Columns) -> None:
    """Refuse one column where a forecast needs several: members or quantiles that have a line each, most likely."""
    parameter, pattern, long = WHOLE.get(name.partition(".")[0], ("", "", ""))
    values = given.get(parameter)
    if not isinstance(values, np.ndarray):
        return
    is_long = isinstance(table, LongFormat)
    if values.ndim == 1 and not is_long:
        lines = (
            f"where each has a line, {said('predict', long)} and {said('forecast_id')} with the columns that they share"
        )
        raise InputError(f"{said('predict')} {name} takes several columns, as in {pattern}; {lines}")
    if is_long and parameter == "values" and "levels" not in given:
        raise InputError(f"{said('predict')} {name}: say which column holds the levels, {long}")


WHOLE = {
    "Ensemble": ("members", "Ensemble(m_*)", "Ensemble(value)"),
    "Quantiles": ("values", "Quantiles(q_*)", "Quantiles(value, level)"),
}
"""Of families of several columns the parameter, how it is written, and how with a line each."""


def of_lines(given: Mapping[str, Any]) -> dict[str, Any]:
    """Quantiles with a line each, in the order of the levels that the lines say, which must be those of every forecast.

    >>> of_lines({"values": np.array([[3.0, 1.0]]), "levels": np.array([[0.9, 0.1]])})
    {'values': array([[1., 3.]]), 'levels': [0.1, 0.9]}
    """
    values, levels = np.atleast_2d(given["values"]), np.atleast_2d(given["levels"])
    order = np.argsort(levels, axis=1)
    levels = np.take_along_axis(levels, order, axis=1)
    if levels.shape != values.shape or (levels != levels[0]).any():
        raise InputError(f"{said('predict')} Quantiles: every forecast needs a line for each of the same levels")
    return {**given, "values": np.take_along_axis(values, order, axis=1), "levels": levels[0].tolist()}


def _as_levels(levels: Sequence[float]) -> str:
    """The setting that gives them."""
    return f"levels=({', '.join(f'{level:.3g}' for level in levels)})"


def _varying_numbers(names: Sequence[str]) -> list[str] | None:
    """The one number in each name that differs from name to name, with its percent sign; ``None`` where there is no such."""
    numbers = [re.findall(r"\d+(?:\.\d+)?%?", name) for name in names]
    if len({len(found) for found in numbers}) != 1:
        return None
    differing = [column for column in zip(*numbers, strict=True) if len(set(column)) > 1]
    return list(differing[0]) if len(differing) == 1 else None


def rearranged(name: str, given: dict[str, Any], rearrange: bool) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The arguments with quantiles that cross in their order where that is asked for, and how many did."""
    ends = ("low", "high") if name == "Interval" else ("values",)
    if name not in ("Interval", "Quantiles", "Quantiles.joined") or not all(end in given for end in ends):
        if rearrange and name != "Quantiles.rearranged":
            raise InputError(
                f"{said('rearrange', '')} goes with Quantiles and Interval, and {name} has none: leave it out"
            )
        return given, ()
    fan = np.column_stack([given[end] for end in ends])
    crossing = (np.diff(fan, axis=1) < 0).any(axis=1)
    if not crossing.any():
        return given, ()
    rows = how_many(int(crossing.sum()), "row")
    if not rearrange:
        first = ", ".join(f"{x:g}" for x in fan[crossing][0][:9])
        remedy = f"{said('rearrange', '')} sorts them"
        raise InputError(f"quantiles cross in {rows}, first in row {int(crossing.argmax()) + 1} ({first}): {remedy}")
    fan = np.sort(fan, axis=1)
    ordered = {"values": fan} if name != "Interval" else {"low": fan[:, 0], "high": fan[:, 1]}
    return {**given, **ordered}, (f"quantiles crossed in {rows} of {len(fan):,}, and were sorted",)
