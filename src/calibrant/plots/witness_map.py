"""The kernel witness as a map: for which predictions which outcomes come more often than claimed."""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Self

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution, needed
from calibrant.distributions.bernoulli import Bernoulli
from calibrant.distributions.categorical import Categorical
from calibrant.distributions.conversion import as_weighted_problem
from calibrant.distributions.coordinates import dimensions
from calibrant.distributions.ensemble import Ensemble
from calibrant.estimators.z_scores import moments_of
from calibrant.plots.axes import logit
from calibrant.plots.cell_gaps import ALPHA, WORK, CellGaps
from calibrant.plots.claims import floor_of
from calibrant.plots.curves import redraws
from calibrant.plots.display import PredictionDisplay, plotter
from calibrant.plots.heat_map import draw_cells, draw_scale, label_cells, limit_of, scale_below, width_of
from calibrant.plots.picture import Drawing, Layout, Tables
from calibrant.plots.style import Palette
from calibrant.results import Table
from calibrant.typing import Array, ArrayLike, Engine, Seed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FINE = 200
"""Groups of rows along the predictions, before they are smoothed."""

COLUMNS = 12
"""Places along the predictions."""

WIDTH = 0.06
"""Standard deviation of the kernel, as a share of the axis."""

NEAR, ROWS = 0.5, 5
"""Places with fewer rows than this under the upper half of the kernel are left out."""

Smoother = tuple[np.ndarray, np.ndarray, np.ndarray]
"""The group of each row, the kernel ``(places, groups)``, and where the places lie."""

ERRORS = (-3.0, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0)
"""Edges of the errors of forecasts, in predicted standard deviations."""

ERROR = "Error, in predicted standard deviations"

WORDS = ("less often than claimed", "percentage points", "more often than claimed")
"""What the shades say."""


def draw(axes: "Axes", tables: Tables, palette: Palette) -> None:
    """A column a place along the predictions, a row an outcome."""
    cells = tables["cells"]
    outcomes = [str(name) for name in dict.fromkeys(cells["outcome"].tolist())]
    shape = len(outcomes), cells.n_rows // len(outcomes)
    along = cells["along"][: shape[1]]
    value, adjusted = (cells[name].reshape(shape) for name in ("value", "adjusted"))
    limit = limit_of(value)
    draw_cells(axes, value, palette, limit=limit, gap=0.0)
    marked = np.argwhere(adjusted <= ALPHA)
    axes.scatter(marked[:, 1], marked[:, 0], s=7, color=palette.ink, linewidth=0, zorder=3)
    label_cells(axes, outcomes, every_other(short_numbers(along)))
    settings = next(tables["settings"].rows())
    axes.set(xlabel=settings["axis"], ylabel=settings["outcomes"])
    draw_scale(scale_below(axes, 0.5), palette, limit, WORDS)


def layout_of(tables: Tables) -> Layout:
    """Room for the names of outcomes."""
    outcomes = [str(name) for name in dict.fromkeys(tables["cells"]["outcome"].tolist())]
    left, below = width_of(outcomes), 1.15
    return Layout((5.2, min(0.42 * len(outcomes), 3.6) + 0.6 + below), (left, 0.18, below, 0.12))


