"""The report as one self-contained page."""

import base64
import hashlib
from importlib.resources import files
from typing import Any

from calibrant._validate import InputError
from calibrant.reports.figures import charts_of
from calibrant.reports.legible import json_for_script, shortened, unbroken, visible
from calibrant.reports.model import KeyNumber, ReportData
from calibrant.reports.tables import candidate_columns, columns_of, flags_of, pvalue
from calibrant.results import Result, how_many


def to_html(report: ReportData) -> str:
    """The page, with its style, pictures and data inside; it asks the network for nothing."""
    charts = charts_of(report.pictures, after=1)
    return rendered(
        "page.html.jinja",
        report,
        parts=_parts(report),
        charts=charts,
        scales=[_scale(x) for x in report.numbers],
        beside=bool(charts) and not charts[0].is_wide,
    )


def rendered(template: str, report: Result, *, download: str = "calibrant-report.json", **values: Any) -> str:
    """A template of this folder, filled in: its style and script inside, the data once, and nothing from elsewhere."""
    try:
        import jinja2
        from markupsafe import Markup
    except ModuleNotFoundError as error:
        raise InputError(f"the page needs {error.name}: pip install 'calibrant[cli]'") from error
    here = files("calibrant.reports")
    loader = jinja2.FunctionLoader(lambda name: here.joinpath(name).read_text(encoding="utf-8"))
    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        loader=loader,
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    environment.filters.update(FILTERS)
    script = here.joinpath("script.js").read_text(encoding="utf-8")
    return environment.get_template(template).render(
        report=report,
        download=download,
        script=Markup(script),
        policy=_policy(script),
        data=Markup(json_for_script(report)),
        **values,
    )


FILTERS = {
    "columns": columns_of,
    "how_many": how_many,
    "candidate_columns": candidate_columns,
    "flags": flags_of,
    "pvalue": pvalue,
    "shortened": shortened,
    "unbroken": unbroken,
}
"""What templates may do with a value."""


def _parts(report: ReportData) -> dict[str, str]:
    """The contents: anchors and the words of their links."""
    there = {
        "numbers": ("Numbers", report.numbers),
        "pictures": ("Pictures", report.pictures),
        "slices": ("Slices", report.sections),
        "advice": ("What to do", report.advice),
        "notes": ("Data", True),
        "methods": ("Methods", True),
    }
    return {anchor: words for anchor, (words, part) in there.items() if part}


def _policy(script: str) -> str:
    """What the browser may run and fetch: this script, styles and images of the page itself, and nothing else."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:"


def _scale(x: KeyNumber) -> dict[str, Any]:
    """Where the value, its interval and the null band lie on a line from 0 to 100."""
    ends = [x.value, *(x.null_band or ()), *(x.interval or ())]
    finite = [e for e in ends if abs(e) < float("inf")]
    low, high = min([0.0, *finite]), max(finite)
    span = 1.05 * (high - low) or 1.0

    def place(v: float) -> float:
        return round(min(max(100 * (v - low) / span, 0), 100), 2)

    return {
        "value": place(x.value),
        "band": [place(v) for v in x.null_band or ()],
        "interval": [place(v) for v in x.interval or ()],
    }
