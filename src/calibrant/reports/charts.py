"""The pictures of the report, drawn with matplotlib in colours that the page's style sheet sets."""

import io
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.inference.reliability import beyond_chance
from calibrant.results import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    "ink": "#010101",
    "muted": "#020202",
    "grid": "#030303",
    "band": "#040404",
    "accent": "#050505",
    "bad": "#060606",
}
"""Stand-ins drawn into the SVG and replaced by the page's CSS variables, so that charts follow light and dark."""

CLOSE = 0.4
"""A smaller range of values than this is drawn close up."""

STYLE: dict[Any, Any] = {
    "font.size": 11,
    "font.family": "sans-serif",
    "svg.fonttype": "none",
    "svg.hashsalt": "calibrant",
    "axes.edgecolor": COLOURS["grid"],
    "axes.labelcolor": COLOURS["ink"],
    "text.color": COLOURS["ink"],
    "xtick.color": COLOURS["muted"],
    "ytick.color": COLOURS["muted"],
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def reliability(curve: Table, histogram: Table, beside: Table | None = None) -> str:
    """Observed against predicted, with the consistency band and the spread of the predictions, as SVG.

    The axes have room for the curve that is shown ``beside`` it, too.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(5.2, 6.1))
        main, below = figure.subplots(2, 1, sharex=True, height_ratios=[5, 1.1])
        _draw_curve(main, curve)
        claims, outcomes = zip(*(_span(one) for one in (curve, curve if beside is None else beside)), strict=True)
        main.set(xlim=_limits(np.concatenate(claims)), ylim=_limits(np.concatenate(outcomes)))
        _draw_histogram(below, histogram)
        figure.align_ylabels()
        figure.subplots_adjust(left=0.13, right=0.98, top=0.985, bottom=0.085, hspace=0.07)
        return svg(figure)


def _draw_curve(axes: "Axes", curve: Table) -> None:
    x, observed, low, high = (curve[name] for name in ("predicted", "observed", "low", "high"))
    outside = beyond_chance(curve)
    axes.plot([0, 1], [0, 1], color=COLOURS["muted"], linewidth=1, dashes=(4, 3), zorder=1)
    axes.fill_between(x, low, high, color=COLOURS["band"], alpha=0.25, linewidth=0, zorder=2)
    axes.vlines(x, low, high, color=COLOURS["band"], alpha=0.55, linewidth=3, zorder=3)
    axes.plot(x, observed, color=COLOURS["accent"], linewidth=1.6, zorder=4)
    size = 26 + 60 * np.sqrt(curve["weight"] / curve["weight"].max())
    for chosen, colour, marker in ((~outside, "accent", "o"), (outside, "bad", "D")):
        axes.scatter(x[chosen], observed[chosen], s=size[chosen], color=COLOURS[colour], marker=marker, zorder=5)
    axes.set(ylabel="Observed frequency")
    grid(axes)
    axes.tick_params(labelbottom=False)


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


def _draw_histogram(axes: "Axes", histogram: Table) -> None:
    share = 100 * histogram["weight"] / histogram["weight"].sum()
    width = histogram["upper"] - histogram["lower"]
    axes.bar(histogram["lower"], share, width=0.86 * width, align="edge", color=COLOURS["accent"], alpha=0.55)
    axes.set(xlabel="Predicted probability", ylabel="% of rows", ylim=(0, 1.08 * share.max()))
    grid(axes)


def grid(axes: "Axes") -> None:
    """Quiet lines behind what is drawn, and numbers written out."""
    axes.grid(visible=True, color=COLOURS["grid"], linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    axes.ticklabel_format(style="plain", useOffset=False)


def svg(figure: "Figure") -> str:
    """The drawing as an inline SVG element without a fixed size, its colours taken from CSS."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(
        r'(<svg[^>]*?) (?:width="[^"]*"|height="[^"]*") ?',
        r"\1 ",
        re.sub(r' height="[^"]*"', "", svg, count=1),
        count=1,
    )
    for name, stand_in in COLOURS.items():
        svg = svg.replace(stand_in, f"var(--{name})")
    return svg
