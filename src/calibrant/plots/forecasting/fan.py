"""The fan chart: central intervals of single rows, and what happened."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Self

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError, as_column, as_levels, check_count, check_one_of, check_same_length
from calibrant.distributions.empirical.quantiles import central_levels, fan_of, forecast_at
from calibrant.distributions.multivariate import dimensions
from calibrant.distributions.reading.conversion import as_problem
from calibrant.estimators.scoring_rules.forecast_scores import central_interval
from calibrant.plots.base import Drawing, Legend, PredictionDisplay, Tables, plotter
from calibrant.plots.style import Palette, dress
from calibrant.results import Table
from calibrant.typing import ArrayLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(axes: "Axes", tables: Tables, palette: Palette) -> None:
    """Nested bars of intervals, and outcomes as marks."""
    fan, levels = tables["fan"], levels_in(tables)
    x, outcome = fan["at"], fan["outcome"]
    dress(axes, palette)
    thick = min(7.0, 230 / len(x))
    for i, level in enumerate(sorted(levels, reverse=True)):
        low, high = fan[f"low_{level:g}"], fan[f"high_{level:g}"]
        shade = 0.22 + 0.5 * i / len(levels)
        axes.vlines(x, low, high, color=palette.band, alpha=shade, linewidth=thick, zorder=2 + i)
    axes.scatter(x, fan["median"], s=thick * 5, color=palette.ink, marker="_", linewidth=1, zorder=6)
    inside = _inside(fan, max(levels))
    for chosen, colour, marker in ((inside, palette.accent, "o"), (~inside, palette.bad, "D")):
        axes.scatter(x[chosen], outcome[chosen], s=17, color=colour, marker=marker, linewidth=0, zorder=7)
    axes.margins(x=0.02, y=0.05)
    is_ordered = bool(tables["settings"]["is_ordered"][0])
    axes.set(
        xlabel="Rows in the order of their median" if is_ordered else "Time or order of the row",
        ylabel="Forecast and outcome",
    )
    if is_ordered:
        axes.tick_params(labelbottom=False)


def _inside(fan: Table, level: float) -> np.ndarray:
    return (fan["outcome"] >= fan[f"low_{level:g}"]) & (fan["outcome"] <= fan[f"high_{level:g}"])


def levels_in(tables: Tables) -> list[float]:
    """The levels of the intervals."""
    levels: list[float] = tables["intervals"]["level"].tolist()
    return levels


def legend_of(tables: Tables) -> Legend:
    """Marks and words."""
    *others, last = [f"{100 * level:g}" for level in sorted(levels_in(tables))]
    intervals = f"{', '.join(others)} and {last} % intervals" if others else f"{last} % interval"
    return (("dot", "outcome"), ("diamond", f"outside {last} %"), ("band", intervals))


class FanDisplay(PredictionDisplay):
    """The fan chart: central intervals of single rows with their medians, and what happened.

    Rows lie along ``at``, such as time, or in the order of their medians. ``rows`` picks which of many are shown: "even" ones
    along the whole, the "first" or the "last". Of outcomes, one in twenty lies outside intervals of 95 %. ``tables`` hold
    ``fan``, ``intervals`` and ``settings``. O(n).

    >>> from calibrant import Normal
    >>> display = FanDisplay.from_predictions([0.0, 3.0], Normal([0.0, 1.0], 1.0), levels=[0.5])
    >>> display.tables["fan"]["high_0.5"].round(2)
    array([0.67, 1.67])
    """

    drawing = Drawing(draw, legend_of=legend_of, is_wide=True, size=(7.8, 3.9), margins=(0.75, 0.12, 0.56, 0.1))

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        at: ArrayLike | None = None,
        rows: Literal["even", "first", "last"] = "even",
        max_rows: int = 60,
        levels: Sequence[float] | None = None,
    ) -> Self:
        """Intervals of these levels, for at most ``max_rows`` rows; 50, 80 and 95 %, or those that quantile forecasts have."""
        check_one_of(rows, ("even", "first", "last"), "rows")
        check_count(max_rows, "max_rows")
        y, predictions = as_problem(y_true, y_pred)
        fan = fan_of(predictions)
        usual = (0.5, 0.8, 0.95) if fan is None else central_levels(fan)[-3:]
        asked = as_levels(usual if levels is None else levels, "levels")
        if dimensions(predictions):
            raise InputError("intervals are those of numbers, and these predictions are vectors: give one coordinate")
        median = forecast_at(predictions, [0.5], "fan")[:, 0]
        place = median if at is None else as_column(at, "at")
        check_same_length(len(place), len(predictions), "at", "y_true")
        shown = thinned(np.argsort(place, kind="stable"), rows, max_rows)
        part = predictions[shown]
        ends = {level: central_interval(part, level, "fan") for level in asked}
        columns = {
            "at": np.arange(len(shown)) if at is None else place[shown],
            "outcome": to_numpy(y)[shown],
            "median": median[shown],
            **{f"{end}_{level:g}": ends[level][i] for level in asked for i, end in enumerate(("low", "high"))},
        }
        settings = Table(is_ordered=[at is None], rows=[len(predictions)])
        return cls({"fan": Table(columns), "intervals": Table(level=asked), "settings": settings})


def thinned(order: np.ndarray, rows: str, most: int) -> np.ndarray:
    """At most so many of the ordered rows: the first, the last, or at even steps.

    >>> thinned(np.arange(10), "even", 4), thinned(np.arange(10), "last", 3)
    (array([0, 3, 6, 9]), array([7, 8, 9]))
    """
    if len(order) <= most:
        return order
    if rows == "even":
        return order[np.linspace(0, len(order) - 1, most).round().astype(np.intp)]
    return order[:most] if rows == "first" else order[-most:]


fan = plotter(FanDisplay.from_predictions, "fan")
