"""The confusion of confidence: which classes the model claims too much, by the class it favours."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from calibrant._array import to_numpy
from calibrant._clusters import PICTURES, refuse_clusters
from calibrant._validate import InputError, check_count
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.reading.conversion import Classes, as_weighted_problem
from calibrant.plots.base import Drawing, Layout, PredictionDisplay, Tables, plotter, resamples
from calibrant.plots.heat_map import (
    ALPHA,
    WORK,
    CellGaps,
    depth_of,
    draw_cells,
    draw_scale,
    label_cells,
    limit_of,
    names_of,
    scale_below,
    width_of,
)
from calibrant.plots.style import Palette
from calibrant.results import Table
from calibrant.typing import ArrayLike, Engine, Seed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WORDS = ("claimed too little", "percentage points", "claimed too much")
"""What the shades say."""


def draw(axes: "Axes", tables: Tables, palette: Palette) -> None:
    """Gaps in percentage points, one row per favoured class, one column per class."""
    cells = tables["cells"]
    names = list(dict.fromkeys(cells["class"].tolist()))
    favoured = list(dict.fromkeys(cells["favoured"].tolist()))
    shape = len(favoured), len(names)
    gap, adjusted = (cells[name].reshape(shape) for name in ("gap", "adjusted"))
    limit = limit_of(gap)
    draw_cells(axes, gap, palette, limit=limit)
    label_cells(axes, favoured, names)
    _write(axes, gap, adjusted <= ALPHA, palette)
    axes.set(ylabel="Favoured class")
    axes.xaxis.set_label_position("top")
    axes.set_xlabel(_heading(tables), fontsize=10, labelpad=6)
    draw_scale(scale_below(axes, depth_of(names)), palette, limit, WORDS)


def _write(axes: "Axes", gap: np.ndarray, marked: np.ndarray, palette: Palette) -> None:
    """The numbers; those beyond chance are bold and framed."""
    from matplotlib.patches import Rectangle

    size = min(10.0, 84 / gap.shape[1])
    for (row, column), value in np.ndenumerate(gap):
        if not np.isfinite(value):
            continue
        is_marked = bool(marked[row, column])
        look: dict[str, Any] = {"fontsize": size, "fontweight": "bold" if is_marked else "normal", "color": palette.ink}
        axes.text(column, row, _points(value, is_marked), ha="center", va="center", **look)
        if is_marked:
            frame = Rectangle((column - 0.46, row - 0.46), 0.92, 0.92, fill=False, edgecolor=palette.ink, linewidth=1)
            axes.add_patch(frame)


def _points(value: float, is_marked: bool) -> str:
    """Percentage points; tenths of what is marked and small.

    >>> _points(0.114, False), _points(-0.0043, False), _points(-0.0043, True)
    ('+11', '0', '−0.4')
    """
    digits = int(is_marked and abs(value) < 0.00951)
    rounded = round(100 * float(value), digits)
    return f"{rounded:+.{digits}f}".replace("-", "\N{MINUS SIGN}") if rounded else "0"


def _heading(tables: Tables) -> str:
    shown, total = len(set(tables["cells"]["class"].tolist())), int(tables["settings"]["classes"][0])
    return "Class" if shown == total else f"Class ({shown} of {total}, those that stand out most)"


def layout_of(tables: Tables) -> Layout:
    """Room for the names of classes."""
    names = [str(name) for name in dict.fromkeys(tables["cells"]["class"].tolist())]
    favoured = [str(name) for name in dict.fromkeys(tables["cells"]["favoured"].tolist())]
    below, left = depth_of(names) + 0.62, width_of(favoured)
    side = min(0.9, 3.85 / len(names))
    return Layout((5.2, side * len(favoured) + below + 0.42), (left, 0.18, below, 0.42))


class ConfusionDisplay(PredictionDisplay):
    """The confusion of confidence: among rows where a class is favoured, the mean probability of each class less its share.

    Above zero (orange) the class was claimed more often than it happened, below (blue) less. On the diagonal lies the
    over-confidence in the favoured class, beside it where the missing probability should have gone. Frames mark cells beyond
    chance: no cell of a calibrated model is framed in 19 of 20 data sets (outcomes resampled from the predictions, the largest
    standardised gap of all cells). ``tables`` hold ``cells`` and ``settings``. O(n) per resample. Westfall & Young (1993).

    >>> p = np.random.default_rng(0).dirichlet([0.3, 0.3, 0.3], 500)
    >>> y = np.array([np.random.default_rng(i).choice(3, p=0.7 * row + 0.1) for i, row in enumerate(p)])
    >>> cells = ConfusionDisplay.from_predictions(y, p, n_resamples=99).tables["cells"]
    >>> cells["gap"][[0, 4, 8]].round(2), cells["adjusted"].min()
    (array([0.14, 0.12, 0.06]), np.float64(0.01))
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
        clusters: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> Self:
        """The gaps of all classes, or of the ``max_classes`` that stand out most."""
        refuse_clusters(cls, clusters, PICTURES)
        check_count(max_classes, "max_classes", least=2)
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight, Classes(labels, pos_label))
        if not isinstance(predictions, Categorical):
            raise InputError(f"classes are confused, and these are {type(predictions).__name__} predictions")
        p, y = to_numpy(predictions.matrix), to_numpy(targets)
        favoured, cell = np.unique(p.argmax(axis=1), return_inverse=True)
        gaps = CellGaps.of(cell, p, weights)
        adjusted = gaps.adjusted(y, predictions, None, resamples(n_resamples, len(p), WORK), rng, engine)
        size = gaps.standardised(gaps.sums(y[None]))[0]
        kept = _standing_out(size, favoured, max_classes)
        rows, columns = np.flatnonzero(np.isin(favoured, kept)), np.array(kept)
        table = _table(gaps, y, adjusted, names_of(predictions), favoured, (rows, columns))
        return cls({"cells": table, "settings": Table(classes=[p.shape[1]])})


def _standing_out(size: np.ndarray, favoured: np.ndarray, most: int) -> list[int]:
    """The classes of the largest cells, as many as are shown, in their order."""
    kept: list[int] = []
    for flat in np.argsort(-size, axis=None, kind="stable"):
        row, column = divmod(int(flat), size.shape[1])
        new = [c for c in dict.fromkeys((int(favoured[row]), column)) if c not in kept]
        if len(kept) + len(new) <= most:
            kept += new
        if len(kept) == most:
            break
    return sorted(kept)


def _table(
    gaps: CellGaps,
    y: np.ndarray,
    adjusted: np.ndarray,
    names: np.ndarray,
    favoured: np.ndarray,
    shown: tuple[np.ndarray, np.ndarray],
) -> Table:
    """A row a favoured class and class."""
    rows, columns = shown
    weight = gaps.counts.weight[:, None]
    predicted, gap = gaps.counts.predicted / weight, gaps.counts.gaps(y[None])[0]
    parts = {"claimed": predicted, "happened": predicted - gap, "gap": gap, "adjusted": adjusted}
    return Table(
        {
            "favoured": np.repeat(names[favoured[rows]], len(columns)),
            "class": np.tile(names[columns], len(rows)),
            "weight": np.repeat(gaps.counts.weight[rows], len(columns)),
            **{name: part[np.ix_(rows, columns)].ravel() for name, part in parts.items()},
        }
    )


confusion = plotter(ConfusionDisplay.from_predictions, "confusion")
