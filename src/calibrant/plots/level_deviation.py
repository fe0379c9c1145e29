"""The distribution function of levels, less the diagonal."""

from typing import TYPE_CHECKING, Self

import numpy as np

from calibrant.distributions.conversion import as_distribution
from calibrant.estimators.pit import usual_prerank
from calibrant.inference.pit_curve import PITCurve
from calibrant.inference.reliability import beyond_chance
from calibrant.plots.display import PredictionDisplay, plotter
from calibrant.plots.picture import Drawing, Legend, Tables, level_in
from calibrant.plots.style import Palette, dress
from calibrant.results import Table
from calibrant.typing import ArrayLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(axes: "Axes", tables: Tables, palette: Palette) -> None:
    """How far the share of outcomes up to each level is from that level, with the band of all points at once."""
    curve = tables["level_curve"]
    x = curve["level"]
    seen, low, high = (100 * (curve[name] - x) for name in ("observed", "low", "high"))
    dress(axes, palette)
    axes.axhline(0, color=palette.muted, linewidth=1, dashes=(4, 3), zorder=1)
    axes.fill_between([0, *x, 1], [0, *low, 0], [0, *high, 0], color=palette.band, alpha=0.3, linewidth=0, zorder=2)
    axes.plot([0, *x, 1], [0, *seen, 0], color=palette.accent, linewidth=1.8, zorder=3)
    wrong = np.where(beyond_chance(curve), seen, np.nan)
    every = max(1, len(x) // 12)
    axes.plot(x, wrong, color=palette.bad, linewidth=2.4, marker="D", markersize=5, markevery=every, zorder=4)
    reach = 1.12 * max(np.abs(seen).max(), np.abs(low).max(), np.abs(high).max())
    axes.set(xlim=(-0.01, 1.01), ylim=(-reach, reach), xlabel="Level of the outcome in its forecast")
    axes.set_ylabel("Outcomes up to the level, less the level, %")


def legend_of(tables: Tables) -> Legend:
    """Marks and words."""
    return (("line", "observed"), ("diamond", "beyond chance"), ("band", f"{level_in(tables)} band if calibrated"))


class LevelCurveDisplay(PredictionDisplay):
    """The distribution function of levels, less the diagonal: zero where the forecast is calibrated.

    It needs no bins, and its band holds all points of a calibrated forecast at once: :class:`~calibrant.PITCurve`. Above zero
    on the left and below on the right, forecasts are too sure; the other way round, too timid; all above, too high; all
    below, too low. ``tables`` hold ``level_curve``. Säilynoja, Bürkner & Vehtari (2022).

    >>> from calibrant import Normal
    >>> y = np.random.default_rng(0).normal(1.0, 1.0, 200)
    >>> curve = LevelCurveDisplay.from_predictions(y, Normal(np.zeros(200), 1.0), n_points=4).tables["level_curve"]
    >>> curve["observed"] - curve["level"]
    array([-0.21, -0.33, -0.4 ])
    """

    drawing = Drawing(draw, legend_of=legend_of)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        n_points: int = 100,
        level: float = 0.95,
        sample_weight: ArrayLike | None = None,
        seed: int = 0,
    ) -> Self:
        """The curve at ``n_points - 1`` levels."""
        predictions = as_distribution(y_pred)
        made = PITCurve(n_points, level, prerank=usual_prerank(predictions), seed=seed)
        table = made(y_true, predictions, sample_weight=sample_weight)
        return cls({"level_curve": table, "settings": Table(level=[level])})


level_curve = plotter(LevelCurveDisplay.from_predictions, "level_curve")
