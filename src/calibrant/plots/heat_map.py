"""Maps of cells: the gaps that chance does not explain, drawn from blue, below zero, over paper to orange."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from calibrant._numerics.sums import cell_sums
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.estimators.binned.canonical import CellCounts
from calibrant.inference.monte_carlo import draw
from calibrant.inference.multiplicity import westfall_young
from calibrant.plots.style import STEPS, Palette, distinct_names, inches_of
from calibrant.typing import Engine, Seed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WORK = 10_000_000
"""Resampled targets that marks may cost before they make do with fewer resamples."""

MAX_CELLS_PER_ROW = 4
"""Cells per row up to which all are counted."""

NUMBERS = 1 << 18
"""Sums of cells that are made at a time: so many stay in the cache."""

ALPHA = 0.05
"""What has an adjusted p-value up to this is marked."""

Gather = Callable[[np.ndarray], np.ndarray]
"""Sums ``(m, cells, classes)`` to the statistics that are marked, ``(m, ...)``."""


@dataclass(frozen=True, eq=False)
class CellGaps:
    """Sums over the rows of each cell and class: what was claimed less what happened, and its variance if calibrated."""

    counts: CellCounts
    variance: np.ndarray
    one_row: float

    @classmethod
    def of(cls, cell: np.ndarray, p: np.ndarray, weights: np.ndarray | None) -> Self:
        """Rows in cells ``(n,)``, with probabilities ``(n, classes)``."""
        squares = np.ones(len(p)) if weights is None else weights**2
        p = p.astype(np.float64)
        variance = cell_sums(cell, squares[:, None] * p * (1 - p))
        return cls(CellCounts.in_cells(cell, p, weights), variance, float(squares.mean()))

    def sums(self, targets: np.ndarray) -> np.ndarray:
        """What was claimed less what happened, ``(m, cells, classes)``."""
        return self.counts.gaps(targets) * self.counts.weight[:, None]

    def standardised(self, sums: np.ndarray) -> np.ndarray:
        """Sizes of sums in units of their spread.

        One row's worth is added to the variance, so that single surprises in cells where nothing was expected do not drown the
        rest.
        """
        return np.abs(sums) / np.sqrt(self.variance + self.one_row)

    def largest(self, targets: np.ndarray) -> np.ndarray:
        """The largest standardised sum of all cells and classes, ``(m,)``; of many cells only those are counted that have rows."""
        if self.variance.size <= MAX_CELLS_PER_ROW * targets.shape[1]:
            return self.standardised(self.sums(targets)).reshape(len(targets), -1).max(axis=1)
        index = self.counts.cell * self.variance.shape[1] + targets
        return np.array([self._largest_of(cells) for cells in index])

    def _largest_of(self, index: np.ndarray) -> float:
        """The same of one set of rows, in cells and classes ``(n,)``."""
        nothing, order, place = self._unseen
        found, row = np.unique(index, return_inverse=True)
        weight = self.counts.weight[found // self.variance.shape[1]]
        seen = np.bincount(row, weights=self.counts.weights)
        gap = (self.counts.predicted.ravel()[found] - seen) / np.where(weight > 0, weight, 1) * weight
        size = np.abs(gap) / np.sqrt(self.variance.ravel()[found] + self.one_row)
        is_seen = np.zeros(len(order) + 1, dtype=bool)
        is_seen[place[found]] = True
        return max(float(size.max()), float(nothing[order[np.argmin(is_seen[:-1])]]))

    @cached_property
    def _unseen(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Standardised sums where nothing happens; the largest of them, one more than rows; the place of each among these."""
        weight = self.counts.weight[:, None]
        sums = self.counts.predicted / np.where(weight > 0, weight, 1) * weight
        nothing = self.standardised(sums).ravel()
        order = np.argsort(-nothing, kind="stable")[: len(self.counts.cell) + 1]
        place = np.full(len(nothing), len(order))
        place[order] = np.arange(len(order))
        return nothing, order, place

    def __getstate__(self) -> dict[str, object]:
        return {key: value for key, value in self.__dict__.items() if key != "_unseen"}

    def adjusted(
        self,
        targets: np.ndarray,
        predictions: Distribution,
        gather: Gather | None,
        n_resamples: int,
        rng: Seed,
        engine: Engine | None,
    ) -> np.ndarray:
        """p-values of the statistics that ``gather`` makes, else of all sums, adjusted for their number: targets are resampled."""
        observed = (gather or self.standardised)(self.sums(targets[None]))[0]
        task = partial(_largest, self, predictions, gather)
        largest = draw(task, n_resamples, width=len(predictions), rng=rng, engine=engine)
        return westfall_young(observed, largest)


