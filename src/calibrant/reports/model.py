"""The report as plain data: what is said, before how it looks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibrant.reports.saving import Page
from calibrant.results import SCHEMA, Interval, Table, how_many, number, percent


@dataclass(frozen=True)
class KeyNumber:
    """One number that matters: its value, how sure it is, and what a calibrated model would show.

    ``null_band`` and ``pvalue`` are ``None`` where redrawing would take too long; ``withheld`` says why there is no interval
    where one might be expected.
    """

    label: str
    meaning: str
    value: float
    unit: Literal["percent", "number"]
    interval: Interval | None
    null_band: Interval | None
    pvalue: float | None
    estimator: str
    withheld: str | None = None

    def text(self, value: float) -> str:
        """A value in this number's unit."""
        if self.unit == "percent":
            return percent(value)
        return f"{value:.3g}" if 0 < abs(value) < 0.0995 else f"{value:.3f}"

    def band(self) -> str:
        """What a calibrated model would show, in words."""
        return "" if self.null_band is None else f"{self.text(self.null_band.low)} to {self.text(self.null_band.high)}"

    def line(self) -> str:
        """The value, what a calibrated model would show, and how likely that is to go so far."""
        if self.pvalue is None:
            return self.text(self.value)
        return f"{self.text(self.value)}  (if calibrated {self.band()}, p = {number(self.pvalue)})"

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "label": self.label,
            "value": self.value,
            "unit": self.unit,
            "interval": None if self.interval is None else self.interval.to_dict(),
            "null_band": None if self.null_band is None else self.null_band.to_dict(),
            "pvalue": self.pvalue,
            "estimator": self.estimator,
            "meaning": self.meaning,
            "withheld": self.withheld,
        }


@dataclass(frozen=True)
class Verdict:
    """The answer in words: one sentence, its evidence, and its tone.

    ``pvalue`` is that of all tests together. ``finding`` says in one word what was found, for programs: ``none``,
    ``too few rows``, ``over-confident``, ``under-confident``, ``too high``, ``too low``, ``too narrow``, ``too wide``,
    ``class``, ``label``, ``local``, ``slice``, ``mixed``; pages that judge something else leave both out.
    """

    tone: Literal["good", "unsure", "bad"]
    headline: str
    evidence: tuple[str, ...]
    pvalue: float | None = None
    finding: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "tone": self.tone,
            "headline": self.headline,
            "evidence": list(self.evidence),
            "pvalue": self.pvalue,
            "finding": self.finding,
        }

    @property
    def is_alarm(self) -> bool:
        """Whether something was found that calibrated predictions show in at most 5 % of cases."""
        return self.finding not in (None, "none", "too few rows")


@dataclass(frozen=True, eq=False)
class Section:
    """A table of the report: its heading, what its rows are, and what to make of it."""

    title: str
    noun: str
    remark: str
    table: Table

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"title": self.title, "noun": self.noun, "remark": self.remark, "table": self.table.to_dict()}


@dataclass(frozen=True, eq=False)
class Picture:
    """A picture of the report: its heading, how to read it, what it shows in words, and the tables it is drawn from."""

    kind: str
    title: str
    caption: str
    description: str
    tables: Mapping[str, Table]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw: a line through one point, or a map of cells with too few rows."""
        if self.kind == "witness":
            return bool(np.isnan(self.tables["cells"]["gap"]).all())
        curve = self.tables.get("curve")
        return self.kind == "reliability" and curve is not None and "weight" not in curve and curve.n_rows < 2

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        tables = {name: table.to_dict() for name, table in self.tables.items()}
        words = {"title": self.title, "caption": self.caption, "description": self.description}
        return {"kind": self.kind, **words, **tables}


@dataclass(frozen=True, eq=False)
class Advice:
    """What to do: which recalibrator helps most on rows it has not seen, how much it removes, and how to learn it.

    ``candidates`` has a row a recalibrator, the best first; ``command`` and ``code`` learn that one, in a shell and in Python.
    """

    headline: str
    sentences: tuple[str, ...]
    candidates: Table | None
    command: str | None
    code: str | None

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "headline": self.headline,
            "sentences": list(self.sentences),
            "candidates": None if self.candidates is None else self.candidates.to_dict(),
            "command": self.command,
            "code": self.code,
        }


@dataclass(frozen=True, eq=False, repr=False)
class ReportData(Page):
    """Everything the page shows, as data: what :class:`~calibrant.reports.report.Report` renders."""

    title: str
    n: int
    kind: str
    subject: str
    verdict: Verdict
    numbers: tuple[KeyNumber, ...]
    pictures: tuple[Picture, ...]
    sections: tuple[Section, ...]
    notes: tuple[str, ...]
    settings: Mapping[str, Any]
    advice: Advice | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "schema": SCHEMA,
            "kind": "report",
            "title": self.title,
            "problem": self.kind,
            "n": self.n,
            "verdict": self.verdict.to_dict(),
            "numbers": [x.to_dict() for x in self.numbers],
            "subject": self.subject,
            "pictures": [picture.to_dict() for picture in self.pictures],
            "sections": [section.to_dict() for section in self.sections],
            "advice": None if self.advice is None else self.advice.to_dict(),
            "notes": list(self.notes),
            "settings": dict(self.settings),
        }

    def picture(self, kind: str) -> Picture:
        """The picture of this kind."""
        return next(picture for picture in self.pictures if picture.kind == kind)

    def _lines(self) -> list[tuple[str, str]]:
        return [(self.title, self.verdict.headline), *((x.label, x.line()) for x in self.numbers)]

    def __repr__(self) -> str:
        (_, headline), *numbers = self._lines()
        width = max(len(label) for label, _ in numbers)
        title = f"{self.title} ({self.kind}, {how_many(self.n, 'row')})"
        lines = [f"  {label:<{width}}  {text}" for label, text in numbers]
        return "\n".join([title, headline, *(f"  {sentence}" for sentence in self.verdict.evidence), *lines])
