"""Predictions before and after recalibration, side by side on the same axes."""

from typing import TYPE_CHECKING, Any, Self

from calibrant._validate import InputError
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.reading.conversion import as_distribution
from calibrant.plots.base import Display, Drawing, Layout, Legend, Tables, plotter
from calibrant.plots.classification.reliability import ReliabilityDisplay, draw_pair
from calibrant.plots.forecasting.pit_histogram import PITHistogramDisplay
from calibrant.plots.style import Palette, inches_of
from calibrant.recalibration.base import HeldOut
from calibrant.results import Table
from calibrant.typing import ArrayLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(axes: "Axes", tables: Tables, palette: Palette) -> None:
    """Two diagrams whose axes have the same limits."""
    axes.set_axis_off()
    width = 0.5 - 0.25 / inches_of(axes)[0]
    before, after = (side_of(tables, side) for side in ("before", "after"))
    for part, other, left, title in ((before, after, 0.0, "Before"), (after, before, 1 - width, "After")):
        draw_side = _draw_curve if "curve" in part else _draw_histogram
        main = draw_side(axes, part, other, (left, width), palette)
        main.set_title(title, fontsize=11, color=palette.ink, pad=5)


def _draw_curve(axes: "Axes", part: Tables, other: Tables, place: tuple[float, float], palette: Palette) -> "Axes":
    left, width = place
    main, below = (axes.inset_axes((left, low, width, high)) for low, high in ((0.24, 0.76), (0.0, 0.2)))
    below.sharex(main)
    draw_pair(main, below, {**part, "beside": other["curve"]}, palette)
    if left:
        main.set_ylabel("")
        below.set_ylabel("")
    return main


def _draw_histogram(axes: "Axes", part: Tables, other: Tables, place: tuple[float, float], palette: Palette) -> "Axes":
    main = axes.inset_axes((place[0], 0.0, place[1], 1.0))
    PITHistogramDisplay.drawing.draw(main, {**part, "beside": other["pit_histogram"]}, palette)
    if place[0]:
        main.set_ylabel("")
    return main


PARTS = ("curve", "histogram", "pit_histogram", "settings")
"""The tables that one side may have."""


def paired(before: Tables, after: Tables) -> dict[str, Table]:
    """The tables of both sides, each under its name with that of its side in front.

    >>> list(paired({"pit_histogram": Table()}, {"pit_histogram": Table()}))
    ['before_pit_histogram', 'after_pit_histogram']
    """
    sides = {"before": before, "after": after}
    return {f"{side}_{name}": tables[name] for side, tables in sides.items() for name in PARTS if name in tables}


def side_of(tables: Tables, side: str) -> Tables:
    """The tables of one side, by the names they have on their own."""
    return {name: tables[f"{side}_{name}"] for name in PARTS if f"{side}_{name}" in tables}


def legend_of(tables: Tables) -> Legend:
    """That of one side."""
    part = side_of(tables, "before")
    drawing = ReliabilityDisplay.drawing if "curve" in part else PITHistogramDisplay.drawing
    return drawing.marks(part)


def layout_of(tables: Tables) -> Layout:
    """Wide, and higher where there are two parts."""
    return Layout((7.8, 4.9 if "before_curve" in tables else 3.6), (0.8, 0.12, 0.56, 0.36))


class BeforeAfterDisplay(Display):
    """Predictions before and after recalibration, side by side on the same axes.

    Class probabilities show reliability diagrams (:class:`ReliabilityDisplay`), forecasts histograms of PIT values
    (:class:`PITHistogramDisplay`). Give rows that taught the map nothing: held-out ones, or new ones. ``tables`` are those of both,
    with ``before_`` and ``after_`` in front of their names.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(300)
    >>> display = BeforeAfterDisplay.from_predictions((rng.random(300) < p**2) * 1, p, p**2, n_resamples=199)
    >>> sorted(display.tables)[:3]
    ['after_curve', 'after_histogram', 'after_settings']
    """

    drawing = Drawing(draw, is_wide=True, layout_of=layout_of, legend_of=legend_of, raised=0.25)

    @classmethod
    def from_predictions(cls, y_true: ArrayLike, before: ArrayLike, after: ArrayLike, **options: Any) -> Self:
        """Both sides; ``options`` are those of the display of one side."""
        if isinstance(after, tuple) and after and isinstance(after[0], HeldOut):
            raise InputError(
                "after holds the folds of a map: give them to calibrant.reports.before_and_after, or give all predictions here"
            )
        is_class = isinstance(as_distribution(before), Categorical | Bernoulli)
        one: Any = ReliabilityDisplay if is_class else PITHistogramDisplay
        return cls(paired(*(one.from_predictions(y_true, y_pred, **options).tables for y_pred in (before, after))))


before_after = plotter(BeforeAfterDisplay.from_predictions, "before_after")