def _largest(
    gaps: CellGaps, predictions: Distribution, gather: Gather | None, seed: np.random.SeedSequence, size: int
) -> np.ndarray:
    drawn = predictions.sample(np.random.default_rng(seed), size)
    step = max(1, NUMBERS // gaps.variance.size)
    parts = (drawn[start : start + step] for start in range(0, size, step))
    if gather is None:
        return np.concatenate([gaps.largest(part) for part in parts])
    return np.concatenate([gather(gaps.sums(part)).reshape(len(part), -1).max(axis=1) for part in parts])


def names_of(predictions: Categorical) -> np.ndarray:
    """The names of the classes as a column of a table."""
    return np.array(predictions.class_names)


MIN_RANGE = 0.02
"""Shades reach their end at this at least: rounding and noise are to stay pale."""


def draw_cells(axes: "Axes", values: np.ndarray, palette: Palette, *, limit: float, gap: float = 0.04) -> None:
    """One rectangle a value, ``(rows, columns)``, the first row at the top; those that are not numbers are left out."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    places = [(row, column) for row, column in np.ndindex(values.shape) if np.isfinite(values[row, column])]
    size = 1 - gap
    patches = [Rectangle((column - size / 2, row - size / 2), size, size) for row, column in places]
    colours = [palette.shade(float(values[place]) / limit) for place in places]
    axes.add_collection(PatchCollection(patches, facecolors=colours, edgecolors="none", linewidths=0))
    rows, columns = values.shape
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))
    axes.tick_params(length=0, colors=palette.muted)
    axes.set_facecolor("none")
    for spine in axes.spines.values():
        spine.set_visible(False)
    for axis in (axes.xaxis, axes.yaxis):
        axis.label.set_color(palette.ink)


def limit_of(values: np.ndarray) -> float:
    """Where shades end: the largest value, rounded up to one digit.

    >>> limit_of(np.array([0.031, -0.172])), limit_of(np.zeros(3))
    (0.2, 0.02)
    """
    known = values[np.isfinite(values)]
    largest = max(float(np.abs(known).max(initial=0.0)), MIN_RANGE)
    unit = 10.0 ** np.floor(np.log10(largest))
    return float(np.ceil(np.round(largest / unit, 9)) * unit)


MAX_LETTERS = 16
"""Letters of a name at most."""


def is_slanted(names: Sequence[str]) -> bool:
    """Whether the names of columns are too long to stand side by side."""
    return sum(min(len(name), MAX_LETTERS) + 2 for name in names if name) > 44


def depth_of(names: Sequence[str]) -> float:
    """Inches that the names of columns take below a map."""
    return 0.28 + (0.046 * max(min(len(name), MAX_LETTERS) for name in names) if is_slanted(names) else 0.0)


def width_of(names: Sequence[str]) -> float:
    """Inches that the names of rows take beside a map."""
    return 0.4 + 0.074 * max(min(len(name), MAX_LETTERS) for name in names)


def label_cells(axes: "Axes", rows: Sequence[str], columns: Sequence[str]) -> None:
    """Names of rows and columns, slanted where they are long and many; long ones are cut."""
    axes.set_yticks(range(len(rows)), distinct_names(rows, MAX_LETTERS), fontsize=9.5)
    angle: dict[str, Any] = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if is_slanted(columns) else {}
    axes.set_xticks(range(len(columns)), distinct_names(columns, MAX_LETTERS), fontsize=9.5, **angle)


def scale_below(axes: "Axes", depth: float) -> "Axes":
    """Axes for the scale, so many inches below those of the map."""
    height = inches_of(axes)[1]
    return axes.inset_axes((0.0, -(depth + 0.38) / height, 1.0, 0.12 / height))


def draw_scale(axes: "Axes", palette: Palette, limit: float, words: tuple[str, str, str]) -> None:
    """The shades in one line, with words at both ends and the unit between."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    steps = range(-STEPS, STEPS + 1)
    patches = [Rectangle((step, 0), 1.02, 1) for step in steps]
    shades = [palette.shade(step / STEPS) for step in steps]
    axes.add_collection(PatchCollection(patches, facecolors=shades, edgecolors="none", linewidths=0))
    axes.set(xlim=(-STEPS, STEPS + 1), ylim=(0, 1), yticks=[])
    ends = (f"\N{MINUS SIGN}{100 * limit:g}", words[1], f"+{100 * limit:g}")
    axes.set_xticks([-STEPS + 0.5, 0.5, STEPS + 0.5], ends, fontsize=9)
    axes.tick_params(length=0, colors=palette.muted, pad=3)
    axes.set_facecolor("none")
    for spine in axes.spines.values():
        spine.set_color(palette.grid)
    for x, side, text in ((0.0, "left", words[0]), (1.0, "right", words[2])):
        axes.text(x, 1.3, text, ha=side, va="bottom", transform=axes.transAxes, fontsize=9, color=palette.ink)
