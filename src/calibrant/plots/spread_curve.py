"""Predicted spread against how far off forecasts were."""

from typing import TYPE_CHECKING

import numpy as np

from calibrant.plots.picture import Drawing, Tables
from calibrant.plots.style import Palette, dress

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(axes: "Axes", tables: Tables, palette: Palette) -> None:
    """Observed against predicted spread, on axes that share their unit."""
    table = tables["spread"]
    x, seen = table["predicted"], table["observed"]
    room = 0.06 * (max(x.max(), seen.max()) - min(x.min(), seen.min()) or 1.0)
    line = np.array([x.min() - room, x.max() + room])
    axes.plot(line, line, color=palette.muted, linewidth=1, dashes=(4, 3), zorder=1)
    axes.plot(x, seen, color=palette.accent, linewidth=1.6, zorder=3)
    axes.scatter(x, seen, s=30, color=palette.accent, linewidth=0, zorder=4)
    axes.set(xlabel="Predicted standard deviation", ylabel="Root mean squared error", xlim=tuple(line))
    axes.set_ylim(min(seen.min(), line[0]) - room / 2, max(seen.max(), line[1]) + room / 2)
    dress(axes, palette)


DRAWING = Drawing(draw, legend=(("dot", "a group of rows"),), margins=(0.8, 0.12, 0.56, 0.1))
