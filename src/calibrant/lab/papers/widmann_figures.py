"""Pictures of the regressions of Widmann, Lindsten & Zachariah (2021)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.lab.papers import widmann_least_squares as least_squares
from calibrant.lab.papers.pictures import BELOW, COLOURS, STYLE
from calibrant.lab.papers.widmann_data import DATA
from calibrant.lab.papers.widmann_data import least_squares as case
from calibrant.results import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHADES = {"train": (COLOURS[0], "#063f58"), "test": (COLOURS[1], "#7d3a00")}
"""Of the models and of their ensemble."""

SCALES: dict[str, tuple[str, dict[str, float]]] = {
    "MSE": ("log", {}),
    "NLL": ("symlog", {"linthresh": 1, "linscale": 0.3}),
    "pinball": ("log", {}),
    "SKCE (unbiased)": ("symlog", {"linthresh": 1e-3}),
    "SKCE (biased)": ("log", {}),
    "p-value": ("linear", {}),
}
"""Of the vertical axes."""


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
        grid: Any = figure.subplots(height, 2, sharex=True)
        for axes, quantity in zip(grid.flat, quantities, strict=True):
            for name in DATA:
                _draw_curves(axes, [r for r in rows if r["quantity"] == quantity and r["data"] == name], name)
            scale, settings = SCALES[quantity]
            axes.set_yscale(scale, **settings)
            axes.set_title(quantity)
            _finish(axes, quantity, last, is_log=is_log)
        for axes in grid[-1]:
            axes.set_xlabel("iterations of training")
        named = {t: h for axes in grid.flat for h, t in zip(*axes.get_legend_handles_labels(), strict=True)}
        figure.legend(named.values(), named.keys(), loc="outside upper center", ncols=4)
    return figure


def _draw_curves(axes: "Axes", rows: list[dict[str, Any]], name: str) -> None:
    light, dark = SHADES[name]
    parts = {
        kind: {key: np.array([r[key] for r in rows if r["model"] == kind]) for key in ("iteration", *VALUES)}
        for kind in dict.fromkeys(r["model"] for r in rows)
    }
    models, ensemble = parts["models"], parts["ensemble"]
    axes.fill_between(models["iteration"], models["low"], models["high"], color=light, alpha=0.18, linewidth=0)
    axes.plot(models["iteration"], models["value"], color=light, linewidth=1.4, label=f"{name}: models, range")
    axes.plot(ensemble["iteration"], ensemble["value"], color=dark, linewidth=1.8, label=f"{name}: ensemble")
    axes.plot(
        models["iteration"], models["expected"], "x", color=light, markersize=7, label=f"{name}: published models"
    )
    rings: Any = {"markersize": 7, "markerfacecolor": "none", "markeredgewidth": 1.2}
    axes.plot(
        ensemble["iteration"], ensemble["expected"], "o", color=dark, label=f"{name}: published ensemble", **rings
    )
    incomplete = parts.get("ensemble, pairs left out")
    if incomplete is not None:
        label = f"{name}: ensemble, pairs left out"
        axes.plot(incomplete["iteration"], incomplete["value"], "--", color=dark, linewidth=1, label=label)


VALUES = ("value", "low", "high", "expected")


def _finish(axes: "Axes", quantity: str, last: int, *, is_log: bool) -> None:
    """Axes of iterations, and the level of p-values."""
    if quantity == "p-value":
        axes.axhline(0.05, color="#777777", linewidth=0.8, linestyle=":")
        axes.set_ylim(0, 1)
    if is_log:
        axes.set_xscale("log")
        axes.set_xticks([10, 100, 1000, last], ["10", "100", "1,000", f"{last:,}"])
    else:
        axes.set_xlim(0, last)
    axes.minorticks_off()


def line_and_quantiles() -> "Figure":
    """What is true, what is predicted, and the curve of quantiles with the range of 95 % of calibrated models."""
    import matplotlib as mpl
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    sample, line = case()["train"], least_squares.Line.fit(case()["train"])
    x, y = np.linspace(-1, 1, 161), np.linspace(-2, 2, 161)
    predictions = line.predict(x).host
    colours = LinearSegmentedColormap.from_list("density", ["#ffffff", *BELOW[::-1]])
    with mpl.rc_context(STYLE | {"axes.grid": False}):
        figure = Figure(figsize=(11, 3.5), layout="constrained")
        grid: Any = figure.subplots(1, 3)
        for axes, (mean, sd), title in (
            (grid[0], least_squares.truth(x), "what is true"),
            (grid[1], predictions, "what is predicted"),
        ):
            mesh = axes.pcolormesh(x, y, _density(y, mean, sd), cmap=colours, vmin=0, vmax=1, rasterized=True)
            axes.plot(x, mean, color=COLOURS[6], linewidth=1)
            axes.plot(sample.x, sample.y, "o", color=COLOURS[1], markersize=3.5, markeredgewidth=0)
            axes.set(title=title, xlabel="feature", ylabel="target", ylim=(-2, 2))
        figure.colorbar(mesh, ax=grid[:2], label="density", extend="max", shrink=0.8, aspect=25).outline.set_visible(
            False
        )
        _draw_quantiles(grid[2], least_squares.quantile_curve(case()["validation"], line))
    return figure


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
    axes.set_aspect("equal")
