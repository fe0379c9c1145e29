"""A stream before and after something changed: whether it is still calibrated, and the tables of its parts."""

import math
from typing import Literal, NamedTuple

import numpy as np

from calibrant.inference.pit_bands import histogram_table
from calibrant.inference.reliability_curve import outward
from calibrant.monitoring.control import SLACK, Limits, strongest_class, strongest_group
from calibrant.monitoring.history import CUTS, EventSums, EventTally, PITSums, PITTally
from calibrant.monitoring.monitor import Alarm, Monitor
from calibrant.plots.classification.event_curves import CROWDED, floor_of
from calibrant.reports.core.model import Section, Verdict
from calibrant.results import Finding, Table, how_many, number, percent

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


def pit_of(monitor: Monitor, values: np.ndarray) -> PITSums:
    """Sums of levels, of the group that the evidence is about."""
    assert monitor.history is not None
    assert isinstance(monitor.history.tally, PITTally)
    return PITSums(*(part[strongest_group(monitor)] for part in monitor.history.tally.by_group(values)))


def is_of_pit(monitor: Monitor) -> bool:
    """Whether forecasts of numbers are watched."""
    return monitor.history is not None and isinstance(monitor.history.tally, PITTally)


def shown_name(monitor: Monitor) -> str:
    """The class, label or coordinate that windows show; nothing where they show all there is."""
    assert monitor.history is not None
    tally, single = monitor.history.tally, strongest_class(monitor)
    if single is not None:
        return str(tally.classes[single])  # type: ignore[attr-defined]
    return str(tally.groups[strongest_group(monitor)]) if len(tally.groups) > 1 else ""


def in_words(monitor: Monitor, values: np.ndarray) -> str:
    """What one side shows, as a part of a sentence."""
    if is_of_pit(monitor):
        sums = pit_of(monitor, values)
        n, mean = float(sums.rows), float(sums.scores / sums.rows)
        if n == 1:
            return f"bias {mean:z.2f} in 1 row"  # which has no spread
        spread = np.sqrt(max(float(sums.squares) - n * mean**2, 0) / (n - 1))
        return f"bias {mean:z.2f} and spread {spread:.2f} in {round(n):,} rows"
    tally, single = monitor.history.tally, strongest_class(monitor)  # type: ignore[union-attr]
    assert isinstance(tally, EventTally)
    total = parts_of(monitor, values).over(-1) if single is None else tally.by_class(values).at(single)
    predicted, observed = (percent(float(part / total.rows)) for part in (total.predicted, total.observed))
    rows = how_many(round(float(total.rows)), "row")
    name = shown_name(monitor)
    if tally.classes and not name:
        return f"a confidence of {predicted} on average and {observed} right in {rows}"
    return f"{predicted}{f' of {name}' if name else ''} claimed and {observed} happened in {rows}"


def standing_out(monitor: Monitor, values: np.ndarray, limits: Limits) -> str | None:
    """The part, class or label of one side that is furthest beyond chance, in words; nothing where none is, or of levels."""
    if is_of_pit(monitor):
        return None
    assert monitor.history is not None
    tally = monitor.history.tally
    assert isinstance(tally, EventTally)
    sums = tally.by_class(values) if tally.classes else parts_of(monitor, values)
    score, drawn = (gap / np.sqrt(sums.noise + 1) for gap in (sums.gap, limits.resample(sums)))
    worst = int(np.argmax(np.abs(score)))
    enough = 1 - (1 - limits.level) / len(tally.groups)
    if abs(score[worst]) <= np.quantile(np.abs(drawn).max(axis=1), enough, method="higher"):
        return None
    if tally.classes and worst == strongest_class(monitor):
        return None  # which is told anyway
    predicted, observed = (percent(float(part[worst] / sums.rows[worst])) for part in (sums.predicted, sums.observed))
    if tally.classes:
        return f"the class {tally.classes[worst]}, {predicted} claimed and {observed} happened"
    place = f"{100 * ENDS[worst]:g} % and {100 * ENDS[worst + 1]:g} %"
    return f"claims between {place}, {predicted} on average, of which {observed} happened"


def tables_of(monitor: Monitor, values: np.ndarray, limits: Limits) -> dict[str, Table]:
    """The reliability diagram of one side, or its histogram of levels."""
    settings = {"level": [limits.level]}
    if is_of_pit(monitor):
        sums = pit_of(monitor, values)
        n = int(sums.rows)
        return {"pit_histogram": histogram_table(sums.counts / n, n, limits.level), "settings": Table(settings)}
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
    low, high = outward((parts.predicted - limits.resample(parts)) / parts.rows, (1 - limits.level) / 2)
    means = {"predicted": parts.predicted / parts.rows, "observed": parts.observed / parts.rows}
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


MIN_ROWS = 50
"""Fewer rows are never called calibrated."""

EARLY = 0.1
"""A defect that began in this share of the rows up to its alarm, or in the first few, was there from the first."""


def judge_stream(monitor: Monitor, limits: Limits) -> Verdict:
    """The verdict rests on the e-process alone; windows only describe what it found."""
    if monitor.alarm is not None:
        return _alarmed(monitor, monitor.alarm, limits)
    if monitor.leaning is None:
        return Verdict("unsure", "No rows yet: nothing can be said.", (), 1.0, Finding.TOO_FEW_ROWS)
    enough = 1 / monitor.alpha
    evidence = (
        f"The e-value has been {evalue(monitor.peak)} at most, and {number(enough)} would raise the alarm; the p-value, valid at "
        f"every look, is {number(monitor.pvalue)}.",
        f"Most speaks for this: {monitor.leaning.words}, since about row {monitor.leaning.since:,}. That is no finding.",
        *_overall(monitor),
    )
    tone, headline, finding = _quiet(monitor)
    return Verdict(tone, headline, evidence, monitor.pvalue, finding)


