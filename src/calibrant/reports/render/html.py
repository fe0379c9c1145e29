"""The report as one self-contained page, with its charts and tables."""

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._validate import InputError
from calibrant.plots.base import Drawing
from calibrant.plots.classification.classwise import ClasswiseDisplay
from calibrant.plots.classification.confusion import ConfusionDisplay
from calibrant.plots.classification.reliability import ReliabilityDisplay
from calibrant.plots.classification.risk_coverage_plot import RiskCoverageDisplay
from calibrant.plots.classification.simplex_plot import SimplexDisplay
from calibrant.plots.comparisons.before_after_plot import BeforeAfterDisplay
from calibrant.plots.comparisons.bias import BiasDisplay
from calibrant.plots.comparisons.comparison import CURVES, ComparisonDisplay
from calibrant.plots.comparisons.null import NullDisplay
from calibrant.plots.comparisons.witness_plot import WitnessDisplay
from calibrant.plots.forecasting.coverage import CoverageDisplay
from calibrant.plots.forecasting.fan import FanDisplay
from calibrant.plots.forecasting.pit_histogram import PITCurveDisplay, PITHistogramDisplay
from calibrant.plots.forecasting.sharpness import SharpnessDisplay
from calibrant.plots.forecasting.spread_plot import SpreadDisplay
from calibrant.plots.sequential.drift import DriftDisplay
from calibrant.plots.sequential.evidence_plot import EvidenceDisplay
from calibrant.plots.sequential.windows import WindowsDisplay
from calibrant.reports.core.model import KeyNumber, Picture, ReportData
from calibrant.results import Result, Table, how_many, number, percent

if TYPE_CHECKING:
    import jinja2

DRAWINGS: dict[str, Drawing] = {
    "before_after": BeforeAfterDisplay.drawing,
    "bias": BiasDisplay.drawing,
    "classwise": ClasswiseDisplay.drawing,
    "comparison": ComparisonDisplay.drawing,
    "confusion": ConfusionDisplay.drawing,
    "coverage": CoverageDisplay.drawing,
    "curves": CURVES,
    "drift": DriftDisplay.drawing,
    "evidence": EvidenceDisplay.drawing,
    "fan": FanDisplay.drawing,
    "pit_curve": PITCurveDisplay.drawing,
    "pit_histogram": PITHistogramDisplay.drawing,
    "null": NullDisplay.drawing,
    "reliability": ReliabilityDisplay.drawing,
    "sharpness": SharpnessDisplay.drawing,
    "risk_coverage": RiskCoverageDisplay.drawing,
    "simplex": SimplexDisplay.drawing,
    "spread": SpreadDisplay.drawing,
    "windows": WindowsDisplay.drawing,
    "witness": WitnessDisplay.drawing,
}
"""What draws which kind of picture, from its tables alone."""


TURNS = [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]
"""Characters that turn the direction of the text around them."""

CONTROLS = {
    **{code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"},  # as pictures: NUL is ␀
    0x7F: 0x2421,
    **dict.fromkeys([*range(0x80, 0xA0), *range(0xD800, 0xE000), *TURNS], 0xFFFD),
}
"""Characters that cannot be seen, and what is shown instead."""

UNSAFE = {code: f"\\u{code:04x}" for code in [*map(ord, "<>&"), 0x2028, 0x2029, *TURNS]}
"""Characters that end a script element or a line of one, or deceive who reads it, as JSON may write them too."""


def visible(text: str) -> str:
    r"""Text in which every character can be seen: control characters as pictures, turns of direction as �.

    >>> visible("a\x00b \u202egnp.exe")
    'a␀b �gnp.exe'
    """
    return text.translate(CONTROLS)


def shortened(text: str, most: int) -> str:
    """Text of which at most so many characters are shown; those left out of its middle are counted.

    >>> shortened("x" * 10_000, 12)
    'xxxxxxxx … 9,988 more … xxxx'
    """
    if len(text) <= most:
        return text
    head = 2 * most // 3
    return f"{text[:head]} … {len(text) - most:,} more … {text[len(text) - most + head :]}"


def unbroken(text: str) -> str:
    """Text whose numbers stay on one line with what belongs to them: ``4 %``, ``p = 0.02``, ``n = 100``.

    >>> unbroken("4 % (p = 0.02)").replace("\u00a0", "_")
    '4_% (p_=_0.02)'
    """
    return re.sub(r"(?<=\d) (?=%)|(?<=\b[pn]) (?== )|(?<=\b[pn] =) ", "\u00a0", text)


def json_for_script(result: Result) -> str:
    """The data as JSON that cannot end the script element it stands in; lone surrogates as JSON escapes."""
    text = result.to_json(indent=None).translate(UNSAFE)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, and for each row a text and a key to sort by.

    Errors that have a null band have ``bars``, too: where the band begins and ends and where the error is, in percent of
    the largest of all.
    """

    heading: str
    is_number: bool
    texts: tuple[str, ...]
    keys: tuple[str, ...]
    bars: tuple[tuple[float, float, float], ...] = ()
    is_pvalue: bool = False

    @property
    def style(self) -> str:
        """How its cells are set: numbers to the right, and texts of numbers, such as intervals, without a break."""
        if self.is_number:
            return "number p" if self.is_pvalue else "number"
        return "figures" if all(re.fullmatch(r"[-\d.,e+% ]*( to [-\d.,e+% ]*)?", text) for text in self.texts) else ""


def pvalue(p: float) -> str:
    """A p-value as people read it."""
    if p != p:
        return ""
    return "<0.001" if p < 0.0005 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def plain(value: Any) -> str:
    """Any value as people read it; nothing for what is not known."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return "" if value != value else number(value)
    return "" if value is None else str(value)


FORMATS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(["claimed", "happened", "error", "calibration_error", "null_low", "null_high"], percent),
    **dict.fromkeys(["interval_low", "interval_high"], percent),
    "change": lambda v: f"{v:+.2g}" if v else "",
    "standard_error": lambda v: f"{v:.1g}" if v > 0 else "",
    "pvalue": pvalue,
}
"""How columns are written; others as :func:`plain` does."""

