"""A watched stream as a page: is the model still calibrated, since when not, which way, and where."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from calibrant._validate import InputError, check_count
from calibrant.monitoring.control import Limits, strongest_class
from calibrant.monitoring.history import History
from calibrant.monitoring.monitor import Alarm, Monitor
from calibrant.plots.comparisons.before_after_plot import paired
from calibrant.plots.sequential.drift import DriftDisplay
from calibrant.plots.sequential.evidence_plot import EvidenceDisplay
from calibrant.plots.sequential.windows import WindowsDisplay
from calibrant.reports.core.model import Page, Picture, Section, Verdict
from calibrant.reports.evaluation import versions
from calibrant.reports.render.html import charts_of, rendered, shortened
from calibrant.reports.stream_verdict import (
    evalue,
    in_words,
    is_of_pit,
    judge_stream,
    shown_name,
    sides_of,
    stream_sections,
    tables_of,
)
from calibrant.results import SCHEMA, how_many, number, percent
from calibrant.results.markup import NUMBER, TABLE, TEXT, details, escaped, plain_text, table


@dataclass(frozen=True)
class Fact:
    """A number of a stream: what it is called, its value, as people read it, and what it means."""

    label: str
    value: float
    text: str
    meaning: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


@dataclass(frozen=True, eq=False, repr=False)
class MonitorReport(Page):
    """Everything the page of a watched stream shows, as data; :func:`calibrant.monitor_report` makes it.

    The ``verdict`` rests on the e-process of the monitor alone. ``pictures`` and ``sections`` describe windows of rows.
    """

    title: str
    n: int
    kind: str
    verdict: Verdict
    alarm: Alarm | None
    facts: tuple[Fact, ...]
    pictures: tuple[Picture, ...]
    sections: tuple[Section, ...]
    notes: tuple[str, ...]
    settings: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "schema": SCHEMA,
            "kind": "monitor-report",
            "title": self.title,
            "problem": self.kind,
            "n": self.n,
            "verdict": self.verdict.to_dict(),
            "alarm": None if self.alarm is None else asdict(self.alarm),
            "numbers": [fact.to_dict() for fact in self.facts],
            "pictures": [picture.to_dict() for picture in self.pictures],
            "sections": [section.to_dict() for section in self.sections],
            "notes": list(self.notes),
            "settings": dict(self.settings),
        }

    def picture(self, kind: str) -> Picture:
        """The picture of this kind."""
        return next(picture for picture in self.pictures if picture.kind == kind)

    def to_html(self) -> str:
        """One self-contained page."""

        return to_html(self)

    def to_markdown(self) -> str:
        """Verdict, evidence and numbers in GitHub's Markdown; notes and settings to unfold."""
        from calibrant.reports.render.markdown import MARKS

        verdict = self.verdict
        evidence = "\n".join(f"- {escaped(sentence, longest=600)}" for sentence in verdict.evidence)
        rows = [[escaped(fact.label), f"**{escaped(fact.text)}**"] for fact in self.facts]
        notes = [f"- {escaped(note, longest=600)}" for note in self.notes]
        settings = [f"- {escaped(name)}: {escaped(str(value))}" for name, value in self.settings.items()]
        parts = [
            f"### {MARKS[verdict.tone]} {escaped(verdict.headline, longest=600)}",
            f"{escaped(self.title)} · {how_many(self.n, 'row')} · {escaped(self.kind)}",
            evidence,
            table(["", "value"], rows, [False, True]),
            details("Notes and settings", "\n".join([*notes, *settings])),
        ]
        return "\n\n".join(part for part in parts if part) + "\n"

    def _repr_html_(self) -> str:
        from calibrant.reports.render.notebook import summary

        rows = [
            f"<tr title='{escape(fact.meaning)}'><td style='{TEXT}'>{escape(fact.label)}</td>"
            f"<td style='{NUMBER}'><b>{escape(fact.text)}</b></td></tr>"
            for fact in self.facts
        ]
        left = f"<table style='{TABLE}'>{''.join(rows)}</table>"
        about = f"{how_many(self.n, 'row')} · {escape(plain_text(self.kind))}"
        return summary(self.title, about, self.verdict, self.pictures, left)

    def _lines(self) -> list[tuple[str, str]]:
        said = [("", sentence) for sentence in self.verdict.evidence]
        return [(self.title, self.verdict.headline), *said, *((fact.label, fact.text) for fact in self.facts)]


