"""The report in GitHub's Markdown, for a comment on a pull request, and the rows it flags."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from calibrant.reports.core.model import Advice, KeyNumber, ReportData, Section
from calibrant.results import Table, how_many, number, percent
from calibrant.results.text import details, escaped, table

LEVEL = 0.05
"""A row is flagged where its p-value, which allows for the number of rows, is not above this."""

SHARES = ("claimed", "happened", "error")
"""Columns that are shares."""


class Standout(NamedTuple):
    """A flagged row: where it stands, its group, and its other cells as text, by their heading."""

    section: str
    group: str
    pvalue: float
    cells: Mapping[str, str]


class Texts(NamedTuple):
    """A table as text: its headings, of which a caller's column may repeat one, and its rows."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def standouts(report: ReportData) -> list[Standout]:
    """The flagged rows of all tables, those with the strongest evidence first."""
    found = [standout for section in report.sections for standout in _flagged(section)]
    return sorted(found, key=lambda standout: standout.pvalue)


def as_text(section: Section) -> Texts:
    """A table of the report with its cells as text and headings of words.

    >>> from calibrant.results import Table
    >>> table = Table(group=["a"], rows=[1200], claimed=[0.9], happened=[0.8], error=[0.1], pvalue=[0.004])
    >>> as_text(Section("By error", "error", "", table)).headings
    ('error', 'rows', 'claimed', 'happened', 'error', 'p')
    """
    found = [(str(row["group"]), cells(row)) for row in section.table.rows()]
    names = found[0][1] if found else cells(dict.fromkeys(section.table, 0.0))
    return Texts((section.noun, *names), tuple((group, *row.values()) for group, row in found))


def cells(row: Mapping[str, Any]) -> dict[str, str]:
    """A row of a table of the report as text without its group; what else it has than the usual is left out."""
    found = {"rows": number(row["rows"])}
    found |= {name: percent(row[name]) for name in SHARES if name in row}
    if "null_low" in row and "null_high" in row:
        found["if calibrated"] = f"{percent(row['null_low'])} to {percent(row['null_high'])}"
    return {**found, "p": number(row["pvalue"])} if "pvalue" in row else found


def _flagged(section: Section) -> Iterator[Standout]:
    for row in section.table.rows():
        if row.get("pvalue", 1.0) <= LEVEL:
            yield Standout(section.title, str(row["group"]), float(row["pvalue"]), cells(row))


MARKS = {"good": "✅", "unsure": "⚠️", "bad": "❌"}

MAX_SLICES = 5
"""Flagged slices that are shown before the fold."""

MAX_LETTERS = 600
"""Letters of a sentence: those of calibrant are shorter, names in them may be long."""


def to_markdown(report: ReportData) -> str:
    """Verdict, numbers, what stands out and what to do; all tables, notes and settings to unfold."""
    return "\n\n".join(part for part in _parts(report) if part) + "\n"


def _parts(report: ReportData) -> Iterator[str]:
    yield from opening(report, report.subject)
    yield _numbers(report.numbers)
    yield _standing_out(report)
    yield "" if report.advice is None else _advice(report.advice)
    yield details("All slices, notes and settings", "\n\n".join(_folded(report)))


def opening(page: Any, subject: str = "") -> Iterator[str]:
    """How a comment on a page with a verdict begins: the headline, what was looked at, and the evidence."""
    yield f"### {MARKS[page.verdict.tone]} {_sentence(page.verdict.headline)}"
    about = [escaped(page.title), how_many(page.n, "row"), escaped(page.kind), *([escaped(subject)] if subject else [])]
    yield " · ".join(about)
    yield "\n".join(f"- {_sentence(sentence)}" for sentence in page.verdict.evidence)


def _sentence(text: str) -> str:
    return escaped(text, longest=MAX_LETTERS)


def _numbers(numbers: tuple[KeyNumber, ...]) -> str:
    rows = []
    for x in numbers:
        interval = "" if x.interval is None else f"{x.text(x.interval.low)} to {x.text(x.interval.high)}"
        pvalue = "" if x.pvalue is None else number(x.pvalue)
        rows.append([escaped(x.label), f"**{x.text(x.value)}**", interval, x.band(), pvalue])
    withheld = [
        f"{escaped(x.label)} has no interval: {_sentence(x.withheld)}" for x in numbers if x.withheld is not None
    ]
    return "\n\n".join(
        [table(["", "value", "95 % interval", "if calibrated", "p"], rows, [False, *[True] * 4]), *withheld]
    )


def _standing_out(report: ReportData) -> str:
    """The flagged slices of all tables, strongest evidence first."""
    found = standouts(report)
    if not found:
        return ""
    headings = [name for name in found[0].cells if all(name in x.cells for x in found[:MAX_SLICES])]
    rows = [[escaped(f"{x.section}: {x.group}"), *(x.cells[name] for name in headings)] for x in found[:MAX_SLICES]]
    more = f"\n\nand {len(found) - MAX_SLICES} more below" if len(found) > MAX_SLICES else ""
    return f"**Stands out**\n\n{table(['', *headings], rows, [False, *[True] * len(headings)])}{more}"


def _advice(advice: Advice) -> str:
    """What to do, with its command in a box to copy from."""
    said = [f"**What to do:** {_sentence(advice.headline)}", " ".join(map(_sentence, advice.sentences))]
    if advice.command is not None:
        said.append(_fenced(advice.command))
    return "\n\n".join(part for part in said if part)


def _fenced(command: str) -> str:
    """Code in a fence that it cannot end."""
    fence = "```"
    while fence in command:
        fence += "`"
    return f"{fence}sh\n{command}\n{fence}"


def _folded(report: ReportData) -> Iterator[str]:
    for section in report.sections:
        yield f"**{escaped(section.title)}**\n\n{_sentence(section.remark)}"
        yield _right(as_text(section))
    if report.advice is not None and report.advice.candidates is not None:
        yield f"**Recalibrators tried**\n\n{report.advice.candidates.to_markdown()}"
    if report.notes:
        yield "\n".join(["**About the data**", "", *(f"- {_sentence(note)}" for note in report.notes)])
    settings = Table(setting=list(report.settings), value=[str(value) for value in report.settings.values()])
    yield f"**How this was computed**\n\n{settings.to_markdown()}"


def _right(texts: Texts) -> str:
    """A table of text whose columns but the first hold numbers."""
    rows = [[escaped(cell) for cell in row] for row in texts.rows]
    headings = [escaped(name) for name in texts.headings]
    return table(headings, rows, [False, *[True] * (len(headings) - 1)])
