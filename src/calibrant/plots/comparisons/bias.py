"""The bias of estimators against the number of rows, from a study of the lab."""

from typing import TYPE_CHECKING, Self

import numpy as np

from calibrant._validate import InputError
from calibrant.plots.base import Display, Drawing, Layout, Tables, plotter
from calibrant.plots.style import MARKERS, SERIES, Palette, dress, label_ends
from calibrant.results import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NEEDED = ("n", "estimator", "bias", "bias_error")
"""Columns of the table of a study."""

MAX_LINES = 12
"""Lines at most."""


def draw(axes: "Axes", tables: Tables, palette: Palette) -> None:
    """A line per estimator, with two Monte-Carlo standard errors on either side."""
    table = tables["bias"]
    dress(axes, palette)
    axes.set_xscale("log")
    axes.axhline(0, color=palette.muted, linewidth=1, dashes=(4, 3), zorder=1)
    ends = []
    for i, name in enumerate(names_in(table)):
        rows = np.flatnonzero(table["estimator"] == name)
        rows = rows[np.argsort(table["n"][rows], kind="stable")]
        n, bias, error = (table[column][rows] for column in ("n", "bias", "bias_error"))
        colour, marker = getattr(palette, SERIES[i % len(SERIES)]), MARKERS[i % len(MARKERS)]
        look = {"linestyle": "-" if i < len(SERIES) else ":", "color": colour}
        axes.fill_between(n, bias - 2 * error, bias + 2 * error, color=colour, alpha=0.15, linewidth=0, zorder=2)
        axes.plot(n, bias, marker=marker, markersize=5.5, linewidth=1.6, zorder=3, **look)
        ends.append((name, float(n[-1]), float(bias[-1]), colour))
    sizes = sorted(set(table["n"].tolist()))
    shown = sizes if len(sizes) <= 6 else sizes[:: -(-len(sizes) // 6)]
    axes.set_xticks(shown, [f"{size:,}" for size in shown])
    axes.minorticks_off()
    axes.margins(x=0.04, y=0.08)
    axes.set(xlabel="Rows", ylabel="Bias: mean estimate less the truth")
    label_ends(axes, ends)


def names_in(table: Table) -> list[str]:
    """The estimators in the order of the study."""
    return list(dict.fromkeys(table["estimator"].tolist()))


def layout_of(tables: Tables) -> Layout:
    """Room for names at the ends of the lines."""
    longest = max(min(len(str(name)), 24) for name in names_in(tables["bias"]))
    return Layout((5.2, 3.9), (0.8, 0.2 + 0.075 * longest, 0.56, 0.12))


class BiasDisplay(Display):
    """The bias of estimators against the number of rows, with two Monte-Carlo standard errors on either side.

    The table is that of :func:`calibrant.lab.bias_study`, and ``tables`` hold it as ``bias``.

    >>> names = ["few", "few", "many", "many"]
    >>> study = Table(n=[100, 400] * 2, estimator=names, bias=[0.06, 0.03, 0.2, 0.1], bias_error=[0.01] * 4)
    >>> names_in(BiasDisplay.from_study(study).tables["bias"])
    ['few', 'many']
    """

    drawing = Drawing(draw, layout_of=layout_of)

    @classmethod
    def from_study(cls, table: Table) -> Self:
        """The table as it is."""
        missing = [name for name in NEEDED if name not in table]
        if missing:
            raise InputError(
                f"the table of a study has columns {', '.join(NEEDED)}; this one lacks {', '.join(missing)}"
            )
        if not table.n_rows or not np.all(np.isfinite(table["bias"])):
            raise InputError("the study knows no bias of some estimator: leave out those without a truth")
        if len(names_in(table)) > MAX_LINES:
            raise InputError(f"{len(names_in(table))} lines cannot be told apart: give at most {MAX_LINES} estimators")
        return cls({"bias": table})


bias = plotter(BiasDisplay.from_study, "bias")
