"""Sharpness against error: how wide intervals are, and how far outcomes lie from their middle."""

from typing import TYPE_CHECKING, Self

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError, check_count, check_fraction
from calibrant.distributions.multivariate import dimensions
from calibrant.distributions.reading.conversion import as_problem
from calibrant.estimators.binned.binning import EqualMass
from calibrant.estimators.scoring_rules.forecast_scores import central_interval
from calibrant.plots.base import Drawing, Legend, PredictionDisplay, Tables, plotter
from calibrant.plots.forecasting.fan import thinned
from calibrant.plots.style import Palette, dress
from calibrant.results import Table
from calibrant.typing import ArrayLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(axes: "Axes", tables: Tables, palette: Palette) -> None:
    """Rows as pale dots, and the quantile of their errors in groups of similar width."""
    rows, groups = tables["rows"], tables["groups"]
    x, seen, low, high = (groups[name] for name in ("width", "error", "low", "high"))
    outside = (x < low) | (x > high)
    right = 1.04 * max(float(rows["width"].max()), float(x.max()))
    left = 0.96 * min(float(rows["width"].min()), float(x.min()))
    far = max(float(np.quantile(rows["error"], 0.995)), 1.1 * float(np.max(seen)), right)
    high = np.minimum(high, 2 * far)
    dress(axes, palette)
    axes.scatter(rows["width"], rows["error"], s=9, color=palette.band, alpha=0.45, linewidth=0, zorder=2)
    axes.plot([left, right], [left, right], color=palette.muted, linewidth=1, dashes=(4, 3), zorder=3)
    axes.plot(x, seen, color=palette.accent, linewidth=1.6, zorder=4)
    for chosen, colour, marker in ((~outside, palette.accent, "o"), (outside, palette.bad, "D")):
        axes.vlines(x[chosen], low[chosen], high[chosen], color=colour, linewidth=2.2, alpha=0.6, zorder=4)
        axes.scatter(x[chosen], seen[chosen], s=34, color=colour, marker=marker, linewidth=0, zorder=5)
    axes.set(xlim=(left, right or 1.0), ylim=(0, 1.04 * far or 1.0))
    level = f"{100 * float(tables['settings']['level'][0]):g} %"
    axes.set(xlabel=f"Half the width of the {level} interval", ylabel="Distance of the outcome from its middle")


def legend_of(tables: Tables) -> Legend:
    """Marks and words."""
    level = f"{100 * float(tables['settings']['level'][0]):g} %"
    return (("dot", f"{level} of a group are nearer"), ("diamond", "beyond chance"), ("band", "a row"))


class SharpnessDisplay(PredictionDisplay):
    """Sharpness against error: distances of outcomes from the middle of their interval, against half its width.

    Dots below the dashed line lie in their interval. In groups of equally many rows by width, the marks are the quantile of
    the distances at the ``level`` of the interval, with a distribution-free 95 % confidence interval (order statistics): on the
    line, intervals of that width hold what they promise; above, they are too narrow. ``tables`` hold ``rows`` (at most
    ``max_rows``), ``groups`` and ``settings``. O(n log n).

    >>> from calibrant import Normal
    >>> y = np.random.default_rng(0).normal(0.0, 2.0, 500)
    >>> groups = SharpnessDisplay.from_predictions(y, Normal(np.zeros(500), 1.0)).tables["groups"]
    >>> groups["width"].round(2), groups["error"].round(2)
    (array([1.64]), array([3.02]))
    """

    drawing = Drawing(draw, legend_of=legend_of, margins=(0.8, 0.12, 0.56, 0.1))

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        level: float = 0.9,
        n_bins: int = 8,
        max_rows: int = 500,
    ) -> Self:
        """Central intervals of one level, in ``n_bins`` groups by their width."""
        check_fraction(level, "level")
        check_count(n_bins, "n_bins")
        check_count(max_rows, "max_rows")
        y, predictions = as_problem(y_true, y_pred)
        if dimensions(predictions):
            raise InputError("intervals are those of numbers, and these predictions are vectors: give one coordinate")
        low, high = (end.astype(np.float64) for end in central_interval(predictions, level, "sharpness"))
        width, error = (high - low) / 2, np.abs(to_numpy(y) - (low + high) / 2)
        which = EqualMass(n_bins).bins(width).index(width)
        groups = [_quantile(width[which == b], error[which == b], level) for b in np.unique(which)]
        shown = thinned(np.argsort(width, kind="stable"), "even", max_rows)
        return cls(
            {
                "rows": Table(width=width[shown], error=error[shown]),
                "groups": Table({name: [group[name] for group in groups] for name in groups[0]}),
                "settings": Table(level=[level]),
            }
        )


def _quantile(width: np.ndarray, error: np.ndarray, level: float) -> dict[str, float]:
    """The quantile of errors with its interval; an end that no order statistic reaches is zero, or infinite."""
    from scipy.stats import binom

    n, ordered = len(error), np.sort(error)
    below, above = int(binom.ppf(0.025, n, level)), int(binom.isf(0.025, n, level))
    return {
        "rows": n,
        "width": float(width.mean()),
        "error": float(np.quantile(ordered, level, method="inverted_cdf")),
        "low": float(ordered[below - 1]) if below > 0 else 0.0,
        "high": float(ordered[above]) if above < n else np.inf,
    }


sharpness = plotter(SharpnessDisplay.from_predictions, "sharpness")
