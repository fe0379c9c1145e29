"""Cutting probabilities into bins.

The rules hold for the whole library: bins are right-closed, 0 belongs to the first and 1 to the last, equal scores
share a bin, so that no result depends on the order of the rows.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from calibrant._validate import check_count


@dataclass(frozen=True, eq=False)
class Bins:
    """Right-closed cells of [0, 1]: cell b is ``(edges[b], edges[b + 1]]``, the first with its lower end."""

    edges: np.ndarray

    def __len__(self) -> int:
        return len(self.edges) - 1

    def index(self, scores: np.ndarray) -> np.ndarray:
        """The cell of each score."""
        return np.searchsorted(self.edges[1:-1], scores, side="left")


class UniformBins(Bins):
    """Cells of equal width, found by arithmetic instead of search."""

    def index(self, scores: np.ndarray) -> np.ndarray:
        """The cell of each score; a score equal to an edge, as a decimal, lands below it."""
        # The product may round to either side of an edge; comparing with the edge itself, the double nearest to j / B,
        # decides. The product is monotone, so it is never off by more than that one cell.
        index = (scores * len(self)).astype(np.intp)
        index -= scores <= self.edges[index]
        return np.maximum(index, 0, out=index)


class Binning(ABC):
    """A rule that makes bins, from the scores if need be; subclasses are frozen dataclasses."""

    @abstractmethod
    def bins(self, scores: np.ndarray, weights: np.ndarray | None = None) -> Bins:
        """The bins for these scores."""


@dataclass(frozen=True)
class EqualWidth(Binning):
    """``n_bins`` bins of the same width.

    >>> EqualWidth(10).bins(np.array([0.07])).index(np.array([0.0, 0.1, 0.3, 0.31, 1.0]))
    array([0, 0, 2, 3, 9])
    """

    n_bins: int = 15

    def __post_init__(self) -> None:
        check_count(self.n_bins, "n_bins")

    def bins(self, scores: np.ndarray, weights: np.ndarray | None = None) -> Bins:
        """The same bins whatever the scores; edges in their precision, so that 0.07 means 0.07 in float32 too."""
        return UniformBins((np.arange(self.n_bins + 1) / self.n_bins).astype(scores.dtype))


@dataclass(frozen=True)
class EqualMass(Binning):
    """``n_bins`` bins that hold the same number of rows, as nearly as ties allow.

    Sorted scores are cut as ``numpy.array_split`` cuts; a cut inside a run of equal scores moves to its end. A weight
    of 2 counts as two rows; weights that are not whole numbers share the total evenly.

    >>> EqualMass(2).bins(np.array([0.1, 0.2, 0.2, 0.9])).edges
    array([0. , 0.2, 1. ])
    """

    n_bins: int = 15

    def __post_init__(self) -> None:
        check_count(self.n_bins, "n_bins")

    def bins(self, scores: np.ndarray, weights: np.ndarray | None = None) -> Bins:
        """Bins between quantiles of the scores."""
        if weights is None:
            ordered = np.sort(scores)
            cuts = _cuts(len(scores), self.n_bins) - 1
        else:
            order = np.argsort(scores, kind="stable")
            order = order[weights[order] > 0]
            ordered, reached = scores[order], np.cumsum(weights[order])
            cuts = np.searchsorted(reached, _cuts(reached[-1], self.n_bins, weights) * (1 - 1e-12))
        inner = np.unique(ordered[cuts])
        ends = np.array([0, 1], dtype=scores.dtype)
        return Bins(np.concatenate([ends[:1], inner[inner < ordered[-1]], ends[1:]]))


def _cuts(total: float, n_bins: int, weights: np.ndarray | None = None) -> np.ndarray:
    """How many rows (or how much weight) lie below each inner edge."""
    j = np.arange(1, n_bins)
    if weights is not None and np.any(weights != np.floor(weights)):
        return j * (total / n_bins)
    size, larger = divmod(int(total), n_bins)
    return j * size + np.minimum(j, larger)
