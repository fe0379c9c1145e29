"""The report as plain data: what it says, and the steps that make it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Generic, Literal, Self, TypeAlias, TypeVar

import numpy as np

from calibrant._files import write_whole
from calibrant._validate import InputError
from calibrant.inference.certificate import Certificate
from calibrant.results import SCHEMA, Finding, Interval, Result, Table, how_many, number, percent
from calibrant.results.result import plain_data


class Page(Result):
    """A result that has a page: what reports of every kind share."""

    title: str
    verdict: "Verdict"

    def to_html(self) -> str:
        """One self-contained page."""
        raise NotImplementedError

    def save(self, path: str | Path) -> Path:
        """Write the page to a file; by the ending of its name the data (.json), a comment (.md) or a print of it (.pdf)."""
        path = Path(path)
        check_page_ending(path, "path")
        form = path.suffix.lower()
        if form == ".pdf":
            from calibrant.reports.render.pdf import to_pdf

            write_whole(path, to_pdf(self.to_html()))
        else:
            text = {".json": self.to_json, ".md": self.to_markdown}.get(form, self.to_html)()
            write_whole(path, text)
        return path

    def _lines(self) -> list[tuple[str, str]]:
        return [(self.title, self.verdict.headline), *(("", sentence) for sentence in self.verdict.evidence)]


PAGE_ENDINGS = (".html", ".htm", ".pdf", ".md", ".json", "")
"""Of files that a page can be written to; what has no ending is HTML."""


def check_page_ending(path: Path, name: str) -> None:
    """Refuse a file of a kind that pages are not."""
    if path.suffix.lower() not in PAGE_ENDINGS:
        raise InputError(f"{name} must end in .html, .pdf, .md or .json; got {str(path)!r}")


SCORES = ("brier", "log", "crps", "energy", "pinball")
"""Keys of numbers that are scores."""


@dataclass(frozen=True)
class KeyNumber:
    """One number that matters: its value, how sure it is, and what a calibrated model would show.

    ``key`` says what is measured, for programs: ``label`` and ``meaning`` are for people. Where ``unit`` is "fraction", values lie
    between 0 and 1, and are shown in percent. ``estimator`` is written with its settings, ``estimator_name`` without.
    ``null_band`` and ``pvalue`` are ``None`` where resampling would take too long, the band also where signs of clusters take its
    place;
    ``withheld`` says why there is no interval where one might be expected, ``ideal`` what a calibrated model has, where that is
    one number.

    >>> from calibrant import evaluate
    >>> first = evaluate([0, 1] * 20, [0.1, 0.9] * 20, advice=False).numbers[0]
    >>> first.text(0.1), first.unit
    ('10.0 %', 'fraction')
    """

    label: str
    meaning: str
    value: float
    unit: Literal["fraction", "number"]
    interval: Interval | None
    null_band: Interval | None
    pvalue: float | None
    estimator: str
    estimator_name: str
    key: str
    withheld: str | None = None
    ideal: float | None = None

    @property
    def misses_ideal(self) -> bool:
        """Whether the interval leaves out what a calibrated model has."""
        return self.ideal is not None and self.interval is not None and self.ideal not in self.interval

    @property
    def is_score(self) -> bool:
        """Whether it is the mean of a proper scoring rule."""
        return self.key in SCORES

    @property
    def noun(self) -> str:
        """Its label within a sentence."""
        return self.label if self.label[:2].isupper() else self.label[:1].lower() + self.label[1:]

    def text(self, value: float) -> str:
        """A value in this number's unit."""
        if self.unit == "fraction":
            return percent(value)
        return f"{value:.3g}" if 0 < abs(value) < 0.0995 else f"{value:.3f}"

    def band(self) -> str:
        """What a calibrated model would show, in words."""
        return "" if self.null_band is None else f"{self.text(self.null_band.low)} to {self.text(self.null_band.high)}"

    def line(self) -> str:
        """The value, what a calibrated model would show, and how likely that is to go so far."""
        if self.pvalue is None:
            return self.text(self.value)
        if self.null_band is None:
            return f"{self.text(self.value)}  (p = {number(self.pvalue)})"
        return f"{self.text(self.value)}  (if calibrated {self.band()}, p = {number(self.pvalue)})"

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        first = ("key", "label", "value", "unit", "interval", "null_band", "pvalue", "estimator", "estimator_name")
        return plain_data(self, *first, "meaning", "withheld", "ideal")