def _quiet(monitor: Monitor) -> tuple[Literal["good", "unsure"], str, Finding]:
    """Tone, headline and finding without an alarm."""
    assert monitor.leaning is not None
    if monitor.n < MIN_ROWS:
        rows = how_many(monitor.n, "row")
        return "unsure", f"Too few rows to tell: no alarm after {rows}.", Finding.TOO_FEW_ROWS
    if monitor.peak >= -math.log(monitor.alpha) / 2:
        headline = f"No alarm in {monitor.n:,} rows, but evidence has gathered: {monitor.leaning.words}."
        return "unsure", headline, Finding.NONE
    return "good", f"No alarm in {monitor.n:,} rows: nothing says that the model is not calibrated.", Finding.NONE


def _alarmed(monitor: Monitor, alarm: Alarm, limits: Limits) -> Verdict:
    is_early = alarm.since <= max(MIN_ROWS, EARLY * alarm.row)
    headline = (
        f"Not calibrated, from the first rows on: {alarm.words}."
        if is_early
        else f"Not calibrated any more since about row {alarm.since:,}: {alarm.words}."
    )
    evidence = (
        f"The evidence sufficed at row {alarm.row:,}: the e-value reached {number(1 / monitor.alpha)}, which it ever does for a "
        f"calibrated model with probability at most {percent(monitor.alpha)}, however long it is watched.",
        *_overall(monitor),
        *_where(monitor, limits),
        *_by_now(monitor, alarm),
    )
    return Verdict("bad", headline, evidence, monitor.pvalue, alarm.defect.finding)


def _overall(monitor: Monitor) -> tuple[str, ...]:
    """What was claimed and what happened, on both sides of the onset where there are two."""
    if monitor.history is None or not len(monitor.history.windows.last):
        return ()
    before, after = sides_of(monitor)
    if before is None:
        return (f"Over all: {in_words(monitor, after)}.",)
    return (f"In the windows before: {in_words(monitor, before)}; in those since: {in_words(monitor, after)}.",)


def _where(monitor: Monitor, limits: Limits) -> tuple[str, ...]:
    """What is furthest off since then, where something is beyond chance."""
    found = None if monitor.history is None else standing_out(monitor, sides_of(monitor).after, limits)
    return () if found is None else (f"Furthest beyond chance since then: {found}.",)


def _by_now(monitor: Monitor, alarm: Alarm) -> tuple[str, ...]:
    """How the evidence stands after the last row, where that is news."""
    now = monitor.leaning
    if math.isinf(monitor.peak):
        return ("Something happened that had been given probability zero, which by itself is evidence without end.",)
    if monitor.log_evalue < -math.log(monitor.alpha):
        return (
            f"By row {monitor.n:,} the e-value has fallen to {evalue(monitor.log_evalue)}: rows since the alarm speak against what "
            "it said. Was something put right, or was it a false alarm?",
        )
    if now is not None and now.defect != alarm.defect:
        return (f"By row {monitor.n:,} most speaks for this: {now.words}, since about row {now.since:,}.",)
    return ()


def evalue(log_evalue: float) -> str:
    """An e-value with three digits, also where it is out of all bounds.

    >>> evalue(0.0), evalue(1.0), evalue(200.0), evalue(float("inf"))
    ('1', '2.72', '7e86', 'infinite')
    """
    power = log_evalue / math.log(10)
    if math.isinf(power):
        return "infinite" if power > 0 else "0"
    if -3 < power < 4:
        return f"{10**power:.3g}"
    whole = math.floor(power)
    return f"{10 ** (power - whole):.0f}e{whole}"


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
        assert isinstance(tally, PITTally)
        if len(tally.groups) == 1:
            return None
        noun, table = "coordinate", _level_table(tally, values, limits)
    return Section(f"By {noun}", noun, remark.format(noun), table)


def _event_table(names: tuple[str, ...], sums: EventSums, limits: Limits) -> Table:
    """What was claimed and happened in each, furthest beyond chance first."""
    drawn = limits.resample(sums) / sums.rows
    (low, high), (lowest, highest) = limits.bands(drawn)
    gap = sums.gap / sums.rows
    order = np.argsort(-np.abs(sums.gap) / np.sqrt(np.maximum(sums.noise, 1e-12)), kind="stable")
    columns = {
        "group": np.array(names, dtype=object),
        "claimed": sums.predicted / sums.rows,
        "happened": sums.observed / sums.rows,
        "gap": gap,
        "gap_low": low,
        "gap_high": high,
        "beyond_chance": (gap < lowest - SLACK) | (gap > highest + SLACK),
    }
    return Table({name: column[order] for name, column in columns.items()})


def _level_table(tally: PITTally, values: np.ndarray, limits: Limits) -> Table:
    """Bias and spread of each coordinate, furthest beyond chance first."""
    tables = limits.of_pit(tally.by_group(values))
    far = np.maximum(
        *(np.abs(t["value"] - (t["low"] + t["high"]) / 2) / (t["high"] - t["low"]) for t in tables.values())
    )
    order = np.argsort(-np.nan_to_num(far), kind="stable")
    columns = {"group": np.array(tally.groups, dtype=object), **window_table(tables)}
    return Table({name: column[order] for name, column in columns.items()})