KINDS = {"binary": "binary", "multi-class": "multi-class", "multi-label": "multi-label", "forecast": "forecasts"}
"""What is watched, by the kind of the bets."""


def monitor_report(
    monitor: Monitor,
    *,
    title: str = "Calibration of a stream",
    bad_lines: int = 0,
    notes: Sequence[str] = (),
    level: float = 0.95,
    n_resamples: int = 999,
) -> MonitorReport:
    """The page of a watched stream, as data: the verdict, the evidence row by row, windows as a control chart, before and after.

    ``bad_lines`` counts lines that could not be used, where rows came from a file; ``level`` is that of the bands of windows,
    ``n_resamples`` how many resamples they rest on. Nothing of the stream is read again: all is put together from what the
    monitor keeps, at a cost that does not depend on the rows.

    >>> import numpy as np
    >>> from calibrant import Monitor, monitor_report
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> truth = np.where(np.arange(2000) < 1000, p, p**2)  # the world changes half way
    >>> report = monitor_report(Monitor(window=100).update((rng.random(2000) < truth) * 1, p), n_resamples=199)
    >>> report.verdict.headline
    'Not calibrated any more since about row 1,006: probabilities are too high.'
    """
    if not isinstance(monitor, Monitor):
        raise InputError(f"monitor must be a Monitor, such as Monitor().update(y_true, y_pred); got {monitor!r}")
    check_count(bad_lines, "bad_lines", least=0)
    limits = Limits(level, n_resamples, monitor.seed)
    return MonitorReport(
        title=title,
        n=monitor.n,
        kind="no rows yet" if monitor.bets is None else KINDS[monitor.bets.kind],
        verdict=judge_stream(monitor, limits),
        alarm=monitor.alarm,
        facts=facts_of(monitor, bad_lines),
        pictures=stream_pictures(monitor, limits),
        sections=stream_sections(monitor, limits),
        notes=(*notes, *stream_notes(monitor, bad_lines)),
        settings=_settings(monitor, limits),
    )


def facts_of(monitor: Monitor, bad_lines: int) -> tuple[Fact, ...]:
    """The few numbers that a stream has."""
    windows = 0 if monitor.history is None else len(monitor.history.windows.last)
    width = monitor.window if monitor.history is None else monitor.history.spans.width
    return (
        Fact(
            "Rows",
            monitor.n,
            f"{monitor.n:,}",
            "Predictions whose outcomes are known, in the order in which they came.",
        ),
        Fact(
            "Windows",
            windows,
            f"{windows:,}",
            f"Parts of the stream, of {how_many(width, 'row')} each but for the last.",
        ),
        Fact(
            "Lines left out", bad_lines, f"{bad_lines:,}", "Lines that could not be read as a row; they were counted."
        ),
        Fact(
            "p-value",
            monitor.pvalue,
            number(monitor.pvalue) if monitor.pvalue >= 1e-4 else evalue(-monitor.peak),
            "One over the largest e-value so far: how surprising the stream is for a calibrated model. Valid at every look.",
        ),
        Fact(
            "e-value",
            monitor.log_evalue,
            evalue(monitor.log_evalue),
            f"What a capital of 1 has become that was bet against the model. The data have its logarithm. Largest so far: "
            f"{evalue(monitor.peak)}.",
        ),
        Fact(
            "False alarms allowed",
            monitor.alpha,
            percent(monitor.alpha),
            f"The chance that a calibrated model ever raises an alarm; there is one when the e-value reaches "
            f"{number(1 / monitor.alpha)}.",
        ),
    )


def _settings(monitor: Monitor, limits: Limits) -> dict[str, Any]:
    """What repeats the run."""
    return {
        **versions(),
        "alpha": monitor.alpha,
        "seed": monitor.seed,
        "window": monitor.window,
        "bets": 0 if monitor.bets is None else len(monitor.bets.shares),
        "level": limits.level,
        "resamples": limits.n_resamples,
    }


