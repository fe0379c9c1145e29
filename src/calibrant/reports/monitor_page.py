"""The page of a watched stream."""

from typing import TYPE_CHECKING

from calibrant.reports.figures import charts_of
from calibrant.reports.page import rendered

if TYPE_CHECKING:
    from calibrant.reports.monitored import MonitorReport


def to_html(report: "MonitorReport") -> str:
    """The page, in the frame that all pages share."""
    there = {
        "numbers": ("Numbers", True),
        "pictures": ("Pictures", report.pictures),
        "slices": ("Tables", report.sections),
        "notes": ("Data", True),
        "methods": ("Methods", True),
    }
    return rendered(
        "monitor.html.jinja",
        report,
        download="calibrant-monitor.json",
        parts={anchor: words for anchor, (words, part) in there.items() if part},
        charts=charts_of(report.pictures),
    )
