"""Rows of a stream that matter, as lines through a picture with words above it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from calibrant.monitoring.monitor import Monitor
from calibrant.plots.axes import inches_of
from calibrant.plots.style import Palette
from calibrant.results import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINE = 0.17
"""Inches from one line of words to the next."""

ABOVE = 2 * LINE + 0.12
"""Inches that the words take above the axes."""


def marks_of(monitor: Monitor) -> Table:
    """Since which row something is wrong, and at which it was known; no rows without an alarm."""
    alarm = monitor.alarm
    rows = [] if alarm is None else [("since", alarm.since), ("alarm", alarm.row)]
    return Table(mark=[name for name, _ in rows], row=[row for _, row in rows])


WORDS = {"since": "since about row {:,}", "alarm": "alarm at row {:,}"}


def place_of(mark: Mapping[str, Any]) -> float:
    """Where a row lies: at its number, or at its ``place`` on axes that have others."""
    return float(mark.get("place", mark["row"]))


def draw_marks(axes: "Axes", marks: Table, palette: Palette) -> None:
    """A line a row: dashed since when, whole at the alarm."""
    styles = {"since": "--", "alarm": "-"}
    for mark in marks.rows():
        axes.axvline(place_of(mark), color=palette.bad, linewidth=1.2, linestyle=styles[mark["mark"]], zorder=3)


def label_marks(axes: "Axes", marks: Table, palette: Palette) -> None:
    """The words of the lines, above axes whose limits are known: one below the other, on the side that has more room."""
    height = inches_of(axes)[1]
    left, right = axes.get_xlim()
    for mark in marks.rows():
        place = (place_of(mark) - left) / (right - left)
        side = "right" if place > 0.5 else "left"
        up = 1 + (0.05 + LINE * (mark["mark"] == "since")) / height
        words = WORDS[mark["mark"]].format(int(mark["row"]))
        axes.text(place, up, words, transform=axes.transAxes, ha=side, va="bottom", fontsize=9.5, color=palette.bad)
