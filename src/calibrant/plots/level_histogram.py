"""The histogram of levels: where outcomes lie in their forecasts."""

from typing import TYPE_CHECKING

from calibrant.plots.picture import Drawing, Tables
from calibrant.plots.style import Palette, dress

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(axes: "Axes", tables: Tables, palette: Palette) -> None:
    """Shares of outcomes at the levels of their forecasts, with the band that holds all bars of a calibrated one."""
    table = tables["levels"]
    lower, upper, share = table["lower"], table["upper"], 100 * table["observed"]
    low, high = 100 * table["low"], 100 * table["high"]
    outside = (share < low) | (share > high)
    width = 0.86 * (upper - lower)
    for chosen, colour in ((~outside, palette.accent), (outside, palette.bad)):
        axes.bar((lower + upper)[chosen] / 2, share[chosen], width=width[chosen], color=colour, alpha=0.75)
    axes.fill_between([0, 1], low[0], high[0], color=palette.band, alpha=0.3, linewidth=0, zorder=3)
    axes.axhline(100 / len(share), color=palette.ink, linewidth=1, dashes=(4, 3), zorder=4)
    axes.set(xlabel="Level of the outcome in its forecast", ylabel="% of rows", xlim=(-0.01, 1.01))
    axes.set_ylim(0, 1.08 * max(share.max(), high.max()))
    dress(axes, palette)


DRAWING = Drawing(
    draw, legend=(("dot", "within chance"), ("diamond", "beyond chance"), ("band", "95 % band if calibrated"))
)
