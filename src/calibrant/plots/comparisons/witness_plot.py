"""The kernel witness as a map: for which predictions which outcomes come more often than predicted."""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import logit

from calibrant._array import to_numpy
from calibrant._clusters import PICTURES, refuse_clusters
from calibrant._numerics.sums import cell_sums
from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution, needed
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.empirical.ensemble import Ensemble
from calibrant.distributions.empirical.quantiles import check_whole
from calibrant.distributions.multivariate import dimensions
from calibrant.distributions.reading.conversion import Classes, as_weighted_problem
from calibrant.estimators.forecast_errors.spread import moments_of, without_noise
from calibrant.plots.base import Drawing, Layout, PredictionDisplay, Tables, plotter, resamples
from calibrant.plots.classification.reliability import floor_of
from calibrant.plots.heat_map import (
    ALPHA,
    WORK,
    CellGaps,
    draw_cells,
    draw_scale,
    is_slanted,
    label_cells,
    limit_of,
    scale_below,
    width_of,
)
from calibrant.plots.style import Palette, compact
from calibrant.results import Table
from calibrant.typing import Array, ArrayLike, Engine, Seed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ERRORS = (-3.0, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0)
"""Edges of the errors of forecasts, in predicted standard deviations."""

N_GROUPS = 200
"""Groups of rows along the predictions, before they are smoothed."""

COLUMNS = 12
"""Places along the predictions."""

