"""The map of three classes: where whole predictions point, and where they should have pointed."""

from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from calibrant._array import to_numpy
from calibrant._clusters import PICTURES, refuse_clusters
from calibrant._validate import InputError, check_count
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.reading.conversion import Classes, as_weighted_problem
from calibrant.estimators.binned.canonical import Grid
from calibrant.plots.base import Drawing, PredictionDisplay, Tables, plotter, resamples
from calibrant.plots.heat_map import ALPHA, WORK, CellGaps
from calibrant.plots.style import Palette, shortened
from calibrant.results import Table
from calibrant.typing import ArrayLike, Engine, Seed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])
"""Where the classes lie: the first left, the second right, the third at the top."""

SHARES = (0.25, 0.5, 0.75)
"""Lines of equal probability."""


def draw(axes: "Axes", tables: Tables, palette: Palette) -> None:
    """An arrow a cell, from the mean prediction to what happened."""
    cells, names = tables["cells"], [str(name) for name in tables["classes"]["name"]]
    start, end = (
        np.stack([cells[f"{what}_{j}"] for j in range(3)], axis=1) @ CORNERS for what in ("claimed", "happened")
    )
    beyond = cells["adjusted"] <= ALPHA
    _draw_triangle(axes, palette)
    size = 12 + 70 * np.sqrt(cells["weight"] / cells["weight"].max())
    for chosen, colour, marker, alpha in ((~beyond, palette.accent, "o", 0.5), (beyond, palette.bad, "D", 1.0)):
        axes.scatter(
            start[chosen, 0],
            start[chosen, 1],
            s=size[chosen],
            color=colour,
            marker=marker,
            alpha=0.7 * alpha,
            linewidth=0,
            zorder=3,
        )
        for a, b in zip(start[chosen], end[chosen], strict=True):
            _draw_arrow(axes, a, b, color=colour, alpha=alpha)
    places = (
        (0.0, -0.07, "left", "top"),
        (1.0, -0.07, "right", "top"),
        (0.5, np.sqrt(3) / 2 + 0.03, "center", "bottom"),
    )
    for name, (x, y, across, up) in zip(names, places, strict=True):
        axes.text(x, y, shortened(name, 24), ha=across, va=up, color=palette.ink, fontsize=11)
    axes.set(xlim=(-0.03, 1.03), ylim=(-0.14, np.sqrt(3) / 2 + 0.1), aspect="equal")
    axes.set_axis_off()


def _draw_arrow(axes: "Axes", start: np.ndarray, end: np.ndarray, **look: Any) -> None:
    style = {"arrowstyle": "-|>", "linewidth": 1.5, "mutation_scale": 9, "shrinkA": 0, "shrinkB": 0, **look}
    axes.annotate("", xy=tuple(end), xytext=tuple(start), arrowprops=style, zorder=4)


def _draw_triangle(axes: "Axes", palette: Palette) -> None:
    """The edges, and lines along which a class has the same probability."""
    axes.plot(*CORNERS[[0, 1, 2, 0]].T, color=palette.muted, linewidth=1, zorder=2)
    for share in SHARES:
        for j in range(3):
            others = [c for c in range(3) if c != j]
            ends = share * CORNERS[j] + (1 - share) * CORNERS[others]
            axes.plot(*ends.T, color=palette.grid, linewidth=0.8, zorder=1)
    for share in SHARES:
        x, y = share * CORNERS[1] + (1 - share) * CORNERS[0]
        axes.text(x, y - 0.015, f"{100 * share:g} %", ha="center", va="top", fontsize=8.5, color=palette.muted)


class SimplexDisplay(PredictionDisplay):
    """The map of three classes: arrows from the mean prediction of a cell of the simplex to the frequencies there.

    The picture of canonical calibration: whole vectors of probabilities are judged, not the favoured class alone. Predictions
    are put in cells of equal width along every class; cells with fewer than ``min_rows`` rows are left out. Arrows towards the
    middle say over-confidence. A calibrated model has no cell beyond chance in 19 of 20 data sets (outcomes resampled, the
    largest of all cells). ``tables`` hold ``cells`` and ``classes``. Vaicenavicius et al. (2019); Westfall & Young (1993).

    >>> p = np.random.default_rng(0).dirichlet([1.0, 1.0, 1.0], 800)
    >>> cells = SimplexDisplay.from_predictions(p.argmax(axis=1), p, n_resamples=99).tables["cells"]
    >>> cells.n_rows, cells["adjusted"].min()
    (25, np.float64(0.01))
    """

    drawing = Drawing(
        draw,
        size=(5.2, 4.75),
        legend=(("dot", "within chance"), ("diamond", "beyond chance"), ("line", "to what happened")),
        margins=(0.1, 0.1, 0.05, 0.05),
    )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        n_cells: int = 5,
        min_rows: int = 10,
        n_resamples: int | None = None,
        sample_weight: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> Self:
        """Cells of width ``1 / n_cells`` along every class."""
        refuse_clusters(cls, clusters, PICTURES)
        check_count(n_cells, "n_cells")
        check_count(min_rows, "min_rows")
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight, Classes(labels, pos_label))
        if not isinstance(predictions, Categorical) or predictions.n_classes != 3:
            raise InputError(
                f"the map shows probabilities of three classes; got {predictions!r}: see calibrant.plots.confusion"
            )
        p, y = to_numpy(predictions.matrix), to_numpy(targets)
        cell = Grid(n_cells).cells(p.astype(np.float64), weights)
        rows = np.bincount(cell)
        shown = np.flatnonzero(rows >= min(min_rows, rows.max()))
        gaps = CellGaps.of(cell, p, weights)
        gather = partial(_largest_class, gaps, shown)
        adjusted = gaps.adjusted(y, predictions, gather, resamples(n_resamples, len(p), WORK), rng, engine)
        predicted = gaps.counts.predicted[shown] / gaps.counts.weight[shown, None]
        observed = predicted - gaps.counts.gaps(y[None])[0][shown]
        columns = {f"claimed_{j}": predicted[:, j] for j in range(3)} | {
            f"happened_{j}": observed[:, j] for j in range(3)
        }
        weight = gaps.counts.weight[shown]
        cells = Table({"rows": rows[shown], "weight": weight, **columns, "adjusted": adjusted})
        return cls({"cells": cells, "classes": Table(name=list(predictions.class_names))})


def _largest_class(gaps: CellGaps, shown: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """The largest of the classes of each cell that is shown, ``(m, cells)``."""
    largest: np.ndarray = gaps.standardised(sums)[:, shown].max(axis=2)
    return largest


simplex = plotter(SimplexDisplay.from_predictions, "simplex")
