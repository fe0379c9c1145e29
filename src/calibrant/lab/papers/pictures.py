"""Pictures of studies, drawn with matplotlib."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.results import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0b6e99", "#d9730d", "#6940a5", "#0f7b6c", "#ad1a72", "#9b9a97", "#1f1f1f", "#e0a800")
"""Of lines, in order; told apart by readers who see fewer colours, and by their markers."""

MARKERS = "osD^vPX*"

STYLE: dict[Any, Any] = {
    "font.size": 10,
    "svg.hashsalt": "calibrant",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#999999",
    "axes.grid": True,
    "grid.color": "#e8e8e8",
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "legend.frameon": False,
}


def lines(
    table: Table,
    *,
    panels: Sequence[str],
    x: str,
    y: str,
    line: str,
    published: str | None = None,
    label: str | None = None,
    level: tuple[float, float, float] | None = None,
    is_log: bool = False,
    columns: int = 2,
) -> "Figure":
    """``y`` against ``x``, a line a value of ``line`` and a panel a value of ``panels``; published values as crosses.

    ``level`` draws a band between its first and last number, and a line at the one between.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    rows = list(table.rows())
    keys = list(dict.fromkeys(tuple(row[name] for name in panels) for row in rows))
    names = list(dict.fromkeys(row[line] for row in rows))
    height = -(-len(keys) // columns)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(4.6 * columns, 3.1 * height + 0.7), layout="constrained")
        grid = figure.subplots(height, columns, squeeze=False, sharex=True)
        for axes, key in zip(grid.flat, keys, strict=False):
            if level is not None:
                axes.axhspan(level[0], level[2], color="#bbbbbb", alpha=0.35, linewidth=0)
                axes.axhline(level[1], color="#777777", linewidth=0.8)
            for i, name in enumerate(names):
                here = [r for r in rows if tuple(r[k] for k in panels) == key and r[line] == name]
                _draw_line(axes, here, x, y, published, i, str(name))
            axes.set(xscale="log", yscale="log" if is_log else "linear")
            axes.set_title(", ".join(_titled(n, v) for n, v in zip(panels, key, strict=True)))
            ticks = sorted({int(row[x]) for row in rows})
            axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
            axes.minorticks_off()
        for axes in grid.flat[len(keys) :]:
            axes.axis("off")
        for axes in grid[-1]:
            axes.set_xlabel(x)
        for axes in grid[:, 0]:
            axes.set_ylabel(label or y)
        handles, texts = grid.flat[0].get_legend_handles_labels()
        figure.legend(handles, texts, loc="outside upper center", ncols=min(len(texts), 8))
    return figure


def _draw_line(
    axes: "Axes", rows: list[dict[str, Any]], x: str, y: str, published: str | None, i: int, name: str
) -> None:
    colour, at = COLOURS[i % len(COLOURS)], [row[x] for row in rows]
    axes.plot(
        at, [row[y] for row in rows], color=colour, marker=MARKERS[i % 8], markersize=4, linewidth=1.4, label=name
    )
    if published is not None and any(np.isfinite(row[published]) for row in rows):
        axes.plot(at, [row[published] for row in rows], color=colour, marker="x", markersize=8, linewidth=0)


def _titled(name: str, value: object) -> str:
    return str(value) if isinstance(value, str) else f"{name} = {value}"


def svg(figure: "Figure") -> str:
    """The picture as text that stands alone."""
    import io

    import matplotlib as mpl

    with mpl.rc_context(STYLE):
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return "\n".join(text.rstrip() for text in buffer.getvalue().splitlines()) + "\n"
