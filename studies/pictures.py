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

BELOW, ABOVE = ("#08435f", "#2f86b0", "#b5d6e6"), ("#f6d3ae", "#e08a35", "#8f3d03")
"""Colours of numbers below and above zero, in their order."""

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
    error: str | tuple[str, str] | None = None,
    label: str | None = None,
    level: tuple[float, float, float] | None = None,
    is_log: bool = False,
    columns: int = 2,
) -> "Figure":
    """``y`` against ``x``, a line a value of ``line`` and a panel a value of ``panels``; published values as crosses.

    ``error`` is the column with standard errors, two of which are drawn to either side, or the two columns with limits.
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
                _draw_line(axes, here, x, y, published, error, i, str(name))
            axes.set(xscale="log", yscale="log" if is_log else "linear")
            axes.set_title(", ".join(_titled(n, v) for n, v in zip(panels, key, strict=True)))
            ticks = _named_ticks(sorted({row[x] for row in rows if float(row[x]).is_integer()}))
            axes.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks])
            axes.minorticks_off()
        for axes in grid.flat[len(keys) :]:
            axes.axis("off")
        for axes in grid[-1]:
            axes.set_xlabel(x)
        for axes in grid[:, 0]:
            axes.set_ylabel(label or y)
        named = {t: h for axes in grid.flat for h, t in zip(*axes.get_legend_handles_labels(), strict=True)}
        widest = max(len(text) for text in named) + 6
        fitting = max(1, int(18 * columns * 3.1 // widest))  # some eighteen letters to the inch
        figure.legend(named.values(), named.keys(), loc="outside upper center", ncols=min(len(named), fitting, 8))
    return figure


def _draw_line(
    axes: "Axes",
    rows: list[dict[str, Any]],
    x: str,
    y: str,
    published: str | None,
    error: str | tuple[str, str] | None,
    i: int,
    name: str,
) -> None:
    colour, at = COLOURS[i % len(COLOURS)], [row[x] for row in rows]
    if not rows:
        return
    if error is not None:
        bars = np.array([_bar(row, y, error) for row in rows]).T
        axes.errorbar(at, [row[y] for row in rows], bars, color=colour, linewidth=0, elinewidth=1, capsize=2)
    axes.plot(
        at, [row[y] for row in rows], color=colour, marker=MARKERS[i % 8], markersize=4, linewidth=1.4, label=name
    )
    if published is not None and any(np.isfinite(row[published]) for row in rows):
        axes.plot(at, [row[published] for row in rows], color=colour, marker="x", markersize=8, linewidth=0)


def _bar(row: dict[str, Any], y: str, error: str | tuple[str, str]) -> tuple[float, float]:
    """How far the bar reaches below and above."""
    if isinstance(error, str):
        return 2 * row[error], 2 * row[error]
    return row[y] - row[error[0]], row[error[1]] - row[y]


def _named_ticks(values: list[Any]) -> list[Any]:
    """All up to nine values; of more, the last and as many at even steps before it as there is room for."""
    return values if len(values) <= 9 else values[::-1][:: -(-len(values) // 7)][::-1]


def _titled(name: str, value: object) -> str:
    return str(value) if isinstance(value, str) else f"{name} = {value}"


def heatmaps(
    table: Table,
    *,
    down: str,
    across: str,
    y: str,
    x: str,
    value: str,
    label: str | None = None,
    limit: float | None = None,
) -> "Figure":
    """Maps of ``value`` over ``y`` and ``x``, with its numbers; a row of maps a value of ``down``, a column of ``across``.

    Colours run from blue, below zero, through white to orange, and mean the same in all maps; beyond ``limit`` they
    grow no darker.
    """
    import matplotlib as mpl
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    rows = list(table.rows())
    names = {key: list(dict.fromkeys(row[key] for row in rows)) for key in (down, across, y, x)}
    largest = max(abs(float(row[value])) for row in rows if np.isfinite(row[value]))
    most = largest if limit is None else limit
    colours = LinearSegmentedColormap.from_list("signed", [*BELOW, "#ffffff", *ABOVE])
    height, width = len(names[down]), len(names[across])
    size = 0.5 * len(names[x]) * width + 1.6, 0.3 * len(names[y]) * height + 0.5 * height + 0.7
    with mpl.rc_context(STYLE | {"axes.grid": False}):
        figure = Figure(figsize=size, layout="constrained")
        grid: Any = figure.subplots(height, width, squeeze=False, sharex=True, sharey=True)
        for i, j in np.ndindex(height, width):
            here = {(r[y], r[x]): r[value] for r in rows if (r[down], r[across]) == (names[down][i], names[across][j])}
            cells = np.array([[here.get((b, a), np.nan) for a in names[x]] for b in names[y]], dtype=float)
            mesh = grid[i, j].pcolormesh(cells, cmap=colours, vmin=-most, vmax=most)
            _print_cells(grid[i, j], cells, most)
        _name_maps(grid, names[down], names[across], (y, names[y]), (x, names[x]))
        extend = "both" if largest > most else "neither"
        bar = figure.colorbar(mesh, ax=grid, label=label or value, shrink=0.5, aspect=30, pad=0.01, extend=extend)
        bar.outline.set_visible(False)
    return figure


def _print_cells(axes: "Axes", cells: np.ndarray, most: float) -> None:
    """Numbers in their cells, white on dark; a fine line around each, for those that are white."""
    from matplotlib.patches import Rectangle

    for (row, column), number in np.ndenumerate(cells):
        if np.isfinite(number):
            colour = "white" if abs(number) > 0.55 * most else "#333333"
            text = f"{number:.2f}".replace("-", "\N{MINUS SIGN}")
            axes.add_patch(
                Rectangle((column, row), 1, 1, fill=False, edgecolor="#e4e4e4", linewidth=0.8, clip_on=False)
            )
            axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=7.5, color=colour)


def _name_maps(
    grid: np.ndarray,
    down: Sequence[object],
    across: Sequence[object],
    y: tuple[str, list[Any]],
    x: tuple[str, list[Any]],
) -> None:
    for axes in grid.flat:
        axes.set_yticks(np.arange(len(y[1])) + 0.5, [str(value) for value in y[1]])
        axes.set_xticks(np.arange(len(x[1])) + 0.5, [_named(value) for value in x[1]])
        axes.tick_params(length=0, labelsize=8, colors="#555555")
        axes.spines[:].set_visible(False)
    grid[0, 0].invert_yaxis()  # the first at the top; maps share their axes
    for i, name in enumerate(down):
        grid[i, 0].set_ylabel(f"{name}\n{y[0]}", fontsize=9)
    for j, name in enumerate(across):
        grid[0, j].set_title(str(name), fontweight="bold")
        grid[-1, j].set_xlabel(x[0])


def _named(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:,}"


def svg(figure: "Figure") -> str:
    """The picture as text that stands alone."""
    import io

    import matplotlib as mpl

    with mpl.rc_context(STYLE):
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return "\n".join(text.rstrip() for text in buffer.getvalue().splitlines()) + "\n"
