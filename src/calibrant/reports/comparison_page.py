"""The page of a comparison."""

from typing import TYPE_CHECKING

from calibrant.reports.figures import charts_of
from calibrant.reports.page import rendered
from calibrant.results import Table

if TYPE_CHECKING:
    from calibrant.reports.comparison import Comparison

PARTS = {
    "numbers": "Numbers",
    "differences": "Differences",
    "pictures": "Pictures",
    "slices": "Slices",
    "notes": "Data",
    "methods": "Methods",
}


def to_html(comparison: "Comparison") -> str:
    """The page, in the frame that all pages share."""
    parts = {anchor: words for anchor, words in PARTS.items() if anchor != "slices" or comparison.sections}
    return rendered(
        "comparison.html.jinja",
        comparison,
        download="calibrant-comparison.json",
        parts=parts,
        charts=charts_of(comparison.pictures),
        numbers=numbers_of(comparison),
    )


def numbers_of(comparison: "Comparison") -> Table:
    """The numbers of all models as people read them, each in its unit."""
    shared = comparison.numbers
    rows = [
        (model, next(x for x in comparison.reports[model].numbers if x.label == label))
        for label, model in zip(shared["number"].tolist(), shared["model"].tolist(), strict=True)
    ]
    intervals = [
        "" if x.interval is None else f"{x.text(x.interval.low)} to {x.text(x.interval.high)}" for _, x in rows
    ]
    return Table(
        {
            "number": shared["number"],
            "model": shared["model"],
            "value": [x.text(x.value) for _, x in rows],
            "95 % interval": intervals,
            "if calibrated": [x.band() for _, x in rows],
            "pvalue": shared["pvalue"],
        }
    )
