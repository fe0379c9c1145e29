"""Whether a stream is still calibrated: one sentence from the evidence of the monitor, and what goes with it."""

import math
from typing import Literal

from calibrant.monitoring.bets import Bets
from calibrant.monitoring.control import Limits
from calibrant.monitoring.monitor import Alarm, Monitor
from calibrant.reports.model import Verdict
from calibrant.reports.monitor_sides import in_words, sides_of, standing_out
from calibrant.results import how_many, number, percent

FEW = 50
"""Fewer rows are never called calibrated."""

EARLY = 0.1
"""A defect that began in this share of the rows up to its alarm, or in the first few, was there from the first."""


def judge_stream(monitor: Monitor, limits: Limits) -> Verdict:
    """The verdict rests on the e-process alone; windows only describe what it found."""
    if monitor.alarm is not None:
        return _alarmed(monitor, monitor.alarm, limits)
    if monitor.leaning is None:
        return Verdict("unsure", "No rows yet: nothing can be said.", (), 1.0, "too few rows")
    enough = 1 / monitor.alpha
    evidence = (
        f"The e-value has been {evalue(monitor.peak)} at most, and {number(enough)} would raise the alarm; the p-value, valid at "
        f"every look, is {number(monitor.pvalue)}.",
        f"Most speaks for this: {monitor.leaning.words}, since about row {monitor.leaning.since:,}. That is no finding.",
        *_overall(monitor),
    )
    tone, headline, finding = _quiet(monitor)
    return Verdict(tone, headline, evidence, monitor.pvalue, finding)


def _quiet(monitor: Monitor) -> tuple[Literal["good", "unsure"], str, str]:
    """Tone, headline and finding without an alarm."""
    assert monitor.leaning is not None
    if monitor.n < FEW:
        rows = how_many(monitor.n, "row")
        return "unsure", f"Too few rows to tell: no alarm after {rows}.", "too few rows"
    if monitor.peak >= -math.log(monitor.alpha) / 2:
        return "unsure", f"No alarm in {monitor.n:,} rows, but evidence has gathered: {monitor.leaning.words}.", "none"
    return "good", f"No alarm in {monitor.n:,} rows: nothing says that the model is not calibrated.", "none"


def _alarmed(monitor: Monitor, alarm: Alarm, limits: Limits) -> Verdict:
    is_early = alarm.since <= max(FEW, EARLY * alarm.row)
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
    return Verdict("bad", headline, evidence, monitor.pvalue, finding_of(alarm.words, monitor.bets))


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
    if now is not None and now.words != alarm.words:
        return (f"By row {monitor.n:,} most speaks for this: {now.words}, since about row {now.since:,}.",)
    return ()


def finding_of(words: str, bets: Bets | None) -> str:
    """What bets say, in the words that programs know.

    >>> from calibrant.monitoring.class_bets import ClassBets, EventBets
    >>> finding_of("probabilities between 1 % and 5 % are too low", EventBets())
    'local'
    >>> finding_of("probabilities of cat are too low", ClassBets(("cat", "dog", "bird")))
    'class'
    """
    if bets is not None and bets.kind == "multi-label":
        return "label"
    if bets is not None and bets.kind == "multi-class" and words.startswith("probabilities of "):
        return "class"
    known = ("over-confident", "under-confident", "too high", "too low", "too narrow", "too wide")
    is_local = words.startswith(("probabilities between", "confidences between", "outcomes fall"))
    return "local" if is_local else next(word for word in known if word in words)


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
