"""The report in GitHub's Markdown, for a comment on a pull request."""

from collections.abc import Iterator

from calibrant.reports.model import Advice, KeyNumber, ReportData
from calibrant.reports.standouts import Texts, as_text, standouts
from calibrant.results import Table, how_many, number
from calibrant.results.markdown import details, escaped, table

MARKS = {"good": "✅", "unsure": "⚠️", "bad": "❌"}

MOST = 5
"""Flagged slices that are shown before the fold."""

LONG = 600
"""Letters of a sentence: those of calibrant are shorter, names in them may be long."""


def to_markdown(report: ReportData) -> str:
    """Verdict, numbers, what stands out and what to do; all tables, notes and settings to unfold."""
    return "\n\n".join(part for part in _parts(report) if part) + "\n"


def _parts(report: ReportData) -> Iterator[str]:
    verdict = report.verdict
    yield f"### {MARKS[verdict.tone]} {_sentence(verdict.headline)}"
    subject = f" · {escaped(report.subject)}" if report.subject else ""
    yield f"{escaped(report.title)} · {how_many(report.n, 'row')} · {escaped(report.kind)}{subject}"
    yield "\n".join(f"- {_sentence(sentence)}" for sentence in verdict.evidence)
    yield _numbers(report.numbers)
    yield _standing_out(report)
    yield "" if report.advice is None else _advice(report.advice)
    yield details("All slices, notes and settings", "\n\n".join(_folded(report)))


def _sentence(text: str) -> str:
    return escaped(text, longest=LONG)


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
    headings = [name for name in found[0].cells if all(name in x.cells for x in found[:MOST])]
    rows = [[escaped(f"{x.section}: {x.group}"), *(x.cells[name] for name in headings)] for x in found[:MOST]]
    more = f"\n\nand {len(found) - MOST} more below" if len(found) > MOST else ""
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