def stream_pictures(monitor: Monitor, limits: Limits) -> tuple[Picture, ...]:
    """The evidence, the windows, where it goes wrong, and what is claimed and happens on both sides of the onset."""
    if monitor.history is None or not len(monitor.history.windows.last):
        return ()
    return (_evidence(monitor), _windows(monitor, limits), _drift(monitor, limits), _sides(monitor, limits))


def _evidence(monitor: Monitor) -> Picture:
    enough = number(1 / monitor.alpha)
    seen = "does not reach" if monitor.alarm is None else f"at row {monitor.alarm.row:,} reaches"
    return Picture(
        "evidence",
        "The evidence, row by row",
        f"The e-value: what a capital of 1 has become that was bet against the model, on a scale of powers of ten. While a model "
        f"is calibrated no bet wins on average, and the line ever reaches {enough} with probability at most "
        f"{percent(monitor.alpha)}. A line that goes down says that bets lose.",
        f"Line of the e-value over {how_many(monitor.n, 'row')}, which {seen} the {enough} of an alarm; it ends at "
        f"{evalue(monitor.log_evalue)}.",
        EvidenceDisplay.from_monitor(monitor).tables,
    )


def _windows(monitor: Monitor, limits: Limits) -> Picture:
    assert monitor.history is not None
    tables = WindowsDisplay.from_monitor(
        monitor, level=limits.level, n_resamples=limits.n_resamples, seed=limits.seed
    ).tables
    first, second = (name for name in tables if name not in ("marks", "settings"))
    windows, level = tables[first].n_rows, f"{100 * limits.level:g} %"
    by_chance = f": of {windows} such windows {number(round((1 - limits.level) * windows, 1))} leave it by chance"
    return Picture(
        "windows",
        _title(monitor),
        f"{_meaning(monitor)} The darker band holds a calibrated model in {level} of windows, each by "
        f"itself{by_chance if windows > 1 else ''}. The paler band holds all windows and both panels at once in {level} of "
        "calibrated streams; only what leaves that one is marked. Windows describe: the alarm does not depend on them.",
        f"Control chart of {how_many(windows, 'window')}, {first} above and {second} below. Beyond the band of all windows at "
        f"once: {int(tables[first]['beyond'].sum())} of the {first}, {int(tables[second]['beyond'].sum())} of the {second}.",
        tables,
    )


def _title(monitor: Monitor) -> str:
    assert monitor.history is not None
    rows = monitor.history.spans.width
    name = shown_name(monitor)
    return f"Windows of {how_many(rows, 'row')}{f': {name}' if name else ''}"


def _meaning(monitor: Monitor) -> str:
    """What the two panels show."""
    if is_of_pit(monitor):
        return (
            "Bias and spread are the mean and the standard deviation of the normal scores of the outcomes' PIT values in their "
            "forecasts: 0 and 1 if forecasts are calibrated."
        )
    assert monitor.bets is not None
    parts = "in sixteen parts of the range of probabilities"
    if strongest_class(monitor) is not None:
        return (
            "Above, the mean probability of the class that the alarm is about less how often it happened; below, the mean distance "
            f"of the confidence in the favoured class from how often it was right, {parts}."
        )
    claim = {
        "multi-class": "the mean confidence in the favoured class less how often it was right",
        "multi-label": "the mean probability of the label less how often it applied",
    }.get(monitor.bets.kind, "the mean probability less how often it happened")
    return f"Above, {claim}; below, the mean distance of both {parts}."


