"""Several models of the same targets: intervals beside what calibrated models would show, and their curves."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from calibrant._clusters import refuse_clusters
from calibrant._validate import InputError
from calibrant.distributions.reading.conversion import Classes, as_distribution, as_weighted_problem
from calibrant.estimators.binned.binning import EqualMass
from calibrant.inference.exact_tests.exact_test import ExactTest
from calibrant.inference.intervals import WithInterval
from calibrant.inference.reliability_curve import ReliabilityCurve
from calibrant.lenses.class_lenses import Lens
from calibrant.plots.base import Display, Drawing, Layout, Tables, plotter, resamples
from calibrant.plots.classification.reliability import claims_of
from calibrant.plots.style import MARKERS, SERIES, Palette, distinct_names, dress, label_ends, limits_of
from calibrant.results import Estimate, Table, TestResult
from calibrant.typing import ArrayLike, Engine, Estimator, Seed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ALPHA = 0.05
"""Models with p-values up to this are marked."""

WORK = 50_000_000
"""Resampled or resampled rows that one model may cost before it makes do with fewer."""

LETTERS = 24
"""Letters of a model's name at most."""


def draw(axes: "Axes", tables: Tables, palette: Palette) -> None:
    """A row per model, the first at the top."""
    models = tables["models"]
    y = np.arange(models.n_rows)
    value = models["value"]
    beyond = models["pvalue"] <= ALPHA
    dress(axes, palette)
    axes.grid(visible=False, axis="y")
    axes.hlines(y, models["null_low"], models["null_high"], color=palette.band, alpha=0.5, linewidth=13, zorder=2)
    for chosen, colour, marker in ((~beyond, palette.accent, "o"), (beyond, palette.bad, "D")):
        axes.hlines(y[chosen], models["low"][chosen], models["high"][chosen], color=colour, linewidth=2.2, zorder=3)
        axes.scatter(value[chosen], y[chosen], s=46, color=colour, marker=marker, linewidth=0, zorder=4)
    axes.set_yticks(y, distinct_names(models["model"].tolist(), LETTERS))
    axes.tick_params(axis="y", colors=palette.ink)
    axes.set(ylim=(models.n_rows - 0.5, -0.5), xlabel=str(tables["settings"]["name"][0]))
    axes.margins(x=0.06)


def layout_of(tables: Tables) -> Layout:
    """One line per model, and space for its name."""
    models = tables["models"]
    longest = max(min(len(str(name)), LETTERS) for name in models["model"].tolist())
    return Layout((5.2, 0.42 * models.n_rows + 0.75), (0.3 + 0.085 * longest, 0.15, 0.56, 0.12))