PAIRS = {
    "null_low": ("null_high", " to "),
    "interval_low": ("interval_high", " to "),
    "change": ("standard_error", " ± "),
}
"""Columns that are shown together with another one, and what stands between them."""

ERRORS = ("error", "calibration_error")
"""Columns that a null band belongs to."""

HIDDEN = ("excess", "pvalue_alone")
"""Columns that only the data have."""

HEADINGS = {
    "pvalue": "p",
    "null_low": "if calibrated",
    "interval_low": "95 % interval",
}
"""Columns that are called otherwise on the page."""


def columns_of(table: Table, noun: str = "") -> list[Column]:
    """What a page shows of a table: the ends of a band in one column, a change with its error, the first under its noun.

    >>> [column.texts for column in columns_of(Table(group=["a"], null_low=[0.0], null_high=[0.012]))]
    [('a',), ('0.0 % to 1.2 %',)]
    """
    seconds = {second for first, (second, _) in PAIRS.items() if first in table}
    columns = [_column(table, name) for name in table if name not in seconds and name not in HIDDEN]
    if noun:
        columns[0] = replace(columns[0], heading=noun)
    return columns


def candidate_columns(table: Table) -> list[Column]:
    """Recalibrators as a page shows them: those of one score have its name above them, and need no column for it."""
    scores = set(table["score"].tolist()) if "score" in table else set()
    if len(scores) != 1:
        return columns_of(table)
    score = scores.pop()
    kept = {(score if name == "after" else name): v for name, v in table.items() if name not in ("score", "before")}
    return columns_of(Table(kept))


def flags_of(table: Table) -> list[bool]:
    """Which rows show a defect: those with a small p-value; else those beyond their null band."""
    if "pvalue" in table:
        return (table["pvalue"] <= 0.05).tolist()
    error = next((table[name] for name in ERRORS if name in table and "null_high" in table), None)
    return [False] * table.n_rows if error is None else (error > table["null_high"]).tolist()


def _column(table: Table, name: str) -> Column:
    values: list[Any] = table[name].tolist()
    texts = _texts(name, values)
    second, between = PAIRS.get(name, ("", ""))
    if second in table:
        both = zip(texts, _texts(second, table[second].tolist()), strict=True)
        texts = [between.join(filter(None, pair)) for pair in both]
    is_number = table[name].dtype.kind in "fiu"
    keys = tuple(repr(v) if is_number else str(v) for v in values)
    # names of ours are identifiers; others have the caller's words, such as those of models
    heading = HEADINGS.get(name, name.replace("_", " ") if name.isidentifier() else name)
    bars = _bars(table, name) if name in ERRORS else ()
    return Column(heading, is_number, tuple(texts), keys, bars, is_pvalue=name == "pvalue")


def _bars(table: Table, name: str) -> tuple[tuple[float, float, float], ...]:
    if "null_low" not in table or "null_high" not in table:
        return ()
    ends = np.stack([table["null_low"], table["null_high"], table[name]], axis=1)
    shares = 100 * ends / (np.nanmax(ends) or 1.0)
    return tuple((low, high, value) for low, high, value in np.nan_to_num(shares).clip(0, 100).round(1).tolist())


