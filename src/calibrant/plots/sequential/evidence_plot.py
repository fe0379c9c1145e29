"""The evidence against calibration over a stream, and the rows at which it sufficed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from calibrant._validate import InputError
from calibrant.monitoring.history import History
from calibrant.monitoring.monitor import Monitor
from calibrant.plots.base import Display, Drawing, Layout, Legend, Mark, Tables, plotter
from calibrant.plots.style import Palette, dress, inches_of
from calibrant.results import Table, number

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
    """One line per row: dashed since when, whole at the alarm."""
    styles = {"since": "--", "alarm": "-"}
    for mark in marks.rows():
        axes.axvline(place_of(mark), color=palette.bad, linewidth=1.2, linestyle=styles[mark["mark"]], zorder=3)


def label_marks(axes: "Axes", marks: Table, palette: Palette) -> None:
    """The words of the lines, above axes whose limits are known: one below the other, on the wider side."""
    height = inches_of(axes)[1]
    left, right = axes.get_xlim()
    for mark in marks.rows():
        place = (place_of(mark) - left) / (right - left)
        side = "right" if place > 0.5 else "left"
        up = 1 + (0.05 + LINE * (mark["mark"] == "since")) / height
        words = WORDS[mark["mark"]].format(int(mark["row"]))
        axes.text(place, up, words, transform=axes.transAxes, ha=side, va="bottom", fontsize=9.5, color=palette.bad)


MAX_POWER = 9.0
"""Powers of ten that are shown: far beyond an alarm, more evidence tells nothing more."""

STEPS = [1, 2, 2.5, 5, 10]
"""Round numbers, from one mark of an axis to the next."""


def draw(axes: "Axes", tables: Tables, palette: Palette) -> None:
    """The e-value on a scale of powers of ten, with the line at which there is an alarm."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    evidence, settings = tables["evidence"], next(tables["settings"].rows())
    power = evidence["log_evalue"] / np.log(10)
    enough = -float(np.log10(settings["alpha"]))
    top = min(max(enough + 1.0, 1.12 * float(power.max(initial=0.0))), max(MAX_POWER, 2 * enough))
    bottom = min(-0.5, 1.1 * float(power.min(initial=0.0)))
    rows, power = np.append(settings["start"], evidence["last"]), np.minimum(np.append(0.0, power), 2 * top)
    dress(axes, palette)
    axes.axhline(enough, color=palette.muted, linewidth=1, dashes=(4, 3), zorder=2)
    axes.fill_between(
        rows, enough, power, where=power > enough, interpolate=True, color=palette.bad, alpha=0.15, linewidth=0
    )
    axes.plot(rows, power, color=palette.accent, linewidth=1.8, zorder=4)
    draw_marks(axes, tables["marks"], palette)
    for row in tables["marks"]["row"][tables["marks"]["mark"] == "alarm"].tolist():
        axes.scatter([row], [enough], s=52, color=palette.bad, marker="D", linewidth=0, zorder=5)
    end = max(float(rows[-1]), float(rows[0]) + 1)
    axes.set(xlim=(float(rows[0]), end), ylim=(bottom, top))
    axes.xaxis.set_major_locator(MaxNLocator(9, integer=True, steps=STEPS))
    axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda x, _: power_of_ten(x)))
    axes.set(xlabel="Row", ylabel="e-value")
    axes.yaxis.set_label_coords(-0.55 / inches_of(axes)[0], 0.5)
    label_marks(axes, tables["marks"], palette)


def power_of_ten(x: float) -> str:
    """A power of ten in few letters.

    >>> [power_of_ten(x) for x in (-4, -1, 0, 2, 4, 9)]
    ['1e−4', '0.1', '1', '100', '1e4', '1e9']
    """
    whole = round(x)
    text = f"1e{whole}" if not -3 <= whole <= 3 else f"{10**whole:,}" if whole >= 0 else f"{10.0**whole:.{-whole}f}"
    return text.replace("-", "\N{MINUS SIGN}")


def legend_of(tables: Tables) -> Legend:
    """Marks and words."""
    enough: tuple[Mark, str] = ("dashed", f"enough for an alarm, {number(1 / float(tables['settings']['alpha'][0]))}")
    alarm: Legend = (("diamond", "alarm"),) if tables["marks"].n_rows else ()
    return (("line", "evidence"), enough, *alarm)


def layout_of(tables: Tables) -> Layout:
    """Room for words above where there are any."""
    above, raised = (ABOVE, ABOVE - 0.1) if tables["marks"].n_rows else (0.12, 0.0)
    return Layout((7.8, 2.9 + above), (0.75, 0.25, 0.56, above), raised)


def history_of(monitor: Monitor) -> History:
    """What a monitor has kept, or words on how it gets something to keep."""
    if not isinstance(monitor, Monitor):
        raise InputError(f"monitor must be a Monitor, such as Monitor().update(y_true, y_pred); got {monitor!r}")
    if monitor.history is None or not len(monitor.history.windows.last):
        raise InputError("monitor has seen no rows that it could show: update it first")
    return monitor.history


class EvidenceDisplay(Display):
    """The evidence against calibration over a stream: the e-value row by row, and the line at which it raises an alarm.

    A calibrated model ever reaches that line with probability at most ``alpha``, however long it is watched. ``tables`` hold
    ``evidence``, the largest e-value in at most 400 steps of rows, ``marks`` (the alarm, and since when) and ``settings``.

    >>> from calibrant import Monitor
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(800)
    >>> monitor = Monitor().update((rng.random(800) < p**2) * 1, p)
    >>> EvidenceDisplay.from_monitor(monitor).tables["marks"]["row"].tolist() == [monitor.alarm.since, monitor.alarm.row]
    True
    """

    drawing = Drawing(draw, is_wide=True, layout_of=layout_of, legend_of=legend_of)

    @classmethod
    def from_monitor(cls, monitor: Monitor) -> Self:
        """What the monitor has kept."""
        history = history_of(monitor)
        steps = history.evidence
        return cls(
            {
                "evidence": Table(first=steps.first, last=steps.last, log_evalue=steps.values[:, 0]),
                "marks": marks_of(monitor),
                "settings": Table(alpha=[monitor.alpha], start=[history.trace.start]),
            }
        )


evidence = plotter(EvidenceDisplay.from_monitor, "evidence")
