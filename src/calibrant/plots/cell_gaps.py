"""Claims against outcomes in cells of the rows, with the cells that chance does not explain."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np

from calibrant.distributions.base import Distribution
from calibrant.distributions.categorical import Categorical
from calibrant.estimators.canonical import CellCounts
from calibrant.inference.draws import draw
from calibrant.inference.multiplicity import westfall_young
from calibrant.typing import Engine, Seed

WORK = 10_000_000
"""Redrawn targets that marks may cost before they make do with fewer redraws."""

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
        variance = np.stack([np.bincount(cell, squares * x * (1 - x)) for x in p.T.astype(np.float64)], axis=1)
        return cls(CellCounts.in_cells(cell, p.astype(np.float64), weights), variance, float(squares.mean()))

    def sums(self, targets: np.ndarray) -> np.ndarray:
        """What was claimed less what happened, ``(m, cells, classes)``."""
        return self.counts.gaps(targets) * self.counts.weight[:, None]

    def standardised(self, sums: np.ndarray) -> np.ndarray:
        """Sizes of sums in units of their spread.

        One row's worth is added to the variance, so that single surprises in cells where nothing was expected do not drown the
        rest.
        """
        return np.abs(sums) / np.sqrt(self.variance + self.one_row)

    def adjusted(
        self,
        targets: np.ndarray,
        predictions: Distribution,
        gather: Gather,
        n_resamples: int,
        rng: Seed,
        engine: Engine | None,
    ) -> np.ndarray:
        """p-values of the statistics that ``gather`` makes, adjusted for their number: targets are redrawn."""
        observed = gather(self.sums(targets[None]))[0]
        task = partial(_largest, self, predictions, gather)
        largest = draw(task, n_resamples, width=len(predictions), rng=rng, engine=engine)
        return westfall_young(observed, largest)


def _largest(
    gaps: CellGaps, predictions: Distribution, gather: Gather, seed: np.random.SeedSequence, size: int
) -> np.ndarray:
    drawn = gather(gaps.sums(predictions.sample(np.random.default_rng(seed), size)))
    return drawn.reshape(size, -1).max(axis=1)


def names_of(predictions: Categorical) -> np.ndarray:
    """The names of the classes as a column of a table."""
    return np.array(predictions.class_names)
