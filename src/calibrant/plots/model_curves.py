"""The curves of several models in one diagram: what each claimed, and what happened."""

from typing import TYPE_CHECKING

import numpy as np

from calibrant.plots.axes import limits_of
from calibrant.plots.end_labels import label_ends
from calibrant.plots.picture import Drawing, Layout, Tables
from calibrant.plots.style import MARKERS, SERIES, Palette, dress
from calibrant.results import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LETTERS = 16
"""Letters of a model's name at most."""

NAMES = {
    "classes": ("Predicted probability", "Observed frequency"),
    "coverage": ("Promised by the interval", "Held by the interval"),
}


def draw(axes: "Axes", tables: Tables, palette: Palette) -> None:
    """A line a model, named at its end."""
    curves = curves_in(tables)
    x = np.concatenate([curve["predicted"] for curve in curves])
    y = np.concatenate([curve["observed"] for curve in curves])
    limits = limits_of(np.concatenate([x, y]))
    axes.plot(limits, limits, color=palette.muted, linewidth=1, dashes=(4, 3), zorder=1)
    ends = []
    for i, curve in enumerate(curves):
        colour, marker = getattr(palette, SERIES[i % len(SERIES)]), MARKERS[i % len(MARKERS)]
        order = np.argsort(curve["predicted"], kind="stable")
        claimed, seen = curve["predicted"][order], curve["observed"][order]
        axes.plot(claimed, seen, color=colour, marker=marker, markersize=4.5, linewidth=1.4, alpha=0.9, zorder=3)
        ends.append((str(curve["model"][0]), float(claimed[-1]), float(seen[-1]), colour))
    first, second = NAMES[str(tables["settings"]["kind"][0])]
    axes.set(xlabel=first, ylabel=second, xlim=limits, ylim=limits)
    dress(axes, palette)
    label_ends(axes, ends, most=LETTERS)


def curves_in(tables: Tables) -> list[Table]:
    """Those of all models, in their order."""
    return [tables[f"curve_{i}"] for i in range(len(tables) - 1)]


def layout_of(tables: Tables) -> Layout:
    """Room for the longest name beside the axes."""
    longest = max(min(len(str(curve["model"][0])), LETTERS) for curve in curves_in(tables))
    right = 0.2 + 0.085 * longest
    return Layout((5.0 + right, 4.6), (0.7, right, 0.56, 0.1))


DRAWING = Drawing(draw, layout_of=layout_of, legend=(("dashed", "as claimed"),))
