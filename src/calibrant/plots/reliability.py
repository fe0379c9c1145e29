"""The reliability diagram: what was claimed against what happened."""

from typing import TYPE_CHECKING

import numpy as np

from calibrant.inference.reliability import beyond_chance
from calibrant.plots.picture import Drawing, Tables
from calibrant.plots.style import Palette, dress
from calibrant.results import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CLOSE = 0.4
"""A smaller range of values than this is drawn close up."""


def draw(axes: "Axes", tables: Tables, palette: Palette) -> None:
    """Observed against predicted, with the band and the spread of the predictions below.

    Axes have room for the curve of the table ``beside``, too, where there is one.
    """
    from mpl_toolkits.axes_grid1 import make_axes_locatable  # type: ignore[import-untyped]

    curve = tables["curve"]
    _draw_curve(axes, curve, palette)
    claims, outcomes = zip(*(_span(one) for one in (curve, tables.get("beside", curve))), strict=True)
    axes.set(xlim=_limits(np.concatenate(claims)), ylim=_limits(np.concatenate(outcomes)), ylabel="Observed frequency")
    below = make_axes_locatable(axes).append_axes("bottom", size="21%", pad=0.12, sharex=axes)
    axes.tick_params(labelbottom=False)
    _draw_histogram(below, tables["histogram"], palette)
    for part in (axes, below):
        part.yaxis.set_label_coords(-0.105, 0.5)


def _draw_curve(axes: "Axes", curve: Table, palette: Palette) -> None:
    x, observed, low, high = (curve[name] for name in ("predicted", "observed", "low", "high"))
    outside = beyond_chance(curve)
    dress(axes, palette)
    axes.plot([0, 1], [0, 1], color=palette.muted, linewidth=1, dashes=(4, 3), zorder=1)
    axes.fill_between(x, low, high, color=palette.band, alpha=0.25, linewidth=0, zorder=2)
    axes.vlines(x, low, high, color=palette.band, alpha=0.55, linewidth=3, zorder=3)
    axes.plot(x, observed, color=palette.accent, linewidth=1.6, zorder=4)
    size = 26 + 60 * np.sqrt(curve["weight"] / curve["weight"].max())
    for chosen, colour, marker in ((~outside, palette.accent, "o"), (outside, palette.bad, "D")):
        axes.scatter(x[chosen], observed[chosen], s=size[chosen], color=colour, marker=marker, linewidth=0, zorder=5)


def _span(curve: Table) -> tuple[np.ndarray, np.ndarray]:
    """All that is drawn of a curve, along the two axes."""
    return curve["predicted"], np.concatenate([curve[name] for name in ("predicted", "observed", "low", "high")])


def _limits(values: np.ndarray) -> tuple[float, float]:
    """All of [0, 1], or a close-up where the values lie near each other."""
    low, high = float(values.min()), float(values.max())
    if high - low > CLOSE:
        return -0.02, 1.02
    room = 0.1 * (high - low) or 0.02
    return max(low - room, -room / 5), min(high + room, 1 + room / 5)


def _draw_histogram(axes: "Axes", histogram: Table, palette: Palette) -> None:
    share = 100 * histogram["weight"] / histogram["weight"].sum()
    width = histogram["upper"] - histogram["lower"]
    axes.bar(histogram["lower"], share, width=0.86 * width, align="edge", color=palette.accent, alpha=0.55)
    axes.set(xlabel="Predicted probability", ylabel="% of rows", ylim=(0, 1.08 * share.max()))
    dress(axes, palette)


DRAWING = Drawing(
    draw,
    size=(5.2, 6.1),
    legend=(("dot", "within chance"), ("diamond", "beyond chance"), ("band", "95 % band if calibrated")),
)
