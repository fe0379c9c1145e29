"""The pictures of forecasts: levels, coverage and spread."""

from collections.abc import Callable

import numpy as np

from calibrant.reports.charts import COLOURS, STYLE, grid, svg
from calibrant.results import Table

SIZE = (5.2, 4.3)


def levels(table: Table) -> str:
    """Shares of outcomes at the levels of their forecasts, with the band that holds all bars of a calibrated one."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=SIZE)
        axes = figure.subplots()
        lower, upper, share = table["lower"], table["upper"], 100 * table["observed"]
        low, high = 100 * table["low"], 100 * table["high"]
        outside = (share < low) | (share > high)
        width = 0.86 * (upper - lower)
        for chosen, colour in ((~outside, "accent"), (outside, "bad")):
            axes.bar((lower + upper)[chosen] / 2, share[chosen], width=width[chosen], color=COLOURS[colour], alpha=0.75)
        axes.fill_between([0, 1], low[0], high[0], color=COLOURS["band"], alpha=0.3, linewidth=0, zorder=3)
        axes.axhline(100 / len(share), color=COLOURS["ink"], linewidth=1, dashes=(4, 3), zorder=4)
        axes.set(xlabel="Level of the outcome in its forecast", ylabel="% of rows", xlim=(-0.01, 1.01))
        axes.set_ylim(0, 1.08 * max(share.max(), high.max()))
        grid(axes)
        figure.subplots_adjust(left=0.12, right=0.98, top=0.97, bottom=0.13)
        return svg(figure)


def coverage(table: Table) -> str:
    """Observed against expected coverage of central intervals, with exact confidence intervals."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=SIZE)
        axes = figure.subplots()
        x, seen, low, high = (100 * table[name] for name in ("expected", "observed", "low", "high"))
        outside = (x < low) | (x > high)
        axes.plot([0, 100], [0, 100], color=COLOURS["muted"], linewidth=1, dashes=(4, 3), zorder=1)
        axes.plot(x, seen, color=COLOURS["accent"], linewidth=1.6, zorder=3)
        for chosen, colour, marker in ((~outside, "accent", "o"), (outside, "bad", "D")):
            axes.vlines(x[chosen], low[chosen], high[chosen], color=COLOURS[colour], linewidth=2.2, alpha=0.6, zorder=2)
            axes.scatter(x[chosen], seen[chosen], s=22, color=COLOURS[colour], marker=marker, zorder=4)
        axes.set(xlabel="Promised by the interval, %", ylabel="Held by the interval, %")
        axes.set(xlim=(-2, 102), ylim=(-2, 102))
        grid(axes)
        figure.subplots_adjust(left=0.13, right=0.98, top=0.97, bottom=0.13)
        return svg(figure)


def spread(table: Table) -> str:
    """Observed against predicted spread, on axes that share their unit."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=SIZE)
        axes = figure.subplots()
        x, seen = table["predicted"], table["observed"]
        room = 0.06 * (max(x.max(), seen.max()) - min(x.min(), seen.min()) or 1.0)
        line = np.array([x.min() - room, x.max() + room])
        axes.plot(line, line, color=COLOURS["muted"], linewidth=1, dashes=(4, 3), zorder=1)
        axes.plot(x, seen, color=COLOURS["accent"], linewidth=1.6, zorder=3)
        axes.scatter(x, seen, s=30, color=COLOURS["accent"], zorder=4)
        axes.set(xlabel="Predicted standard deviation", ylabel="Root mean squared error", xlim=tuple(line))
        axes.set_ylim(min(seen.min(), line[0]) - room / 2, max(seen.max(), line[1]) + room / 2)
        grid(axes)
        figure.subplots_adjust(left=0.15, right=0.98, top=0.97, bottom=0.13)
        return svg(figure)


CHARTS: dict[str, Callable[[Table], str]] = {"levels": levels, "coverage": coverage, "spread": spread}
"""What draws which kind of picture."""