def _texts(name: str, values: Sequence[Any]) -> list[str]:
    write = FORMATS.get(name, plain)
    return [write(value) for value in values]


PHONE = 400
"""Points of a drawing that fit a phone with letters that can be read."""


NUMBERS_BESIDE = 6
"""Numbers that are as high as the first picture, and stand beside it; more are as wide as the page."""


@dataclass(frozen=True)
class Chart:
    """A picture and its drawing. One that ``is_wide`` fills both columns, one that ``is_alone`` has none beside it."""

    title: str
    caption: str
    description: str
    svg: str
    legend: tuple[tuple[str, str], ...]
    is_wide: bool
    is_alone: bool = False

    @property
    def width(self) -> float:
        """In points as drawn: pictures are enlarged alike, so that their letters are of one size."""
        found = re.search(r'viewBox="\S+ \S+ (\S+) ', self.svg)
        return float(found[1]) if found else 0.0

    @property
    def scrolls(self) -> bool:
        """Whether a phone is too narrow for it: letters that can be read matter more than all of it at once."""
        return self.width > PHONE


def drawn(picture: Picture, beside: Table | None = None) -> str:
    """A picture as SVG; axes of a reliability diagram are wide enough for the curve ``beside`` it."""
    return visible(
        DRAWINGS[picture.kind].to_svg(picture.tables if beside is None else {**picture.tables, "beside": beside})
    )


def chart_of(picture: Picture, beside: Table | None = None) -> Chart:
    """A picture with its drawing, legend and width."""
    svg, drawing = drawn(picture, beside), DRAWINGS[picture.kind]
    return Chart(
        picture.title, picture.caption, picture.description, svg, drawing.marks(picture.tables), drawing.is_wide
    )


def placed(charts: Sequence[Chart], *, after: int = 0) -> list[Chart]:
    """Charts in rows of two columns, ``after`` so many other cards: those that have no neighbour are alone.

    >>> chart = Chart("", "", "", "", (), False)
    >>> [c.is_alone for c in placed([chart, chart, chart])]
    [False, False, True]
    """
    found, column = [], after % 2
    for chart, follower in zip(charts, [*charts[1:], None], strict=False):
        is_alone = not chart.is_wide and column == 0 and (follower is None or follower.is_wide)
        found.append(replace(chart, is_alone=is_alone))
        column = 0 if chart.is_wide or is_alone else 1 - column
    return found


def charts_of(pictures: Iterable[Picture], *, after: int = 0) -> list[Chart]:
    """All pictures of a page, drawn and placed."""
    return placed([chart_of(picture) for picture in pictures], after=after)


def to_html(report: ReportData) -> str:
    """The page, with its style, pictures and data inside; it asks the network for nothing."""
    has_half = bool(report.pictures) and not DRAWINGS[report.pictures[0].kind].is_wide
    is_beside = has_half and len(report.numbers) <= NUMBERS_BESIDE
    charts = charts_of(report.pictures, after=int(is_beside))
    return rendered(
        "page.html.jinja",
        report,
        parts=_parts(report),
        charts=charts,
        scales=[_scale(x) for x in report.numbers],
        beside=is_beside,
    )


def rendered(template: str, report: Result, *, download: str = "calibrant-report.json", **values: Any) -> str:
    """A template of this folder, filled in: its style and script inside, the data once, and nothing from elsewhere."""
    try:
        from markupsafe import Markup

        environment = _environment()
    except ModuleNotFoundError as error:
        raise InputError(f"the page needs {error.name}: pip install 'calibrant[cli]'") from error
    script = _file("script.js")
    return environment.get_template(template).render(
        report=report,
        download=download,
        script=Markup(script),
        policy=_policy(script),
        data=Markup(json_for_script(report)),
        **values,
    )


@cache
def _environment() -> "jinja2.Environment":
    """Templates, compiled once in a process."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(_file),
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    environment.filters.update(FILTERS)
    return environment


def _file(name: str) -> str:
    return files("calibrant.reports.render").joinpath(name).read_text(encoding="utf-8")


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
    ends = [x.value, *(x.null_band or ()), *(x.interval or ()), *([] if x.ideal is None else [x.ideal])]
    finite = [0.0, *(e for e in ends if abs(e) < float("inf"))]
    low, high = min(finite), max(finite)
    span = 1.05 * (high - low) or 1.0

    def place(v: float) -> float:
        return round(min(max(100 * (v - low) / span, 0), 100), 2)

    return {
        "value": place(x.value),
        "band": [place(v) for v in x.null_band or ()],
        "interval": [place(v) for v in x.interval or ()],
        "ideal": None if x.ideal is None else place(x.ideal),
    }
