"""The coverage curve: what intervals promise, and what they hold."""

from typing import TYPE_CHECKING

from calibrant.plots.picture import Drawing, Tables
from calibrant.plots.style import Palette, dress

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(axes: "Axes", tables: Tables, palette: Palette) -> None:
    """Observed against expected coverage of central intervals, with exact confidence intervals."""
    table = tables["coverage"]
    x, seen, low, high = (100 * table[name] for name in ("expected", "observed", "low", "high"))
    outside = (x < low) | (x > high)
    axes.plot([0, 100], [0, 100], color=palette.muted, linewidth=1, dashes=(4, 3), zorder=1)
    axes.plot(x, seen, color=palette.accent, linewidth=1.6, zorder=3)
    for chosen, colour, marker in ((~outside, palette.accent, "o"), (outside, palette.bad, "D")):
        axes.vlines(x[chosen], low[chosen], high[chosen], color=colour, linewidth=2.2, alpha=0.6, zorder=2)
        axes.scatter(x[chosen], seen[chosen], s=22, color=colour, marker=marker, linewidth=0, zorder=4)
    axes.set(xlabel="Promised by the interval, %", ylabel="Held by the interval, %")
    axes.set(xlim=(-2, 102), ylim=(-2, 102))
    dress(axes, palette)


DRAWING = Drawing(draw, legend=(("dot", "within chance"), ("diamond", "beyond chance")))