WIDTH = 0.06
"""Standard deviation of the kernel, as a share of the axis."""


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Targets as one of a few outcomes, the chances that the predictions give them, and where rows lie along an axis.

    ``asked`` says of which rows an outcome is asked, ``(n, outcomes)`` or all; ``position`` is where a row lies in [0, 1], and
    ``along`` the number there.
    """

    targets: np.ndarray
    chances: Categorical
    names: tuple[str, ...]
    asked: np.ndarray | None
    along: np.ndarray
    position: np.ndarray

    @classmethod
    def of(cls, targets: Array, predictions: Distribution) -> Self:
        """Favoured classes along the confidence, one event along its probability, or errors along the predicted spread."""
        if isinstance(predictions, Categorical) and predictions.n_classes == 2:
            return cls._risk(to_numpy(targets), predictions)
        if isinstance(predictions, Categorical):
            return cls._classes(to_numpy(targets), predictions)
        if isinstance(predictions, Ensemble | Bernoulli) or dimensions(predictions):
            raise InputError(
                f"the map shows classes, or forecasts of one number by a distribution; got {type(predictions).__name__} "
                "predictions: see calibrant.plots.pit_histogram or calibrant.plots.classwise"
            )
        return cls._errors(to_numpy(targets), predictions)

    @classmethod
    def _risk(cls, y: np.ndarray, predictions: Categorical) -> Self:
        """Does the event of two classes happen? It is asked of every row."""
        p = to_numpy(predictions.probability(1)).astype(np.float64)
        chances = Categorical(np.column_stack([p, 1 - p])).checked()
        asked = np.ones((len(p), 1), dtype=bool)
        return cls(1 - y, chances, predictions.class_names[1:], asked, p, log_odds_of(p))

    @classmethod
    def _classes(cls, y: np.ndarray, predictions: Categorical) -> Self:
        """Is the favoured class right? A last outcome stands for no."""
        p = to_numpy(predictions.matrix).astype(np.float64)
        favoured, confidence = p.argmax(axis=1), p.max(axis=1)
        k = p.shape[1]
        asked = favoured[:, None] == np.arange(k)
        chances = np.column_stack([np.where(asked, p, 0.0), 1 - confidence])
        right = np.where(y == favoured, favoured, k)
        names, position = predictions.class_names, log_odds_of(confidence)
        return cls(right, Categorical(chances).checked(), names, asked, confidence, position)

    @classmethod
    def _errors(cls, y: np.ndarray, predictions: Distribution) -> Self:
        """How many predicted standard deviations the target lies from the predicted mean."""
        mean, std = moments_of(predictions, "witness")
        edges = mean + std * np.array(ERRORS)[:, None]
        reached = to_numpy(needed(predictions.cdf(edges), "a distribution function", predictions, "witness"))
        chances = np.clip(np.diff(reached, axis=0, prepend=0.0, append=1.0).T, 0, 1)
        which = (y > edges).sum(axis=0)
        return cls(which, Categorical(chances).checked(), error_names(), None, std, ranks_of(without_noise(std)))


def error_names() -> tuple[str, ...]:
    """Errors in words.

    >>> error_names()[:2], error_names()[-1]
    (('below −3', '−3 to −2'), 'above 3')
    """
    ends = [f"{edge:g}".replace("-", "\N{MINUS SIGN}") for edge in ERRORS]
    return (f"below {ends[0]}", *(f"{a} to {b}" for a, b in pairwise(ends)), f"above {ends[-1]}")


def ranks_of(along: np.ndarray) -> np.ndarray:
    """The share of rows below each, equal ones at the middle of theirs."""
    _, which, count = np.unique(along, return_inverse=True, return_counts=True)
    return ((np.cumsum(count) - count / 2) / len(along))[which]


def log_odds_of(confidence: np.ndarray) -> np.ndarray:
    """Log-odds from the least to the largest, as shares of the way."""
    floor = floor_of(len(confidence))
    odds = logit(np.clip(confidence, floor, 1 - floor))
    return (odds - odds.min()) / (np.ptp(odds) or 1.0)


@dataclass(frozen=True, eq=False)
class Smoother:
    """The fine group of each row, and a Gaussian kernel of groups at each place, ``(places, groups)``."""

    group: np.ndarray
    kernel: np.ndarray

    @classmethod
    def of(cls, position: np.ndarray) -> Self:
        """Twelve places at even steps; the groups themselves where there are no more."""
        _, group = np.unique(np.minimum((N_GROUPS * position).astype(np.intp), N_GROUPS - 1), return_inverse=True)
        centre = np.bincount(group, position) / np.bincount(group)
        if len(centre) <= COLUMNS:
            return cls(group, np.eye(len(centre)))
        places = (np.arange(COLUMNS) + 0.5) / COLUMNS
        return cls(group, np.exp(-((places[:, None] - centre) ** 2) / (2 * WIDTH**2)))

    def total(self, values: np.ndarray) -> np.ndarray:
        """Sums of the values of rows, ``(n,)`` or ``(n, outcomes)``, under the kernel at each place."""
        sums: np.ndarray = self.kernel @ cell_sums(self.group, values.reshape(len(values), -1), self.kernel.shape[1])
        return sums if values.ndim == 2 else sums[:, 0]


AXES = {
    "classes": ("Confidence in the favoured class (log-odds scale)", "Favoured class"),
    "risk": ("Predicted probability (log-odds scale)", "Event"),
    "errors": ("Predicted standard deviation", "Error, in predicted standard deviations"),
}
"""What lies along the map, and down it."""

WORDS = {
    "classes": ("claimed too little", "percentage points", "claimed too much"),
    "risk": ("predicted too low", "percentage points", "predicted too high"),
    "errors": ("more often than claimed", "percentage points", "less often than claimed"),
}
"""What the shades say."""

ROWS = 3
"""Cells that rest on fewer rows than this are left out."""


def draw(axes: "Axes", tables: Tables, palette: Palette) -> None:
    """One column per place along the predictions, one row per outcome."""
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

    Of two classes, s is the probability of the event, of which all rows are asked. Of more, s is the confidence in the favoured
    class j, and ``w(s, j)`` is the mean over rows that favour j, weighted by a
    kernel ``k(s, s_i)``, of ``1[y_i = j] - p_ij``. Of forecasts of numbers, s is the predicted standard deviation, and j an
    error in such units, of which all rows are asked. The column ``gap`` is ``-w``: above zero (orange), more was claimed than
    happened. The kernel is Gaussian along the log-odds of a confidence and along the ranks of a spread. Dots mark cells beyond
    chance; in 19 of 20 data sets of a calibrated model there are none (outcomes resampled, the largest of all cells). ``tables``
    hold ``cells`` and ``settings``. O(n) per resample. Widmann, Lindsten & Zachariah (2021).

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
        clusters: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> Self:
        """Of many classes, the ``max_classes`` with the largest standardised values."""
        refuse_clusters(cls, clusters, PICTURES)
        check_count(max_classes, "max_classes")
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight, Classes(labels, pos_label))
        check_whole(predictions, "witness")
        outcomes = Outcomes.of(targets, predictions)
        y, k, smoother = outcomes.targets, len(outcomes.names), Smoother.of(outcomes.position)
        gaps = CellGaps.of(smoother.group, to_numpy(outcomes.chances.matrix), weights)
        gather = partial(_smoothed, gaps, smoother.kernel, k)
        adjusted = gaps.adjusted(y, outcomes.chances, gather, resamples(n_resamples, len(y), WORK), rng, engine)
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
        kind = "errors" if not is_class else "risk" if k == 1 else "classes"
        return cls({"cells": cells, "settings": Table(kind=[kind], outcomes=[k])})


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
    """As many as fit side by side, at even steps."""
    for step in range(1, len(texts)):
        shown = [text if i % step == 0 else "" for i, text in enumerate(texts)]
        if not is_slanted(shown):
            return shown
    return texts


witness = plotter(WitnessDisplay.from_predictions, "witness")
