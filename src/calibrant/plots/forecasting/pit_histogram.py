"""PIT values, where outcomes lie in their forecasts: their histogram, and their curve less the diagonal."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Self

import numpy as np

from calibrant.distributions.reading.conversion import as_distribution
from calibrant.estimators.forecast_errors.pit import usual_prerank
from calibrant.inference.pit_bands import PITCurve, PITHistogram
from calibrant.inference.reliability_curve import beyond_chance
from calibrant.plots.base import Drawing, Legend, Mark, PredictionDisplay, Tables, level_in, plotter
from calibrant.plots.style import Palette, dress
from calibrant.results import Table
from calibrant.typing import ArrayLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(axes: "Axes", tables: Tables, palette: Palette) -> None:
    """Shares of PIT values in equal bins, with the band that holds all bars of a calibrated one.

    There is space for the bars of the table ``beside``, too, where there is one.
    """
    table = tables["pit_histogram"]
    lower, upper = table["lower"], table["upper"]
    is_even = bool(np.allclose(upper - lower, upper[0] - lower[0]))
    unit = 100.0 if is_even else 1 / (upper - lower)  # cells of different widths by what was promised
    share, low, high = (unit * table[name] for name in ("observed", "low", "high"))
    outside = (share < low) | (share > high)
    width = 0.86 * (upper - lower)
    for chosen, colour in ((~outside, palette.accent), (outside, palette.bad)):
        axes.bar((lower + upper)[chosen] / 2, share[chosen], width=width[chosen], color=colour, alpha=0.75)
    places = np.stack([lower, upper], axis=1).ravel()
    axes.fill_between(
        places, np.repeat(low, 2), np.repeat(high, 2), color=palette.band, alpha=0.3, linewidth=0, zorder=3
    )
    axes.axhline(100 / len(share) if is_even else 1.0, color=palette.ink, linewidth=1, dashes=(4, 3), zorder=4)
    draw_beyond(axes, (lower + upper)[outside] / 2, share[outside], palette)
    height = "% of rows" if is_even else "Share of rows over share promised"
    axes.set(xlabel="Level of the outcome in its forecast", ylabel=height, xlim=(-0.01, 1.01))
    beside = (unit * tables["beside"]["observed"]).max() if "beside" in tables else 0.0
    axes.set_ylim(0, 1.08 * max(share.max(), high.max(), beside))
    dress(axes, palette)


def draw_beyond(axes: "Axes", x: np.ndarray, height: np.ndarray, palette: Palette) -> None:
    """A mark on top of each bar beyond chance, so that no bar is told by its colour alone."""
    axes.scatter(x, height, s=22, color=palette.bad, marker="D", linewidth=0, zorder=5)


def legend_of(tables: Tables) -> Legend:
    """Marks and words."""
    what: tuple[Mark, str] = ("line", "observed") if "pit_curve" in tables else ("bar", "within chance")
    return (what, ("diamond", "beyond chance"), ("band", f"{level_in(tables)} band if calibrated"))


def _tables(
    name: str,
    make: Callable[..., PITHistogram | PITCurve],
    y_true: ArrayLike,
    y_pred: ArrayLike,
    sample_weight: ArrayLike | None,
    clusters: ArrayLike | None,
) -> dict[str, Table]:
    """What a measure of PIT values makes of predictions, and its level."""
    predictions = as_distribution(y_pred)
    made = make(prerank=usual_prerank(predictions))
    table = made(y_true, predictions, sample_weight=sample_weight, clusters=clusters)
    return {name: table, "settings": Table(level=[made.level])}


class PITHistogramDisplay(PredictionDisplay):
    """The histogram of PIT values: their shares in equal bins, flat where it is calibrated.

    High ends say that forecasts are too sure, a hump that they are too timid, a slope up that they are too low. All bars of a
    calibrated forecast lie within the band in 19 of 20 data sets: :class:`~calibrant.inference.PITHistogram`. ``tables`` hold
    ``pit_histogram``. PIT values of vectors are average ranks.

    >>> from calibrant import Normal
    >>> y = np.random.default_rng(0).normal(0.0, 2.0, 200)
    >>> table = PITHistogramDisplay.from_predictions(y, Normal(np.zeros(200), 1.0), n_bins=4).tables["pit_histogram"]
    >>> table["observed"], table["high"][0]
    (array([0.35 , 0.14 , 0.115, 0.395]), np.float64(0.325))
    """

    drawing = Drawing(draw, legend_of=legend_of)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        n_bins: int = 20,
        level: float = 0.95,
        sample_weight: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        seed: int = 0,
    ) -> Self:
        """The histogram with ``n_bins`` bars; ``seed`` is that of PIT values of single values with a probability of their own.

        ``clusters`` has one label per row, for a band that allows for rows which belong together.
        """
        make = partial(PITHistogram, n_bins, level, seed=seed)
        return cls(_tables("pit_histogram", make, y_true, y_pred, sample_weight, clusters))


pit_histogram = plotter(PITHistogramDisplay.from_predictions, "pit_histogram")


def _draw_curve(axes: "Axes", tables: Tables, palette: Palette) -> None:
    """How far the share of outcomes up to each level is from that level, with the band of all points at once."""
    curve = tables["pit_curve"]
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


class PITCurveDisplay(PredictionDisplay):
    """The distribution function of PIT values, less the diagonal: zero where the forecast is calibrated.

    It needs no bins, and its band holds all points of a calibrated forecast at once: :class:`~calibrant.inference.PITCurve`.
    Above zero on the left and below on the right, forecasts are too sure; the other way round, too timid; all above, too high; all
    below, too low. ``tables`` hold ``pit_curve``. Säilynoja, Bürkner & Vehtari (2022).

    >>> from calibrant import Normal
    >>> y = np.random.default_rng(0).normal(1.0, 1.0, 200)
    >>> curve = PITCurveDisplay.from_predictions(y, Normal(np.zeros(200), 1.0), n_points=4).tables["pit_curve"]
    >>> curve["observed"] - curve["level"]
    array([-0.21, -0.33, -0.4 ])
    """

    drawing = Drawing(_draw_curve, legend_of=legend_of)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        n_points: int = 100,
        level: float = 0.95,
        sample_weight: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        seed: int = 0,
    ) -> Self:
        """The curve at ``n_points - 1`` levels; ``clusters`` are those of the histogram."""
        make = partial(PITCurve, n_points, level, seed=seed)
        return cls(_tables("pit_curve", make, y_true, y_pred, sample_weight, clusters))


pit_curve = plotter(PITCurveDisplay.from_predictions, "pit_curve")
