"""Pictures of the regressions of Widmann, Lindsten & Zachariah (2021)."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.results import Table
from studies.pictures import BELOW, COLOURS, STYLE
from studies.widmann import least_squares
from studies.widmann.data import DATA, Sample
from studies.widmann.data import least_squares as case
from studies.widmann.friedman import PLACES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

SHADES = {"train": (COLOURS[0], "#063f58"), "test": (COLOURS[1], "#7d3a00")}
"""Of the models and of their ensemble."""

VALUES = ("iteration", "value", "low", "high", "expected")

NAMES = {kind: kind for kind in PLACES} | {"models": "models: mean and range"}
LINES: dict[str, dict[str, Any]] = {
    "models": {"linewidth": 1.4},
    "ensemble": {"linewidth": 1.8},
    "ensemble, pairs left out": {"linewidth": 1.2, "linestyle": "--"},
}
PUBLISHED: dict[str, dict[str, Any]] = {
    "models": {"marker": "x", "markersize": 7, "linewidth": 0},
    "ensemble": {"marker": "o", "markersize": 7, "linewidth": 0, "markerfacecolor": "none", "markeredgewidth": 1.2},
}
"""How kinds of models are drawn."""

SCALES: dict[str, float] = {"NLL": 1.0, "SKCE (unbiased)": 1e-3}
"""Numbers of either sign are drawn like logarithms from so far on, and evenly nearer to zero."""

TICKS = {"NLL": (-10, 0, 3, 10, 100, 1e4, 1e6), "SKCE (unbiased)": (-0.01, -0.001, 0, 0.001, 0.01, 0.1)}


def training_curves(table: Table, quantities: Sequence[str], *, last: int, is_log: bool) -> "Figure":
    """Quantities of new networks against iterations, a panel each.

    The mean of the models with their range, and their ensemble; crosses are published means of ten models, rings
    published ensembles. Dashes are ensembles with pairs left out.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    rows = [row for row in table.rows() if row["experiment"] == "new networks" and row["iteration"] <= last]
    height = -(-len(quantities) // 2)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.2, 2.6 * height + 0.9), layout="constrained")
        grid: Any = figure.subplots(height, 2, sharex=True, squeeze=False)
        for axes, quantity in zip(grid.flat, quantities, strict=True):
            for name in DATA:
                _draw_curves(axes, [r for r in rows if r["quantity"] == quantity and r["data"] == name], name)
            axes.set_title(quantity)
            _scale_values(axes, quantity)
            _scale_iterations(axes, last, is_log=is_log)
        for axes in grid[-1]:
            axes.set_xlabel("iterations of training")
        _explain(figure, dict.fromkeys(r["model"] for r in rows if r["quantity"] in quantities))
    return figure


def _draw_curves(axes: "Axes", rows: list[dict[str, Any]], name: str) -> None:
    light, dark = SHADES[name]
    for kind in dict.fromkeys(row["model"] for row in rows):
        here = [row for row in rows if row["model"] == kind]
        at, value, low, high, expected = (np.array([row[key] for row in here]) for key in VALUES)
        colour = light if kind == "models" else dark
        axes.plot(at, value, color=colour, **LINES[kind])
        if kind == "models":
            axes.fill_between(at, low, high, color=light, alpha=0.18, linewidth=0)
        if kind in PUBLISHED:
            axes.plot(at, expected, color=colour, **PUBLISHED[kind])


def _explain(figure: "Figure", kinds: Iterable[str]) -> None:
    """The legend: colours are data, lines are kinds of models."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    grey = "#555555"
    named: dict[str, Any] = {f"{name} rows": Patch(color=SHADES[name][0]) for name in DATA}
    named |= {NAMES[kind]: Line2D([], [], color=grey, **LINES[kind]) for kind in kinds}
    named |= {f"published {kind}": Line2D([], [], color=grey, **style) for kind, style in PUBLISHED.items()}
    figure.legend(named.values(), named.keys(), loc="outside upper center", ncols=4, fontsize=9)


def _scale_values(axes: "Axes", quantity: str) -> None:
    """Logarithms, but of p-values, which have their level; numbers of either sign get ticks that can be read."""
    if quantity == "p-value":
        axes.axhline(0.05, color="#777777", linewidth=0.8, linestyle=":")
        axes.set_ylim(0, 1)
    elif quantity in SCALES:
        axes.set_yscale("asinh", linear_width=SCALES[quantity])
        low, high = axes.get_ylim()
        ticks = [tick for tick in TICKS[quantity] if low <= tick <= high]
        axes.set_yticks(ticks, [f"$10^{np.log10(tick):.0f}$" if tick >= 1e3 else f"{tick:g}" for tick in ticks])
    else:
        axes.set_yscale("log")
    axes.minorticks_off()


def _scale_iterations(axes: "Axes", last: int, *, is_log: bool) -> None:
    if is_log:
        axes.set_xscale("log")
        ticks = [10, 100, 1000, last]
    else:
        axes.set_xlim(0, 1.02 * last)
        ticks = list(range(0, last + 1, 250))
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()


def line_and_quantiles() -> "Figure":
    """What is true, what is predicted, and the curve of quantiles with the range of 95 % of calibrated models."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    sample, line = case()["train"], least_squares.Line.fit(case()["train"])
    x = np.linspace(-1, 1, 241)
    with mpl.rc_context(STYLE | {"axes.grid": False}):
        figure = Figure(figsize=(11, 3.5), layout="constrained")
        grid: Any = figure.subplots(1, 3)
        _draw_density(grid[0], x, *least_squares.truth(x), sample)
        mean, sd = line.predict(x).host
        image = _draw_density(grid[1], x, mean, sd, sample)
        grid[0].set(title="what is true", xlabel="feature", ylabel="target")
        grid[1].set(title="what is predicted", xlabel="feature")
        bar = figure.colorbar(image, ax=grid[:2], label="density", extend="max", shrink=0.8, aspect=25)
        bar.outline.set_visible(False)
        _draw_quantiles(grid[2], least_squares.quantile_curve(case()["validation"], line))
    return figure


def _draw_density(axes: "Axes", x: np.ndarray, mean: np.ndarray, sd: np.ndarray, sample: Sample) -> "AxesImage":
    """Densities of targets, their mean, and the rows that were seen."""
    from matplotlib.colors import LinearSegmentedColormap

    y = np.linspace(-2, 2, 241)
    colours = LinearSegmentedColormap.from_list("density", ["#ffffff", *BELOW[::-1]])
    shown: Any = {"origin": "lower", "extent": (-1, 1, -2, 2), "aspect": "auto", "interpolation": "none"}
    image = axes.imshow(_density(y, mean, sd), cmap=colours, vmin=0, vmax=1, **shown)
    axes.plot(x, mean, color=COLOURS[6], linewidth=1)
    axes.plot(sample.x, sample.y, "o", color=COLOURS[1], markersize=3.5, markeredgewidth=0)
    return image


def _density(y: np.ndarray, mean: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """Normal densities, ``(y, x)``; where there is no spread, that of very little."""
    spread = np.maximum(sd, 1e-3)
    z = (y[:, None] - mean) / spread
    return np.exp(-0.5 * z**2) / (spread * np.sqrt(2 * np.pi))


def _draw_quantiles(axes: "Axes", curve: np.ndarray) -> None:
    n = len(curve)
    width = least_squares.band(n)
    ends = np.array([0.0, 1.0])
    axes.fill_between(ends, ends - width, ends + width, color="#bbbbbb", alpha=0.35, linewidth=0)
    axes.plot(ends, ends, color="#777777", linewidth=0.8)
    axes.step([0, *curve, 1], [*np.arange(n + 1) / n, 1], where="post", color=COLOURS[0], linewidth=1.6)
    axes.set(
        title="quantiles", xlabel="predicted probability of less", ylabel="share of rows", xlim=(0, 1), ylim=(0, 1)
    )
