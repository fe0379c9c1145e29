"""The coverage curve: what intervals promise, and what they hold."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np

from calibrant._array import to_numpy
from calibrant.distributions.continuous.finite_interval import Uniform
from calibrant.distributions.empirical.ensemble import Ensemble
from calibrant.distributions.empirical.quantiles import fan_of
from calibrant.distributions.reading.conversion import as_problem
from calibrant.estimators.forecast_errors.pit import PIT
from calibrant.inference.proportions import coverage as measured
from calibrant.plots.base import Drawing, PredictionDisplay, Tables, plotter
from calibrant.plots.style import Palette, dress
from calibrant.typing import ArrayLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEVELS = tuple(np.round(np.arange(0.05, 1.0, 0.05), 2).tolist())
"""Levels of the intervals whose coverage is drawn."""


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


class CoverageDisplay(PredictionDisplay):
    """The coverage curve: the share of outcomes that central intervals hold, against what they promise.

    With exact 95 % confidence intervals (:func:`calibrant.coverage`); below the diagonal, intervals are too narrow. Of
    ensembles, intervals end between members, so that a calibrated ensemble holds what it promises. ``tables`` hold ``coverage``.

    >>> from calibrant import Normal
    >>> y = np.random.default_rng(0).normal(0.0, 1.5, 200)
    >>> CoverageDisplay.from_predictions(y, Normal(np.zeros(200), 1.0), levels=[0.5, 0.9]).tables["coverage"]["observed"]
    array([0.355, 0.725])
    """

    drawing = Drawing(draw, legend=(("dot", "within chance"), ("diamond", "beyond chance")))

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        levels: Sequence[float] | None = None,
        confidence_level: float = 0.95,
        sample_weight: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
    ) -> Self:
        """The coverage of intervals of these levels, from 5 to 95 %; of quantile forecasts, of those that they have.

        ``clusters`` has one label per row, for intervals that allow for rows which belong together.
        """
        y, predictions = as_problem(y_true, y_pred)
        if levels is None and fan_of(predictions) is None:
            levels = LEVELS
        if isinstance(predictions, Ensemble):
            n = len(predictions)
            y, predictions = PIT().of(to_numpy(y), predictions), Uniform(np.zeros(n), np.ones(n))
        table = measured(
            y,
            predictions,
            levels=levels,
            sample_weight=sample_weight,
            clusters=clusters,
            confidence_level=confidence_level,
        )
        return cls({"coverage": table})


coverage = plotter(CoverageDisplay.from_predictions, "coverage")