@dataclass(frozen=True)
class Verdict:
    """The answer in words: one sentence, its evidence, and its tone.

    ``pvalue`` is that of all tests together. ``finding`` says in one word what was found, for programs
    (:class:`~calibrant.results.Finding`); pages that judge something else leave both out.

    >>> from calibrant import evaluate
    >>> verdict = evaluate([0, 1] * 20, [0.1, 0.9] * 20, advice=False).verdict
    >>> verdict.is_alarm, verdict.finding.name
    (True, 'UNDER_CONFIDENT')
    """

    tone: Literal["good", "unsure", "bad"]
    headline: str
    evidence: tuple[str, ...]
    pvalue: float | None = None
    finding: Finding | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return plain_data(self)

    @property
    def is_alarm(self) -> bool:
        """Whether something was found that calibrated predictions show in at most 5 % of cases."""
        return self.finding is not None and self.finding.is_alarm


@dataclass(frozen=True, eq=False)
class Section:
    """A table of the report: its heading, what its rows are, and what to make of it."""

    title: str
    noun: str
    remark: str
    table: Table

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return plain_data(self)


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
        words = plain_data(self, "kind", "title", "caption", "description", "tables")
        return words | words.pop("tables")


class Reason(StrEnum):
    """Why advice offers no map.

    >>> Reason.TOO_FEW_ROWS in Reason
    True
    """

    NOTHING_WRONG = "nothing wrong"
    TOO_FEW_ROWS = "too few rows"
    NO_RECALIBRATOR = "no recalibrator"
    SLICE = "slice"
    LITTLE = "little"
    UNSURE = "unsure"
    UNMENDED = "unmended"

    def __repr__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, eq=False)
class Advice:
    """What to do: which recalibrator helps most on rows it has not seen, how much it removes, and how to learn it.

    ``candidates`` has a row per recalibrator, the best first; ``command`` and ``code`` learn that one, in a shell and in Python.
    Where there is none, ``reason`` says why, for programs.

    >>> from calibrant import evaluate
    >>> advice = evaluate([0, 1, 1] * 40, [0.9, 0.2, 0.8] * 40).advice
    >>> advice.candidates is None, advice.headline != ""
    (False, True)
    """

    headline: str
    sentences: tuple[str, ...]
    candidates: Table | None
    command: str | None
    code: str | None
    reason: Reason | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return plain_data(self)


@dataclass(frozen=True, eq=False, repr=False)
class ReportData(Page):
    """Everything the page shows, as data: what :class:`~calibrant.reports.Report` renders."""

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
    certificate: Certificate | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        head = {"schema": SCHEMA, "kind": "report", "title": self.title, "problem": self.kind}
        parts = ("n", "verdict", "numbers", "subject", "pictures", "sections", "advice", "certificate")
        return head | plain_data(self, *parts, "notes", "settings")

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


E = TypeVar("E")


class Step(str):
    """The name of a step of work, as people read it, with the work that is expected of it.

    Work is in shares of the time that a report on 100,000 rows of ten classes takes, where one waits; most steps take next to none.

    >>> Step("999 resamples", 50.0).work, Step("By resamples").work
    (50.0, 0.3)
    """

    work: float

    def __new__(cls, name: str, work: float = 0.3) -> Self:
        """A text that carries its work."""
        step = super().__new__(cls, name)
        step.work = work
        return step


@dataclass(frozen=True, eq=False)
class Outline(Generic[E]):
    """The steps of a report: first the evidence, then the numbers, pictures and tables that rest on it.

    ``judge`` makes the verdict of evidence and numbers; ``notes`` are about the data, whose rows may ``look_dependent``.
    """

    subject: str
    gather: tuple[Step, Callable[[], E]]
    numbers: Sequence[tuple[Step, Callable[[E], KeyNumber]]]
    pictures: Sequence[tuple[Step, Callable[[E], Picture]]]
    sections: Sequence[tuple[Step, Callable[[E], Section]]]
    judge: Callable[[E, Sequence[KeyNumber]], Verdict]
    notes: Callable[[], Sequence[str]]
    look_dependent: bool = False

    @property
    def steps(self) -> list[Step]:
        """Their names, in order."""
        return [self.gather[0], *(step for part in (self.numbers, self.pictures, self.sections) for step, _ in part)]


Progress: TypeAlias = Callable[[Step, float, float], None]
"""Called before each step with its name, the work that is done and the work of all steps, and once when all is done."""

LAST = Step("Done", 0.0)


def announcer(steps: Sequence[Step], progress: Progress) -> Callable[[Step], None]:
    """A function that tells of each step before it begins, in the order of ``steps``, and at last that all is done.

    >>> steps = [Step("999 resamples", 50.0), Step("Brier score")]
    >>> tell = announcer(steps, print)
    >>> for step in (*steps, LAST):
    ...     tell(step)
    999 resamples 0.0 50.3
    Brier score 50.0 50.3
    Done 50.3 50.3
    """
    total, done = sum(step.work for step in steps), 0.0

    def tell(step: Step) -> None:
        nonlocal done
        progress(step, total if step is LAST else done, total)
        done += step.work

    return tell
