"""Where a stream goes wrong, and when: a map of windows by parts of the range, classes, labels or PIT values."""

from typing import TYPE_CHECKING, Self

import numpy as np

from calibrant.monitoring.control import Limits, noun_of, strongest_group
from calibrant.monitoring.control import drift as cells_of
from calibrant.monitoring.monitor import Monitor
from calibrant.plots.base import Display, Drawing, Layout, Tables, plotter
from calibrant.plots.heat_map import MAX_LETTERS, draw_cells, draw_scale, scale_below, width_of
from calibrant.plots.sequential.evidence_plot import ABOVE, draw_marks, history_of, label_marks, marks_of
from calibrant.plots.style import Palette, compact, shortened
from calibrant.results import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_STANDARD_ERRORS = 5.0
"""Standard errors at which shades end."""

WORDS = ("claimed too little", "in standard errors", "claimed too much")
"""What the shades say."""

SIDES = {
    "claim": "Probability",
    "class": "Class",
    "label": "Label",
    "level": "Level of the outcome",
}
"""What the rows of the map are."""


def draw(axes: "Axes", tables: Tables, palette: Palette) -> None:
    """Gaps in standard errors, one row per place, one column per window."""
    from matplotlib.patches import Rectangle

    cells, names = tables["cells"], names_in(tables)
    score, beyond = (cells[name].reshape(len(names), -1) for name in ("score", "beyond"))
    draw_cells(axes, np.clip(score, -MAX_STANDARD_ERRORS, MAX_STANDARD_ERRORS), palette, limit=MAX_STANDARD_ERRORS)
    for row, column in np.argwhere(beyond):
        frame = Rectangle((column - 0.46, row - 0.46), 0.92, 0.92, fill=False, edgecolor=palette.ink, linewidth=1)
        axes.add_patch(frame)
    axes.set_yticks(range(len(names)), [shortened(name, MAX_LETTERS) for name in names], fontsize=9.5)
    edges = np.append(cells["first"][0] - 1, cells["last"][: score.shape[1]])
    shown = range(0, len(edges), max(1, -(-len(edges) // 8)))
    axes.set_xticks([i - 0.5 for i in shown], [compact(float(edges[i])) for i in shown], fontsize=9.5)
    axes.set(ylabel=SIDES[str(tables["settings"]["noun"][0])])
    marks = tables["marks"]
    places = Table(
        mark=marks["mark"], row=marks["row"], place=np.interp(marks["row"], edges, np.arange(len(edges)) - 0.5)
    )
    draw_marks(axes, places, palette)
    label_marks(axes, places, palette)
    axes.set_xlabel("Row", labelpad=2)
    draw_scale(scale_below(axes, 0.52), palette, MAX_STANDARD_ERRORS / 100, WORDS)


def names_in(tables: Tables) -> list[str]:
    """Places from above."""
    return [str(name) for name in dict.fromkeys(tables["cells"]["place"].tolist())]


def layout_of(tables: Tables) -> Layout:
    """Room for the names of places, and words above where there are any."""
    names = names_in(tables)
    above, raised = (ABOVE, ABOVE - 0.1) if tables["marks"].n_rows else (0.12, 0.0)
    height = max(0.24 * len(names), 0.9)
    return Layout((7.8, height + 1.15 + above), (width_of(names) + 0.12, 0.25, 1.15, above), raised)


class DriftDisplay(Display):
    """Where a stream goes wrong, and when: claims less outcomes in windows, by part of the range, class, label or PIT value.

    Orange was claimed more than it happened, blue less, in standard errors of a calibrated model. Frames mark cells beyond chance:
    a calibrated stream has none with chance ``level`` (the largest cell of all; outcomes resampled). ``tables`` hold ``cells``,
    ``marks`` and ``settings``. Alarms are those of :class:`calibrant.Monitor`. Westfall & Young (1993).

    >>> from calibrant import Monitor
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> monitor = Monitor(window=500).update((rng.random(2000) < np.where(p > 0.8, 0.6, p)) * 1, p)
    >>> cells = DriftDisplay.from_monitor(monitor).tables["cells"]
    >>> sorted(set(cells["place"][cells["beyond"]]))
    ['80 to 90 %', '90 to 95 %', '95 to 99 %', '99 to 99.9 %']
    """

    drawing = Drawing(draw, is_wide=True, layout_of=layout_of)

    @classmethod
    def from_monitor(cls, monitor: Monitor, *, level: float = 0.95, n_resamples: int = 999, seed: int = 0) -> Self:
        """The windows that the monitor has kept, at most 34 side by side, and at most 20 places."""
        history = history_of(monitor)
        cells = cells_of(history, Limits(level, n_resamples, seed), strongest_group(monitor))
        return cls(
            {"cells": cells, "marks": marks_of(monitor), "settings": Table(level=[level], noun=[noun_of(history)])}
        )


drift = plotter(DriftDisplay.from_monitor, "drift")