class ComparisonDisplay(Display):
    """Several models of the same targets: values with their intervals, and the band that each would show if calibrated.

    Errors of finite data are never zero, and not equally far from it: a model is to be read against its own band. Marks are
    diamonds where the exact test rejects at 5 %, each model by itself; :func:`calibrant.inference.differences` tests the
    differences. ``tables`` hold ``models`` and ``settings``.

    >>> from calibrant import ECE
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(300)
    >>> y = (rng.random(300) < p) * 1
    >>> models = ComparisonDisplay.from_predictions(ECE(), y, {"good": p, "sure": (p > 0.5) * 0.98 + 0.01}, n_resamples=199)
    >>> models.tables["models"]["pvalue"] <= 0.05
    array([False,  True])
    """

    drawing = Drawing(
        draw,
        layout_of=layout_of,
        legend=(("dot", "within chance"), ("diamond", "beyond chance"), ("band", "95 % band if calibrated")),
    )

    @classmethod
    def from_predictions(
        cls,
        estimator: Estimator,
        y_true: ArrayLike,
        models: Mapping[str, ArrayLike],
        *,
        n_resamples: int | None = None,
        sample_weight: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> Self:
        """The estimator of every model, tested by resamples and with its interval, where it has one."""
        refuse_clusters(cls, clusters, "use calibrant.compare(y_true, models, clusters=...), which tests differences")
        if not isinstance(models, Mapping) or not models:
            raise InputError(f"models must be predictions by name, {{'name': y_pred}}; got {models!r}")
        tests, estimates = {}, {}
        for name, y_pred in models.items():
            predictions = Classes(labels, pos_label).of(as_distribution(y_pred))
            m = resamples(n_resamples, len(predictions), WORK)
            shared = {"sample_weight": sample_weight, "rng": rng, "engine": engine}
            tests[name] = ExactTest(estimator, m)(y_true, predictions, **shared)
            estimates[name] = WithInterval(estimator, m)(y_true, predictions, **shared)
        return cls.from_results(tests, estimates)

    @classmethod
    def from_results(cls, tests: Mapping[str, TestResult], estimates: Mapping[str, Estimate]) -> Self:
        """Of tests that resample, and of estimates with their intervals, by the names of the models."""
        if list(tests) != list(estimates):
            raise InputError(f"tests and estimates must be of the same models; got {list(tests)} and {list(estimates)}")
        rows = [
            {**tests[name].to_row(), **dict(zip(("low", "high"), _ends(estimates[name]), strict=True))}
            for name in tests
        ]
        columns = {column: [row[column] for row in rows] for column in rows[0]}
        name = next(iter(tests.values())).estimate.name
        return cls({"models": Table({"model": list(tests), **columns}), "settings": Table(name=[name])})


def _ends(estimate: Estimate) -> tuple[float, float]:
    """Both ends of the interval; no numbers where there is none, which draw nothing."""
    if not estimate.has_interval:
        return np.nan, np.nan
    low, high = estimate.confidence_interval()
    return low, high


comparison = plotter(ComparisonDisplay.from_predictions, "comparison")


CURVE_LETTERS = 16
"""Letters of a model's name at most."""

NAMES = {
    "classes": ("Predicted probability", "Observed frequency"),
    "coverage": ("Promised by the interval", "Held by the interval"),
}


def draw_curves(axes: "Axes", tables: Tables, palette: Palette) -> None:
    """A line per model, named at its end."""
    curves = curves_in(tables)
    x = np.concatenate([curve["predicted"] for curve in curves])
    y = np.concatenate([curve["observed"] for curve in curves])
    limits = limits_of(np.concatenate([x, y]))
    axes.plot(limits, limits, color=palette.muted, linewidth=1, dashes=(4, 3), zorder=1)
    ends = []
    for i, curve in enumerate(curves):
        colour, marker = getattr(palette, SERIES[i % len(SERIES)]), MARKERS[i % len(MARKERS)]
        order = np.argsort(curve["predicted"], kind="stable")
        predicted, seen = curve["predicted"][order], curve["observed"][order]
        axes.plot(predicted, seen, color=colour, marker=marker, markersize=4.5, linewidth=1.4, alpha=0.9, zorder=3)
        ends.append((str(curve["model"][0]), float(predicted[-1]), float(seen[-1]), colour))
    first, second = NAMES[str(tables["settings"]["kind"][0])]
    axes.set(xlabel=first, ylabel=second, xlim=limits, ylim=limits)
    dress(axes, palette)
    label_ends(axes, ends, most=CURVE_LETTERS)


def curves_in(tables: Tables) -> list[Table]:
    """Those of all models, in their order."""
    return [tables[f"curve_{i}"] for i in range(len(tables) - 1)]


def curves_layout(tables: Tables) -> Layout:
    """Room for the longest name beside the axes."""
    longest = max(min(len(str(curve["model"][0])), CURVE_LETTERS) for curve in curves_in(tables))
    right = 0.2 + 0.085 * longest
    return Layout((5.0 + right, 4.6), (0.7, right, 0.56, 0.1))


CURVES = Drawing(draw_curves, layout_of=curves_layout, legend=(("dashed", "as claimed"),))


class CurvesDisplay(Display):
    """What several models of the same targets claimed, and what happened: a line per model, named at its end.

    Groups hold equally many rows, so that few of them do not let a line stray among others. Bands would hide each other:
    :class:`ReliabilityDisplay` has them for one model. ``tables`` hold ``curve_0``, ``curve_1`` and so on, and ``settings``.

    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(300)
    >>> y = (rng.random(300) < p) * 1
    >>> display = CurvesDisplay.from_predictions(y, {"good": p, "too high": p**0.5}, n_bins=3)
    >>> display.tables["curve_1"]["model"].tolist()
    ['too high', 'too high', 'too high']
    """

    drawing = CURVES

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        models: Mapping[str, ArrayLike],
        *,
        n_bins: int = 10,
        lens: Lens | None = None,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
    ) -> Self:
        """Of several classes the confidence in the favoured one, of several labels all labels together, or what the lens asks."""
        if not isinstance(models, Mapping) or not models:
            raise InputError(f"models must be predictions by name, {{'name': y_pred}}; got {models!r}")
        tables = {}
        for i, (name, y_pred) in enumerate(models.items()):
            problem = as_weighted_problem(y_true, y_pred, sample_weight, Classes(labels, pos_label))
            y, p, w = claims_of(*problem, lens)
            curve = ReliabilityCurve(EqualMass(n_bins), band="confidence")(y, p, sample_weight=w)
            model = np.array([name] * curve.n_rows, dtype=object)
            tables[f"curve_{i}"] = Table(model=model, predicted=curve["predicted"], observed=curve["observed"])
        return cls({**tables, "settings": Table(kind=["classes"])})


curves = plotter(CurvesDisplay.from_predictions, "curves")
