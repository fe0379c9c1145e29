"""The page of a comparison."""

from typing import TYPE_CHECKING

from calibrant.reports.figures import charts_of
from calibrant.reports.page import rendered

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
    )
