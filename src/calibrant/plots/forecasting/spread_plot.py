"""Predicted spread against how far off forecasts were."""

from functools import partial
from typing import TYPE_CHECKING, Self

import numpy as np

from calibrant._array import to_numpy
from calibrant._clusters import PICTURES, refuse_clusters
from calibrant._validate import check_fraction
from calibrant.distributions.base import Distribution
from calibrant.distributions.empirical.ensemble import Ensemble
from calibrant.distributions.empirical.quantiles import fan_of
from calibrant.distributions.reading.conversion import as_weighted_problem
from calibrant.estimators.forecast_errors.spread import ENCE, Spreads
from calibrant.inference.monte_carlo import draw as drawn
from calibrant.inference.reliability_curve import beyond_chance, outward
from calibrant.plots.base import Drawing, Legend, PredictionDisplay, Tables, level_in, plotter, resamples
from calibrant.plots.style import Palette, dress
from calibrant.results import Table
from calibrant.typing import ArrayLike, Engine, Seed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WORK = 20_000_000
"""Resampled targets that the band may cost before it makes do with fewer resamples."""


def draw(axes: "Axes", tables: Tables, palette: Palette) -> None:
    """Observed against predicted spread, on axes that share their unit."""
    table = tables["spread"]
    x, seen = table["predicted"], table["observed"]
    ends = [table[name] for name in ("low", "high") if name in table]
    outside = beyond_chance(table) if ends else np.zeros(len(x), dtype=bool)
    least, most = (f(np.concatenate([x, seen, *ends])) for f in (np.min, np.max))
    padding = 0.06 * (most - least or 1.0)
    line = np.array([x.min() - padding, x.max() + padding])
    axes.plot(line, line, color=palette.muted, linewidth=1, dashes=(4, 3), zorder=1)
    if ends:
        axes.fill_between(x, ends[0], ends[1], color=palette.band, alpha=0.25, linewidth=0, zorder=2)
        axes.vlines(x, ends[0], ends[1], color=palette.band, alpha=0.55, linewidth=3, zorder=2)
    axes.plot(x, seen, color=palette.accent, linewidth=1.6, zorder=3)
    for chosen, colour, marker in ((~outside, palette.accent, "o"), (outside, palette.bad, "D")):
        axes.scatter(x[chosen], seen[chosen], s=34, color=colour, marker=marker, linewidth=0, zorder=4)
    axes.set(xlabel="Predicted standard deviation", ylabel="Root mean squared error", xlim=tuple(line))
    axes.set_ylim(min(least, line[0]) - padding / 2, max(most, line[1]) + padding / 2)
    dress(axes, palette)


def legend_of(tables: Tables) -> Legend:
    """Marks and words; there is no band of ensembles."""
    if "low" not in tables["spread"]:
        return (("dot", "a group of rows"),)
    return (("dot", "within chance"), ("diamond", "beyond chance"), ("band", f"{level_in(tables)} band if calibrated"))


class SpreadDisplay(PredictionDisplay):
    """Predicted spread against how far off forecasts were: root mean squared errors in groups of similar spread.

    Above the diagonal, forecasts are surer than they should be. The groups are those of
    :class:`~calibrant.estimators.ENCE`; targets resampled from the forecast put each group in its band with at least the given
    probability. Members of an ensemble, and quantiles, are no distribution to resample from: there the band is left out.
    ``tables`` hold ``spread``. O(n) per resample.

    >>> from calibrant import Normal
    >>> rng = np.random.default_rng(0)
    >>> std = rng.uniform(1.0, 3.0, 400)
    >>> y = rng.normal(0.0, 2.0, 400)
    >>> SpreadDisplay.from_predictions(y, Normal(np.zeros(400), std), n_bins=2).tables["spread"]["observed"].round(1)
    array([1.9, 2.1])
    """

    drawing = Drawing(draw, legend_of=legend_of, margins=(0.8, 0.12, 0.56, 0.1))

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        n_bins: int = 10,
        level: float = 0.95,
        n_resamples: int | None = None,
        sample_weight: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> Self:
        """The groups with their band."""
        refuse_clusters(cls, clusters, PICTURES)
        check_fraction(level, "level")
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight)
        measure = ENCE(n_bins)
        table = measure.estimate(targets, predictions, weights).table
        assert table is not None
        columns = dict(table)
        if not isinstance(predictions, Ensemble) and fan_of(predictions) is None:
            task = partial(_resampled, measure.spreads(predictions, weights), predictions)
            m, width = resamples(n_resamples, len(predictions), WORK), int(np.prod(to_numpy(targets).shape))
            band = outward(drawn(task, m, width=width, rng=rng, engine=engine), (1 - level) / 2)
            columns |= {"low": band[0], "high": band[1]}
        return cls({"spread": Table(columns), "settings": Table(level=[level])})


def _resampled(spreads: Spreads, predictions: Distribution, seed: np.random.SeedSequence, size: int) -> np.ndarray:
    return spreads.observed(predictions.sample(np.random.default_rng(seed), size))


spread = plotter(SpreadDisplay.from_predictions, "spread")
