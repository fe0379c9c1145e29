"""The reliability diagram: what was claimed against what happened."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from calibrant._array import to_numpy
from calibrant.distributions.reading.conversion import as_weighted_problem
from calibrant.estimators.binned.binning import Binning
from calibrant.inference.reliability_curve import beyond_chance
from calibrant.lenses.class_lenses import Lens
from calibrant.plots.base import Drawing, Legend, PredictionDisplay, Tables, level_in, plotter
from calibrant.plots.classification.event_curves import Axis, Band, Curves, Method, claims_of, floor_for, histogram_of
from calibrant.plots.style import Palette, dress, frame_probabilities, inches_of, limits_of, share_of_rows
from calibrant.results import Table
from calibrant.typing import ArrayLike, Engine, Seed

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(axes: "Axes", tables: Tables, palette: Palette) -> None:
    """Observed against predicted, with the band and the spread of the predictions below.

    Axes are wide enough for the curve of the table ``beside``, too, where there is one.
    """
    from mpl_toolkits.axes_grid1 import make_axes_locatable  # type: ignore[import-untyped]

    draw_pair(axes, make_axes_locatable(axes).append_axes("bottom", size="21%", pad=0.12, sharex=axes), tables, palette)


def draw_pair(axes: "Axes", below: "Axes", tables: Tables, palette: Palette) -> None:
    """The curve on the first axes, the spread of the predictions on the second, which share the first one's x."""
    curve, settings = tables["curve"], settings_of(tables)
    for part in (axes, below):
        dress(part, palette)
    draw_curve(axes, curve, settings, palette)
    share_of_rows(below, tables["histogram"], palette)
    spans = [_span(one) for one in (curve, tables.get("beside", curve))]
    claims, outcomes = (np.concatenate(parts) for parts in zip(*spans, strict=True))
    floor = settings["floor"]
    frame_probabilities(axes, limits_of(claims, floor), limits_of(outcomes, floor), floor)
    axes.set(ylabel="Observed frequency")
    axes.tick_params(labelbottom=False)
    below.set(xlabel="Predicted probability")
    left = -0.5 / inches_of(axes)[0]
    for part in (axes, below):
        part.yaxis.set_label_coords(left, 0.5)


def draw_curve(axes: "Axes", curve: Table, settings: dict[str, Any], palette: Palette, *, size: float = 1.0) -> None:
    """One curve with its band and the diagonal; marks may be smaller."""
    floor = settings["floor"]
    x, observed = (_within(curve[name], floor) for name in ("predicted", "observed"))
    outside = beyond_of(curve, settings)
    ends = _within(np.linspace(0, 1, 101), floor)
    axes.plot(ends, ends, color=palette.muted, linewidth=1, dashes=(4, 3), zorder=1)
    if "low" in curve:
        low, high = _within(curve["low"], floor), _within(curve["high"], floor)
        axes.fill_between(x, low, high, color=palette.band, alpha=0.25, linewidth=0, zorder=2)
        if "weight" in curve:
            axes.vlines(x, low, high, color=palette.band, alpha=0.55, linewidth=3, zorder=3)
    axes.plot(x, observed, color=palette.accent, linewidth=1.6, zorder=4)
    if "weight" not in curve:
        wrong = np.where(outside, observed, np.nan)
        every = max(1, len(x) // 12)
        axes.plot(x, wrong, color=palette.bad, linewidth=2.4, marker="D", markersize=5, markevery=every, zorder=5)
        return
    area = size * (26 + 60 * np.sqrt(curve["weight"] / curve["weight"].max()))
    for chosen, colour, marker in ((~outside, palette.accent, "o"), (outside, palette.bad, "D")):
        axes.scatter(x[chosen], observed[chosen], s=area[chosen], color=colour, marker=marker, linewidth=0, zorder=5)


def settings_of(tables: Tables) -> dict[str, Any]:
    """How the curve was made; bins with a consistency band where nothing is said."""
    given = next(tables["settings"].rows()) if "settings" in tables else {}
    floor = float(given.get("floor", np.nan))
    return {"band": "consistency", **given, "floor": None if np.isnan(floor) else floor}


def beyond_of(curve: Table, settings: dict[str, Any]) -> np.ndarray:
    """Which points chance does not explain: those outside the consistency band, or with a claim outside the confidence band."""
    if "low" not in curve:
        return np.zeros(curve.n_rows, dtype=bool)
    if settings["band"] == "consistency":
        return beyond_chance(curve)
    return (curve["predicted"] < curve["low"] - 1e-9) | (curve["predicted"] > curve["high"] + 1e-9)


def _within(values: np.ndarray, floor: float | None) -> np.ndarray:
    return values if floor is None else np.clip(values, floor, 1 - floor)


def _span(curve: Table) -> tuple[np.ndarray, np.ndarray]:
    """All that is drawn of a curve, along the two axes."""
    names = [name for name in ("predicted", "observed", "low", "high") if name in curve]
    return curve["predicted"], np.concatenate([curve[name] for name in names])


def legend_of(tables: Tables) -> Legend:
    """Marks and words, which depend on the band."""
    settings, curve = settings_of(tables), tables["curve"]
    level = level_in(tables)
    words = {"consistency": f"{level} band if calibrated", "confidence": f"{level} confidence band"}
    band: Legend = (("band", words[settings["band"]]),) if "low" in curve else ()
    beyond: Legend = (("diamond", "beyond chance"),) if "low" in curve else ()
    if "weight" in curve:
        return (("dot", "within chance" if beyond else "a group of rows"), *beyond, *band)
    return (("line", "observed"), *beyond, *band)


class ReliabilityDisplay(PredictionDisplay):
    """The reliability diagram: observed frequency against predicted probability, with the spread of the predictions.

    ``tables`` hold ``curve`` (:class:`~calibrant.ReliabilityCurve`), ``histogram`` and ``settings``. Of several classes it
    shows the confidence in the favoured one, of several labels all labels together; ``lens`` picks another event.

    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> display = ReliabilityDisplay.from_predictions((rng.random(500) < p**2) * 1, p, n_resamples=199)
    >>> display.tables["curve"]["observed"].round(1)[[0, 7, 14]]
    array([0. , 0.3, 0.9])
    """

    drawing = Drawing(draw, size=(5.2, 6.1), legend_of=legend_of)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        method: Method = "binned",
        band: Band = "consistency",
        axis: Axis = "probability",
        bins: Binning | None = None,
        lens: Lens | None = None,
        level: float = 0.95,
        n_resamples: int | None = None,
        sample_weight: ArrayLike | None = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> Self:
        """The curve in bins, isotonic (CORP) or smooth, with a band that holds at every point by itself.

        The "consistency" band holds what a calibrated model would show, the "confidence" band the truth. An axis of
        log-odds ("logit") shows probabilities that crowd at 0 and 1; "auto" takes it where most do. Without ``bins``,
        there are 15 of equal width, or of equal mass where those would leave the picture empty. ``n_resamples`` is 999, or less
        where rows are many.
        """
        y, p, weights = claims_of(*as_weighted_problem(y_true, y_pred, sample_weight), lens)
        floor = floor_for(axis, p.probs, len(p), weights)
        curves = Curves(method, band, level, n_resamples, floor, bins)
        return cls(
            {
                "curve": curves.of((y, p), weights, rng, engine),
                "histogram": histogram_of(to_numpy(p.probs), weights, floor),
                "settings": Table(curves.settings()),
            }
        )


reliability = plotter(ReliabilityDisplay.from_predictions, "reliability")