def _drift(monitor: Monitor, limits: Limits) -> Picture:
    tables = DriftDisplay.from_monitor(
        monitor, level=limits.level, n_resamples=limits.n_resamples, seed=limits.seed
    ).tables
    cells, noun = tables["cells"], str(tables["settings"]["noun"][0])
    places = {
        "claim": "parts of the range of probabilities",
        "class": "classes",
        "label": "labels",
        "level": "PIT values of outcomes",
    }[noun]
    framed = ", ".join(dict.fromkeys(str(name) for name in cells["place"][cells["beyond"]].tolist()))
    at = f", at {shortened(framed, 400)}" if framed else ""
    return Picture(
        "drift",
        "Where it goes wrong, and when",
        f"Windows by {places}: what was claimed less what happened. Orange: claimed too much; blue: too little. Framed cells are "
        f"beyond chance; a calibrated stream has none with chance {100 * limits.level:g} %.",
        f"Map of {cells.n_rows} cells, windows by {places}; {int(cells['beyond'].sum())} are beyond chance{at}.",
        tables,
    )


def _sides(monitor: Monitor, limits: Limits) -> Picture:
    """Reliability diagrams or histograms of levels: one, or two where there is a before."""
    before, after = sides_of(monitor)
    one = "pit_histogram" if is_of_pit(monitor) else "reliability"
    how = (
        "Each bar is the share of outcomes at that level of their forecast, even where it is calibrated. High ends: too sure; a "
        "hump: too timid; a slope: too low where it rises."
        if is_of_pit(monitor)
        else "Each mark is a part of the range of probabilities; larger marks hold more rows. On the dashed line, claims come "
        "true as often as stated. A calibrated model leaves the band in about one part of twenty."
    )
    if before is None:
        return Picture(
            one, _heading(one), how, f"All windows: {in_words(monitor, after)}.", tables_of(monitor, after, limits)
        )
    tables = paired(tables_of(monitor, before, limits), tables_of(monitor, after, limits))
    assert monitor.alarm is not None
    return Picture(
        "before_after",
        f"{_heading(one)}, before and after about row {monitor.alarm.since:,}",
        f"{how} Windows before the row since which evidence grew, and those after it.",
        f"Before: {in_words(monitor, before)}. After: {in_words(monitor, after)}.",
        tables,
    )


def _heading(kind: str) -> str:
    return "Where outcomes lie in their forecasts" if kind == "pit_histogram" else "What was claimed, what happened"


MIN_ROWS = 50
"""Windows of fewer rows tell little."""


def stream_notes(monitor: Monitor, bad_lines: int) -> tuple[str, ...]:
    """About lines, windows and the evidence."""
    found = []
    if bad_lines:
        lines = how_many(bad_lines, "line could not be used and is", "lines could not be used and are")
        found.append(f"{lines} left out; rows are counted without.")
    if math.isinf(monitor.peak):
        found.append("Something happened that had been given probability zero: one such row is evidence without end.")
    if monitor.history is not None:
        found += _about_windows(monitor, monitor.history)
    if monitor.bets is not None and monitor.bets.kind == "multi-label":
        found.append(
            "Labels of a row may depend on each other; each is tested by itself, and the picture shows one of them."
        )
    if monitor.n:
        found.append(
            "The test holds where each prediction was made before its outcome was known, and rows come in that order; outcomes "
            "known together that hang together, as those of one day, are not covered."
        )
    return tuple(found)


def _about_windows(monitor: Monitor, history: History) -> list[str]:
    found = []
    start, width = history.spans.start, history.spans.width
    if start:
        found.append(f"Windows begin after row {start:,}: of earlier rows the state had kept the evidence alone.")
    if width > monitor.window:
        found.append(
            f"Windows had {monitor.window:,} rows at first. As there came more than {history.spans.most}, neighbours were put "
            f"together, so that memory does not grow: each has {width:,} now."
        )
    if width < MIN_ROWS:
        found.append(f"Windows of {how_many(width, 'row')} tell little: their bands are wide.")
    return found


def to_html(report: "MonitorReport") -> str:
    """The page, in the frame that all pages share."""
    there = {
        "numbers": ("Numbers", True),
        "pictures": ("Pictures", report.pictures),
        "slices": ("Tables", report.sections),
        "notes": ("Data", True),
        "methods": ("Methods", True),
    }
    return rendered(
        "monitor.html.jinja",
        report,
        download="calibrant-monitor.json",
        parts={anchor: words for anchor, (words, part) in there.items() if part},
        charts=charts_of(report.pictures),
    )
