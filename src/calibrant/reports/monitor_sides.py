"""A stream before and after something changed: its windows in two parts, and what each part shows."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from calibrant.inference.bands import outward
from calibrant.inference.pit_histogram import histogram_table
from calibrant.monitoring.control import Limits, strongest_class, strongest_group
from calibrant.monitoring.monitor import Monitor
from calibrant.monitoring.tallies import CUTS, EventSums, EventTally, LevelSums, LevelTally
from calibrant.plots.claims import CROWDED, floor_of
from calibrant.results import Table, how_many, percent

ENDS = np.array([0.0, *CUTS, 1.0])
"""Ends of the parts that claims are kept in."""


class Sides(NamedTuple):
    """Sums of all windows before and of all after; ``before`` is ``None`` where all windows are one part."""

    before: np.ndarray | None
    after: np.ndarray


def sides_of(monitor: Monitor) -> Sides:
    """Windows that end before the alarm's first row, and those that begin with it or later; the one between is left out.

    Where none begins later, the one between is what comes after.
    """
    assert monitor.history is not None
    first, last, values = monitor.history.windows
    if monitor.alarm is None or not (last < monitor.alarm.since).any():
        return Sides(None, values.sum(axis=0))
    since = monitor.alarm.since
    later = first >= since
    later = later if later.any() else last >= since
    return Sides(values[last < since].sum(axis=0), values[later].sum(axis=0))


def parts_of(monitor: Monitor, values: np.ndarray) -> EventSums:
    """Sums by part of the range of claims, of the group that the evidence is about."""
    assert monitor.history is not None
    assert isinstance(monitor.history.tally, EventTally)
    return monitor.history.tally.by_part(values).at(strongest_group(monitor))


def levels_of(monitor: Monitor, values: np.ndarray) -> LevelSums:
    """Sums of levels, of the group that the evidence is about."""
    assert monitor.history is not None
    assert isinstance(monitor.history.tally, LevelTally)
    return LevelSums(*(part[strongest_group(monitor)] for part in monitor.history.tally.by_group(values)))


def is_of_levels(monitor: Monitor) -> bool:
    """Whether forecasts of numbers are watched."""
    return monitor.history is not None and isinstance(monitor.history.tally, LevelTally)


def shown_name(monitor: Monitor) -> str:
    """The class, label or coordinate that windows show; nothing where they show all there is."""
    assert monitor.history is not None
    tally, single = monitor.history.tally, strongest_class(monitor)
    if single is not None:
        return str(tally.classes[single])  # type: ignore[attr-defined]
    return str(tally.groups[strongest_group(monitor)]) if len(tally.groups) > 1 else ""


def in_words(monitor: Monitor, values: np.ndarray) -> str:
    """What one side shows, as a part of a sentence."""
    if is_of_levels(monitor):
        sums = levels_of(monitor, values)
        n, mean = float(sums.rows), float(sums.scores / sums.rows)
        if n == 1:
            return f"bias {mean:z.2f} in 1 row"  # which has no spread
        spread = np.sqrt(max(float(sums.squares) - n * mean**2, 0) / (n - 1))
        return f"bias {mean:z.2f} and spread {spread:.2f} in {round(n):,} rows"
    tally, single = monitor.history.tally, strongest_class(monitor)  # type: ignore[union-attr]
    assert isinstance(tally, EventTally)
    total = parts_of(monitor, values).over(-1) if single is None else tally.by_class(values).at(single)
    claimed, happened = (percent(float(part / total.rows)) for part in (total.claimed, total.happened))
    rows = how_many(round(float(total.rows)), "row")
    name = shown_name(monitor)
    if tally.classes and not name:
        return f"a confidence of {claimed} on average and {happened} right in {rows}"
    return f"{claimed}{f' of {name}' if name else ''} claimed and {happened} happened in {rows}"


def standing_out(monitor: Monitor, values: np.ndarray, limits: Limits) -> str | None:
    """The part, class or label of one side that is furthest beyond chance, in words; nothing where none is, or of levels."""
    if is_of_levels(monitor):
        return None
    assert monitor.history is not None
    tally = monitor.history.tally
    assert isinstance(tally, EventTally)
    sums = tally.by_class(values) if tally.classes else parts_of(monitor, values)
    score, drawn = (gap / np.sqrt(sums.noise + 1) for gap in (sums.gap, limits.redraw(sums)))
    worst = int(np.argmax(np.abs(score)))
    enough = 1 - (1 - limits.level) / len(tally.groups)
    if abs(score[worst]) <= np.quantile(np.abs(drawn).max(axis=1), enough, method="higher"):
        return None
    if tally.classes and worst == strongest_class(monitor):
        return None  # which is told anyway
    claimed, happened = (percent(float(part[worst] / sums.rows[worst])) for part in (sums.claimed, sums.happened))
    if tally.classes:
        return f"the class {tally.classes[worst]}, {claimed} claimed and {happened} happened"
    place = f"{100 * ENDS[worst]:g} % and {100 * ENDS[worst + 1]:g} %"
    return f"claims between {place}, {claimed} on average, of which {happened} happened"


def tables_of(monitor: Monitor, values: np.ndarray, limits: Limits) -> dict[str, Table]:
    """The reliability diagram of one side, or its histogram of levels."""
    settings = {"level": [limits.level]}
    if is_of_levels(monitor):
        sums = levels_of(monitor, values)
        n = int(sums.rows)
        return {"levels": histogram_table(sums.counts / n, n, limits.level), "settings": Table(settings)}
    assert monitor.history is not None
    parts = parts_of(monitor, values)
    floor = _floor(parts_of(monitor, monitor.history.windows.values.sum(axis=0)))  # one kind of axes for both sides
    return {
        "curve": curve_of(parts.at(parts.rows > 0), limits),
        "histogram": _histogram(parts.rows, floor),
        "settings": Table(settings, band=["consistency"], floor=[np.nan if floor is None else floor]),
    }


def curve_of(parts: EventSums, limits: Limits) -> Table:
    """Claimed and happened in each part, with the band of a calibrated model at each."""
    low, high = outward((parts.claimed - limits.redraw(parts)) / parts.rows, (1 - limits.level) / 2)
    means = {"predicted": parts.claimed / parts.rows, "observed": parts.happened / parts.rows}
    return Table({**means, "weight": parts.rows, "low": low, "high": high})


def _histogram(rows: np.ndarray, floor: float | None) -> Table:
    """Rows by part of the range; with a floor, parts beyond it go to the outermost."""
    ends = ENDS if floor is None else np.unique(np.clip(ENDS, floor, 1 - floor))
    place = np.searchsorted(ends[1:-1], (ENDS[:-1] + ENDS[1:]) / 2)
    return Table(lower=ends[:-1], upper=ends[1:], weight=np.bincount(place, rows, len(ends) - 1))


def _floor(parts: EventSums) -> float | None:
    """Where axes of log-odds end, if most claims lie near 0 or 1."""
    total = float(parts.rows.sum())
    outer = (ENDS[1:] <= 0.05) | (ENDS[:-1] >= 0.95)
    return floor_of(int(total)) if parts.rows[outer].sum() >= CROWDED * total else None


def paired(before: Mapping[str, Table], after: Mapping[str, Table]) -> dict[str, Table]:
    """The tables of both sides under their names."""
    sides = {"before": before, "after": after}
    return {f"{side}_{name}": table for side, tables in sides.items() for name, table in tables.items()}
