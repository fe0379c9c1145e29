"""A stream before and after something changed: whether it is still calibrated, and the sentences that say so."""

import math
from typing import Literal, NamedTuple

import numpy as np

from calibrant.monitoring.control import Limits, strongest_class, strongest_group
from calibrant.monitoring.history import CUTS, EventSums, EventTally, PITSums, PITTally
from calibrant.monitoring.monitor import Alarm, Monitor
from calibrant.reports.core.model import Verdict
from calibrant.results import Finding, how_many, number, percent

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
