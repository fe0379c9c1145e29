"""The kernel witness as a map: for which predictions which outcomes come more often than claimed."""

from functools import partial
from typing import TYPE_CHECKING, Self

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import check_count
from calibrant.distributions.conversion import as_weighted_problem
from calibrant.distributions.quantiles import check_whole
from calibrant.plots.cell_gaps import ALPHA, WORK, CellGaps
from calibrant.plots.curves import redraws
from calibrant.plots.display import PredictionDisplay, plotter
from calibrant.plots.heat_map import draw_cells, draw_scale, is_slanted, label_cells, limit_of, scale_below, width_of
from calibrant.plots.outcomes import Outcomes, Smoother
from calibrant.plots.picture import Drawing, Layout, Tables
from calibrant.plots.style import Palette, compact
from calibrant.results import Table
from calibrant.typing import ArrayLike, Engine, Seed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AXES = {
    "classes": ("Confidence in the favoured class", "Favoured class"),
    "errors": ("Predicted standard deviation", "Error, in predicted standard deviations"),
}
"""What lies along the map, and down it."""

WORDS = {
    "classes": ("claimed too little", "percentage points", "claimed too much"),
    "errors": ("more often than claimed", "percentage points", "less often than claimed"),
}
"""What the shades say."""

ROWS = 3
"""Cells that rest on fewer rows than this are left out."""


def draw(axes: "Axes", tables: Tables, palette: Palette) -> None:
    """A column a place along the predictions, a row an outcome."""
    cells = tables["cells"]
    outcomes = [str(name) for name in dict.fromkeys(cells["outcome"].tolist())]
    shape = len(outcomes), cells.n_rows // len(outcomes)
    along = cells["along"][: shape[1]]
    gap, adjusted = (cells[name].reshape(shape) for name in ("gap", "adjusted"))
    limit, kind = limit_of(gap), str(tables["settings"]["kind"][0])
    draw_cells(axes, gap, palette, limit=limit, gap=0.0)
    marked = np.argwhere(adjusted <= ALPHA)
    axes.scatter(marked[:, 1], marked[:, 0], s=7, color=palette.ink, linewidth=0, zorder=3)
    label_cells(axes, outcomes, with_gaps(short_numbers(along)))
    across, down = AXES[kind]
    axes.set(xlabel=across, ylabel=down)
    draw_scale(scale_below(axes, 0.5), palette, limit, WORDS[kind])


def layout_of(tables: Tables) -> Layout:
    """Room for the names of outcomes."""
    outcomes = [str(name) for name in dict.fromkeys(tables["cells"]["outcome"].tolist())]
    left, below = width_of(outcomes), 1.15
    return Layout((5.2, min(0.42 * len(outcomes), 3.6) + 0.6 + below), (left, 0.18, below, 0.12))


class WitnessDisplay(PredictionDisplay):
    """The kernel witness as a map: for which predictions outcomes come more or less often than claimed.

    Of classes, s is the confidence in the favoured class j, and ``w(s, j)`` is the mean over rows that favour j, weighted by a
    kernel ``k(s, s_i)``, of ``1[y_i = j] - p_ij``. Of forecasts of numbers, s is the predicted standard deviation, and j an
    error in such units, of which all rows are asked. The column ``gap`` is ``-w``: above zero (orange), more was claimed than
    happened. The kernel is Gaussian along the log-odds of a confidence and along the ranks of a spread. Dots mark cells beyond
    chance; in 19 of 20 data sets of a calibrated model there are none (outcomes redrawn, the largest of all cells). ``tables``
    hold ``cells`` and ``settings``. O(n) a redraw. Widmann, Lindsten & Zachariah (2021).

    >>> p = np.random.default_rng(0).dirichlet([0.3, 0.3, 0.3], 500)
    >>> cells = WitnessDisplay.from_predictions(p.argmax(axis=1), p, n_resamples=99).tables["cells"]
    >>> cells.n_rows, cells["adjusted"].min()
    (36, np.float64(0.01))
    """

    drawing = Drawing(draw, layout_of=layout_of)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        max_classes: int = 10,
        n_resamples: int | None = None,
        sample_weight: ArrayLike | None = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> Self:
        """Of many classes, the ``max_classes`` with the largest standardised values."""
        check_count(max_classes, "max_classes")
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight)
        check_whole(predictions, "witness")
        outcomes = Outcomes.of(targets, predictions)
        y, k, smoother = outcomes.targets, len(outcomes.names), Smoother.of(outcomes.position)
        gaps = CellGaps.of(smoother.group, to_numpy(outcomes.chances.matrix), weights)
        gather = partial(_smoothed, gaps, smoother.kernel, k)
        adjusted = gaps.adjusted(y, outcomes.chances, gather, redraws(n_resamples, len(y), WORK), rng, engine)
        claimed_more = (smoother.kernel @ gaps.sums(y[None]))[0, :, :k]
        w = np.ones(len(y)) if weights is None else weights
        weight = smoother.total(w[:, None] * (np.ones((len(y), k)) if outcomes.asked is None else outcomes.asked))
        with np.errstate(invalid="ignore", divide="ignore"):
            gap = np.where(weight >= ROWS * w.mean(), claimed_more / weight, np.nan)
        along = smoother.total(w * outcomes.along) / smoother.total(w)
        is_class = outcomes.asked is not None
        size = gather(gaps.sums(y[None]))[0].max(axis=0)
        shown = np.sort(np.argsort(-size, kind="stable")[:max_classes]) if is_class else np.arange(k)[::-1]
        cells = Table(
            outcome=np.repeat(np.array(outcomes.names)[shown], len(along)),
            along=np.tile(along, len(shown)),
            gap=gap[:, shown].T.ravel(),
            adjusted=np.where(np.isnan(gap), 1.0, adjusted)[:, shown].T.ravel(),
        )
        return cls({"cells": cells, "settings": Table(kind=["classes" if is_class else "errors"], outcomes=[k])})


def _smoothed(gaps: CellGaps, kernel: np.ndarray, k: int, sums: np.ndarray) -> np.ndarray:
    """Sizes of sums under the kernel, in units of their spread, ``(m, places, outcomes)``."""
    size: np.ndarray = np.abs(kernel @ sums[:, :, :k]) / np.sqrt(kernel**2 @ gaps.variance[:, :k] + gaps.one_row)
    return size


def short_numbers(values: np.ndarray) -> list[str]:
    """Numbers with two digits; of those just below one, one digit of what is missing.

    >>> short_numbers(np.array([0.512, 0.9941, 12_345.0]))
    ['0.51', '0.994', '12k']
    """
    missing = np.where((values < 1) & (values > 0.9), 1 - values, values)
    return [
        f"{x:.{int(np.ceil(-np.log10(m)))}f}" if m != x else compact(float(f"{x:.2g}"))
        for x, m in zip(values, missing, strict=True)
    ]


def with_gaps(texts: list[str]) -> list[str]:
    """As many as there is room for side by side, at even steps."""
    for step in range(1, len(texts)):
        shown = [text if i % step == 0 else "" for i, text in enumerate(texts)]
        if not is_slanted(shown):
            return shown
    return texts


witness = plotter(WitnessDisplay.from_predictions, "witness")
