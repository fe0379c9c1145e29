"""A watched stream as a page: is the model still calibrated, since when not, which way, and where."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from calibrant._validate import InputError, check_count
from calibrant.monitoring.control import Limits
from calibrant.monitoring.monitor import Alarm, Monitor
from calibrant.reports.build import versions
from calibrant.reports.model import Picture, Section, Verdict
from calibrant.reports.monitor_notes import stream_notes
from calibrant.reports.monitor_pictures import stream_pictures
from calibrant.reports.monitor_sections import stream_sections
from calibrant.reports.monitor_verdict import evalue, judge_stream
from calibrant.reports.saving import Page
from calibrant.results import SCHEMA, how_many, number, percent
from calibrant.results.markdown import details, escaped, plain_text, table
from calibrant.results.notebook import NUMBER, TABLE, TEXT


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
        from calibrant.reports.monitor_page import to_html

        return to_html(self)

    def to_markdown(self) -> str:
        """Verdict, evidence and numbers in GitHub's Markdown; notes and settings to unfold."""
        from calibrant.reports.markdown import MARKS

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
        from calibrant.reports.notebook import summary

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
    ``n_resamples`` how many redraws they rest on. Nothing of the stream is read again: all is put together from what the
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
        "redraws": limits.n_resamples,
    }
