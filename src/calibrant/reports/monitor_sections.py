"""The tables of a watched stream: its windows, and its classes, labels or coordinates."""

import numpy as np

from calibrant.monitoring.control import SLACK, Limits, strongest_class, strongest_group
from calibrant.monitoring.monitor import Monitor
from calibrant.monitoring.tallies import EventSums, EventTally, LevelTally
from calibrant.reports.model import Section
from calibrant.reports.monitor_sides import shown_name, sides_of
from calibrant.results import Table


def stream_sections(monitor: Monitor, limits: Limits) -> tuple[Section, ...]:
    """What is watched beside each other, and a table of windows."""
    if monitor.history is None or not len(monitor.history.windows.last):
        return ()
    groups = _groups(monitor, limits)
    return (*(() if groups is None else (groups,)), _windows(monitor, limits))


def _windows(monitor: Monitor, limits: Limits) -> Section:
    assert monitor.history is not None
    tables = limits.tables(monitor.history, strongest_group(monitor), strongest_class(monitor))
    what = "" if monitor.alarm is None or strongest_class(monitor) is None else " The error is that of the confidence."
    remark = (
        f"Bands hold a calibrated model in each window with chance {100 * limits.level:g} %. Beyond chance is what leaves the band "
        f"of all windows at once, which happens in {100 * (1 - limits.level):.3g} % of calibrated streams at most.{what}"
    )
    name = shown_name(monitor)
    return Section(f"Windows: {name}" if name else "Windows", "", remark, window_table(tables))


def window_table(tables: dict[str, Table]) -> Table:
    """The measures of a window in one row, each with its band."""
    (name, one), (other, two) = tables.items()
    rows = {f"{end}_row": one[end] for end in ("first", "last") if end in one}
    claims = {column: one[column] for column in ("claimed", "happened") if column in one}
    second = "null" if other == "error" else other  # errors have their band drawn beside them
    return Table(
        {
            **rows,
            **claims,
            name: one["value"],
            f"{name}_low": one["low"],
            f"{name}_high": one["high"],
            other: two["value"],
            f"{second}_low": two["low"],
            f"{second}_high": two["high"],
            "beyond_chance": one["beyond"] | two["beyond"],
        }
    )


def _groups(monitor: Monitor, limits: Limits) -> Section | None:
    """Classes, labels or coordinates since the onset, or of all rows; none where there is one."""
    assert monitor.history is not None
    tally, values = monitor.history.tally, sides_of(monitor).after
    when = "Over all windows" if sides_of(monitor).before is None else "In the windows since the onset"
    remark = f"{when}. Bands hold each {{}} of a calibrated model by itself; beyond chance is what leaves the band of all at once."
    if isinstance(tally, EventTally):
        noun = "class" if tally.classes else "label"
        if not tally.classes and len(tally.groups) == 1:
            return None
        sums = tally.by_class(values) if tally.classes else tally.by_part(values).over(-1)
        table = _event_table(tally.classes or tally.groups, sums, limits)
    else:
        assert isinstance(tally, LevelTally)
        if len(tally.groups) == 1:
            return None
        noun, table = "coordinate", _level_table(tally, values, limits)
    return Section(f"By {noun}", noun, remark.format(noun), table)


def _event_table(names: tuple[str, ...], sums: EventSums, limits: Limits) -> Table:
    """What was claimed and happened in each, furthest beyond chance first."""
    drawn = limits.redraw(sums) / sums.rows
    (low, high), (lowest, highest) = limits.bands(drawn)
    gap = sums.gap / sums.rows
    order = np.argsort(-np.abs(sums.gap) / np.sqrt(np.maximum(sums.noise, 1e-12)), kind="stable")
    columns = {
        "group": np.array(names, dtype=object),
        "claimed": sums.claimed / sums.rows,
        "happened": sums.happened / sums.rows,
        "gap": gap,
        "gap_low": low,
        "gap_high": high,
        "beyond_chance": (gap < lowest - SLACK) | (gap > highest + SLACK),
    }
    return Table({name: column[order] for name, column in columns.items()})


def _level_table(tally: LevelTally, values: np.ndarray, limits: Limits) -> Table:
    """Bias and spread of each coordinate, furthest beyond chance first."""
    tables = limits.of_levels(tally.by_group(values))
    far = np.maximum(
        *(np.abs(t["value"] - (t["low"] + t["high"]) / 2) / (t["high"] - t["low"]) for t in tables.values())
    )
    order = np.argsort(-np.nan_to_num(far), kind="stable")
    columns = {"group": np.array(tally.groups, dtype=object), **window_table(tables)}
    return Table({name: column[order] for name, column in columns.items()})
