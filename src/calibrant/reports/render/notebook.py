"""The report in a notebook: verdict, numbers, first picture, what stands out, what to do."""

import re
from collections.abc import Sequence
from html import escape

from calibrant._validate import InputError
from calibrant.reports.core.model import Advice, Picture, ReportData, Verdict
from calibrant.reports.render.html import visible
from calibrant.reports.render.markdown import standouts
from calibrant.results import how_many, number
from calibrant.results.text import LABEL, NUMBER, TABLE, TEXT, TONES, frame, plain_text

MAX_SLICES = 5
"""Flagged slices that are shown."""

# Pictures take the colours of the page they stand in. Here that is the notebook, whose theme nobody tells: ink is the colour of
# its text, and the rest are that colour thinned or hues that can be seen on white and on black.
COLOURS = {
    "--ink": "currentColor",
    "--muted": "color-mix(in srgb, currentColor 65%, transparent)",
    "--grid": "color-mix(in srgb, currentColor 15%, transparent)",
    "--line": "color-mix(in srgb, currentColor 15%, transparent)",
    "--band": "color-mix(in srgb, currentColor 40%, transparent)",
    "--card": "transparent",
    "--paper": "transparent",
    "--accent": "#3d8bd4",
    **{f"--{name}": colour for name, colour in TONES.items()},
    "--low": "#3d8bd4",
    "--mid": "color-mix(in srgb, currentColor 8%, transparent)",
    "--high": "#e0823d",
}


def to_notebook(report: ReportData) -> str:
    """A summary that fits a cell; the page, with all pictures and tables, is a file: ``report.save("report.html")``."""
    subject = f" · {_short(report.subject)}" if report.subject else ""
    left = f"{_numbers(report)}{_standing_out(report)}{_advice(report.advice)}"
    about = f"{how_many(report.n, 'row')} · {_short(report.kind)}{subject}"
    return summary(report.title, about, report.verdict, report.pictures, left)


def summary(title: str, about: str, verdict: Verdict, pictures: Sequence[Picture], left: str) -> str:
    """The verdict over what stands beside the first picture."""
    evidence = "".join(f"<div>{escape(sentence)}</div>" for sentence in verdict.evidence)
    colours = ";".join(f"{name}:{colour}" for name, colour in COLOURS.items())
    shown = frame(
        f"<div style='{colours};border-left:4px solid {TONES[verdict.tone]};padding-left:14px;max-width:1000px'>"
        f"<div style='opacity:.7'>{_short(title)} · {about}</div>"
        f"<div style='font-size:17px;font-weight:600;margin:2px 0 6px'>{escape(verdict.headline)}</div>{evidence}"
        "<div style='display:flex;flex-wrap:wrap;gap:8px 28px;margin-top:10px;align-items:flex-start'>"
        f"<div style='flex:1 1 420px;min-width:0;overflow-x:auto'>{left}</div>{_picture(verdict, pictures)}</div>"
        "<div style='opacity:.7;margin-top:8px'>All pictures, tables and settings: "
        "<code>report.save(&quot;report.html&quot;)</code></div></div>"
    )
    return visible(shown)


def _numbers(report: ReportData) -> str:
    rows = []
    for x in report.numbers:
        known = [] if x.null_band is None else [f"if calibrated {x.band()}"]
        known += [] if x.pvalue is None else [f"p = {number(x.pvalue)}"]
        rows.append(
            f"<tr title='{escape(x.meaning)}'><td style='{TEXT}'>{escape(x.label)}"
            f"<div style='opacity:.7;font-size:12px'>{', '.join(known)}</div></td>"
            f"<td style='{NUMBER}'><b>{x.text(x.value)}</b></td></tr>"
        )
    return f"<table style='{TABLE}'>{''.join(rows)}</table>"


def _standing_out(report: ReportData) -> str:
    found = standouts(report)
    if not found:
        return ""
    rows = [
        f"<tr><th style='{LABEL};white-space:normal'>{_short(x.section)}: <bdi>{_short(x.group)}</bdi></th>"
        f"<td style='{NUMBER}'>{x.cells.get('error', '')}</td><td style='{TEXT};opacity:.7'>p = {number(x.pvalue)}</td></tr>"
        for x in found[:MAX_SLICES]
    ]
    more = f"<div style='opacity:.7'>and {len(found) - MAX_SLICES} more</div>" if len(found) > MAX_SLICES else ""
    return f"<div style='margin-top:10px;font-weight:600'>Stands out</div><table style='{TABLE}'>{''.join(rows)}</table>{more}"


def _advice(advice: Advice | None) -> str:
    if advice is None:
        return ""
    code = advice.code or advice.command
    sentences = "".join(f"<div>{escape(sentence)}</div>" for sentence in advice.sentences)
    box = (
        "margin:6px 0 0;padding:8px 10px;border:1px solid var(--line);border-radius:6px;overflow-x:auto;font-size:12px"
    )
    shown = "" if code is None else f"<pre style='{box};background:none;color:inherit'>{escape(code)}</pre>"
    head = f"<div style='margin-top:10px'><b>What to do:</b> {escape(advice.headline)}</div>"
    return f"{head}{sentences}{shown}"


def _picture(verdict: Verdict, pictures: Sequence[Picture]) -> str:
    """The first picture, where what draws it is installed."""
    if not pictures:
        return ""
    from calibrant.reports.render.html import drawn

    first = pictures[0]
    try:
        chart = drawn(first)
    except (InputError, ModuleNotFoundError):  # matplotlib is optional
        return ""
    # A style sheet within a picture would hold for the whole notebook.
    chart = re.sub(r"<style.*?</style>", "", chart, flags=re.DOTALL)
    chart = chart.replace("<svg ", "<svg style='max-width:100%;height:auto;stroke-linejoin:round' ", 1)
    label = escape(f"{first.description} {verdict.headline}")
    return (
        "<div style='flex:1 1 320px;max-width:460px;min-width:0'>"
        f"<div style='opacity:.7'>{escape(first.title)}</div><div role='img' aria-label='{label}'>{chart}</div></div>"
    )


def _short(text: str) -> str:
    return escape(plain_text(text))
