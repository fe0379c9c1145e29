"""The null distribution of a test: what calibrated resamples show, and where the data lie."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from calibrant._validate import InputError, check_count
from calibrant.plots.base import Display, Drawing, Legend, Tables, plotter
from calibrant.plots.style import Palette, dress
from calibrant.results import Table, TestResult, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ALPHA = 0.05
"""p-values up to this are marked."""


def draw(axes: "Axes", tables: Tables, palette: Palette) -> None:
    """Resamples as bars, the statistic of the data as a line with its p-value."""
    resamples, observed = tables["resamples"], next(tables["observed"].rows())
    dress(axes, palette)
    share = 100 * resamples["count"] / observed["resamples"]
    width = resamples["upper"] - resamples["lower"]
    middle = (resamples["lower"] + resamples["upper"]) / 2
    inside = (resamples["upper"] > observed["low"]) & (resamples["lower"] < observed["high"])
    for chosen, alpha in ((inside, 0.75), (~inside, 0.35)):
        axes.bar(
            middle[chosen], share[chosen], width=0.92 * width[chosen], color=palette.band, alpha=alpha, linewidth=0
        )
    is_beyond, top = observed["pvalue"] <= ALPHA, float(share.max())
    colour = palette.bad if is_beyond else palette.accent
    value = float(observed["value"])
    axes.plot([value, value], [0, 1.06 * top], color=colour, linewidth=2, zorder=4)
    axes.scatter([value], [1.06 * top], s=44, color=colour, marker="D" if is_beyond else "o", linewidth=0, zorder=5)
    left, right = (
        float(f(np.append([resamples["lower"][0], resamples["upper"][-1]], value))) for f in (np.min, np.max)
    )
    padding = 0.05 * (right - left)
    side = "right" if value > (left + right) / 2 else "left"
    text = f"{number(float(f'{value:.3g}'))}, p = {observed['pvalue']:.2g}"
    near = value + (-0.3 if side == "right" else 0.3) * padding
    axes.text(near, 1.12 * top, text, ha=side, va="bottom", color=colour, fontsize=10.5)
    axes.set(xlim=(left - padding, right + padding), ylim=(0, 1.28 * top))
    axes.set(xlabel=str(observed["name"]), ylabel="% of calibrated resamples")


MIN_WIDTH = 1e-9
"""Resamples that differ by a smaller part of themselves are drawn as one value."""


def legend_of(tables: Tables) -> Legend:
    """Marks and words."""
    is_beyond = tables["observed"]["pvalue"][0] <= ALPHA
    return (("diamond" if is_beyond else "dot", "this model"), ("band", "if calibrated (95 % darker)"))


class NullDisplay(Display):
    """The null distribution of a test: the statistic of resampled outcomes, and that of the data with its p-value.

    Dark bars are the central 95 % of what a calibrated model with these very predictions would show. ``tables`` hold
    ``resamples`` in equal bins and ``observed``. Any test that keeps its resamples will do, such as :class:`calibrant.ExactTest`.

    >>> from calibrant import ECE, ExactTest
    >>> result = ExactTest(ECE(), n_resamples=99)([1, 0, 1, 1, 0, 1], [0.9, 0.2, 0.7, 0.6, 0.4, 0.8])
    >>> display = NullDisplay.from_result(result)
    >>> display.tables["resamples"]["count"].sum(), display.tables["observed"]["pvalue"][0] == result.pvalue
    (np.int64(99), np.True_)
    """

    drawing = Drawing(draw, size=(5.2, 3.6), legend_of=legend_of)

    @classmethod
    def from_result(cls, result: TestResult, *, n_bins: int = 30) -> Self:
        """The resamples in ``n_bins`` equal bins."""
        check_count(n_bins, "n_bins")
        if not isinstance(result, TestResult):
            raise InputError(f"result must be that of a test, such as ExactTest(ECE())(y_true, y_pred); got {result!r}")
        if result.null_distribution is None or not result.has_band:
            raise InputError(
                f"{result.test!r} has no resamples of one statistic, so there is nothing to draw: ExactTest has them"
            )
        null = result.null_distribution[np.isfinite(result.null_distribution)]
        if not len(null) or not np.isfinite(result.statistic):
            raise InputError(f"the statistic is not finite ({result.statistic}): take another estimator")
        low, high = result.null_band()
        middle, half = (null.max() + null.min()) / 2, np.ptp(null) / 2
        ends = (
            None if half > MIN_WIDTH * abs(middle) else (middle - abs(middle) / 2 - 0.5, middle + abs(middle) / 2 + 0.5)
        )
        counts, edges = np.histogram(null, n_bins, ends)
        observed: dict[str, list[Any]] = {
            "name": [result.estimate.name],
            "value": [result.statistic],
            "pvalue": [result.pvalue],
            "low": [low],
            "high": [high],
            "resamples": [len(null)],
        }
        return cls({"resamples": Table(lower=edges[:-1], upper=edges[1:], count=counts), "observed": Table(observed)})


null = plotter(NullDisplay.from_result, "null")