class WitnessDisplay(PredictionDisplay):
    """The kernel witness as a map: where along the predictions which outcomes come more or less often than claimed.

    ``w(s, j) = sum_i k(s, s_i) (1[y_i = j] - p_ij) / sum_i k(s, s_i)``: of classes, s is the confidence in the favoured one and j
    the class; of forecasts of numbers, s is the predicted standard deviation and j the error in such units. The kernel is Gaussian
    along the log-odds of a confidence and along the ranks of a spread. Dots mark cells beyond chance, with no dot in 19 of 20
    data sets of a calibrated model (outcomes redrawn, the largest of all cells). ``tables`` hold ``cells`` and ``settings``.
    O(n) a redraw. Widmann, Lindsten & Zachariah (2021).

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
        outcomes = Outcomes.of(targets, predictions)
        y, n = outcomes.targets, len(outcomes.targets)
        cell, smoother, along = smoother_of(outcomes.position, outcomes.along, weights)
        gaps = CellGaps.of(cell, to_numpy(outcomes.chances.matrix), weights)
        gather = partial(_smoothed, smoother, gaps.variance)
        adjusted = gaps.adjusted(y, outcomes.chances, gather, redraws(n_resamples, n, WORK), rng, engine)
        largest = gather(gaps.standardised(y[None]))[0].max(axis=0)
        shown = outcomes.shown(largest, max_classes)
        value = smoother @ (-gaps.counts.gaps(y[None])[0] * gaps.counts.weight[:, None])
        value /= (smoother @ gaps.counts.weight)[:, None]
        cells = Table(
            outcome=np.repeat(np.array(outcomes.names)[shown], len(along)),
            along=np.tile(along, len(shown)),
            value=value[:, shown].T.ravel(),
            adjusted=adjusted[:, shown].T.ravel(),
        )
        settings = Table(axis=[outcomes.axis], outcomes=[outcomes.title], classes=[len(outcomes.names)])
        return cls({"cells": cells, "settings": settings})


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Targets as one of a few outcomes, the chances that the predictions give them, and the axis along the predictions."""

    targets: np.ndarray
    chances: Categorical
    names: tuple[str, ...]
    along: np.ndarray
    position: np.ndarray
    axis: str
    title: str

    @classmethod
    def of(cls, targets: Array, predictions: Distribution) -> Self:
        """Classes along the confidence, or errors along the predicted spread."""
        if isinstance(predictions, Categorical):
            confidence = to_numpy(predictions.matrix).max(axis=1).astype(np.float64)
            names = predictions.class_names
            position, axis = log_odds_of(confidence), "Confidence in the favoured class"
            return cls(to_numpy(targets), predictions, names, confidence, position, axis, "Class")
        if isinstance(predictions, Ensemble | Bernoulli) or dimensions(predictions):
            raise InputError(
                f"the map shows classes, or forecasts of one number by a distribution; got {type(predictions).__name__} "
                "predictions: see calibrant.plots.levels or calibrant.plots.classwise"
            )
        mean, std = (column.astype(np.float64) for column in moments_of(predictions, "witness"))
        edges = mean + std * np.array(ERRORS)[:, None]
        reached = to_numpy(needed(predictions.cdf(edges), "a distribution function", predictions, "witness"))
        matrix = np.diff(reached, axis=0, prepend=0.0, append=1.0).T
        y = (to_numpy(targets) > edges).sum(axis=0)
        chances = Categorical(np.clip(matrix, 0, 1)).checked()
        return cls(y, chances, error_names(), std, ranks_of(std), "Predicted standard deviation", ERROR)

    def shown(self, largest: np.ndarray, most: int) -> np.ndarray:
        """Errors from high to low; of classes the largest, in their order."""
        if self.title != "Class":
            return np.arange(len(self.names))[::-1]
        return np.sort(np.argsort(-largest, kind="stable")[:most])


def error_names() -> tuple[str, ...]:
    """Errors in words.

    >>> error_names()[:2], error_names()[-1]
    (('below −3', '−3 to −2'), 'above 3')
    """
    ends = [f"{edge:g}".replace("-", "\N{MINUS SIGN}") for edge in ERRORS]
    return (f"below {ends[0]}", *(f"{a} to {b}" for a, b in pairwise(ends)), f"above {ends[-1]}")


def smoother_of(position: np.ndarray, along: np.ndarray, weights: np.ndarray | None) -> Smoother:
    """Fine groups of positions in [0, 1], a Gaussian kernel of them at each place, and the mean of ``along`` there."""
    _, cell = np.unique(np.minimum((FINE * position).astype(np.intp), FINE - 1), return_inverse=True)
    w = np.ones(len(cell)) if weights is None else weights
    weight = np.bincount(cell, w)
    centre = np.bincount(cell, w * position) / weight
    places = (np.arange(COLUMNS) + 0.5) / COLUMNS
    kernel = (
        np.exp(-((places[:, None] - centre) ** 2) / (2 * WIDTH**2)) if len(weight) > COLUMNS else np.eye(len(weight))
    )
    kernel = kernel[(kernel > NEAR) @ np.bincount(cell) >= ROWS] if len(weight) > COLUMNS else kernel
    return cell, kernel, (kernel @ np.bincount(cell, w * along)) / (kernel @ weight)


def ranks_of(along: np.ndarray) -> np.ndarray:
    """The share of rows below each, equal ones at the middle of theirs."""
    _, which, count = np.unique(along, return_inverse=True, return_counts=True)
    return ((np.cumsum(count) - count / 2) / len(along))[which]


def log_odds_of(confidence: np.ndarray) -> np.ndarray:
    """Log-odds from the least to the largest, as shares of the way."""
    floor = floor_of(len(confidence))
    odds = logit(np.clip(confidence, floor, 1 - floor))
    return (odds - odds.min()) / (np.ptp(odds) or 1.0)


def _smoothed(smoother: np.ndarray, variance: np.ndarray, standardised: np.ndarray) -> np.ndarray:
    """Sums of groups under the kernel, in units of their spread, ``(m, places, outcomes)``."""
    spread = np.sqrt(smoother**2 @ variance)
    size: np.ndarray = np.abs(smoother @ (standardised * np.sqrt(variance))) / spread
    return size


def short_numbers(values: np.ndarray) -> list[str]:
    """Numbers with two digits; of those just below one, two digits of what is missing.

    >>> short_numbers(np.array([0.512, 0.9941, 12.34]))
    ['0.51', '0.994', '12']
    """
    missing = np.where((values < 1) & (values > 0.9), 1 - values, values)
    return [
        f"{x:.{int(np.ceil(-np.log10(m)))}f}" if m != x else f"{x:.2g}" for x, m in zip(values, missing, strict=True)
    ]


def every_other(texts: list[str]) -> list[str]:
    """As many as there is room for."""
    return [text if i % 2 == 0 or len(texts) < 7 else "" for i, text in enumerate(texts)]


witness = plotter(WitnessDisplay.from_predictions, "witness")
