"""The map of what may be believed, drawn with matplotlib."""

from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.results import Table
from studies.coverage.claims import MIN_SETS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = {
    "two classes": ("two classes",),
    "more classes, and labels": ("classes", "labels"),
    "forecasts of numbers": ("numbers", "counts", "ensembles", "quantiles"),
}
"""Worlds that are shown together."""

HELD, WITHHELD, FALSE, EMPTY = "#9ecae1", "#d9d9d9", "#d94801", "#ffffff"
"""Colours of cells: what held, what was not stated, what was false, and what does not apply."""

CELL_INCHES = 0.21


def drawn(table: Table) -> "Figure":
    """A panel per group of worlds, a row per statement, a column per world; false cells are crossed."""
    from matplotlib.figure import Figure

    parts = {title: [row for row in table.rows() if row["kind"] in kinds] for title, kinds in PANELS.items()}
    parts = {title: rows for title, rows in parts.items() if rows}
    heights = [len({_line(row) for row in rows}) + 13 for rows in parts.values()]
    width = max(len({row["world"] for row in rows}) for rows in parts.values())
    figure = Figure(figsize=(CELL_INCHES * width + 5.6, CELL_INCHES * sum(heights)), layout="constrained")
    panels = figure.subplots(len(parts), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, (title, rows) in zip(panels, parts.items(), strict=True):
        _draw(axes, title, rows)
    _legend(figure)
    return figure


def _line(row: dict[str, Any]) -> tuple[str, int, str]:
    return row["claim"], row["place"], row["statement"]


def _draw(axes: "Axes", title: str, rows: list[dict[str, Any]]) -> None:
    from matplotlib.colors import to_rgb

    worlds, lines = (list(dict.fromkeys(values)) for values in ([r["world"] for r in rows], map(_line, rows)))
    colours = np.full((len(lines), len(worlds), 3), to_rgb(EMPTY))
    for row in rows:
        place = lines.index(_line(row)), worlds.index(row["world"])
        is_stated = row["stated"] >= MIN_SETS
        is_false = is_stated and row["part"] > 1
        colours[place] = to_rgb(FALSE if is_false else HELD if is_stated else WITHHELD)
        if is_false:
            axes.text(place[1], place[0], "×", ha="center", va="center", fontsize=8, color="white")
    axes.imshow(colours, aspect="equal", interpolation="none")
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xticks(range(len(worlds)), worlds, rotation=90, fontsize=7)
    axes.set_yticks(range(len(lines)), [f"{claim}: {statement}" for claim, _, statement in lines], fontsize=7)
    axes.set_xticks(np.arange(len(worlds) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(lines) + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1)
    axes.tick_params(which="both", length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _legend(figure: "Figure") -> None:
    from matplotlib.patches import Patch

    entries = {"held": HELD, "withheld, with the reason": WITHHELD, "× false more often than chance allows": FALSE}
    figure.legend(
        handles=[Patch(color=colour, label=label) for label, colour in entries.items()],
        loc="outside upper left",
        ncols=3,
        frameon=False,
        fontsize=9,
    )
