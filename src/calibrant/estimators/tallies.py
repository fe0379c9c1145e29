"""What fell into each bin of an event."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from calibrant.estimators.binning import Bins
from calibrant.estimators.exact_sums import BLOCK, ROWS, add_shares, joined, sum_any, to_float, wholes


@dataclass(frozen=True, eq=False)
class Tally:
    """Weight, sum of probabilities, and weight of the rows where the event happened, in each bin.

    Sums are exact integers of :mod:`~calibrant.estimators.exact_sums` in even cells for rows where the event did not
    happen, and in odd cells for those where it did; so tallies of parts add up to the tally of the whole.
    """

    bins: Bins
    mass: np.ndarray
    score: np.ndarray

    @classmethod
    def empty(cls, bins: Bins) -> Self:
        """Before any row."""
        return cls(bins, np.zeros(2 * len(bins), dtype=object), np.zeros(2 * len(bins), dtype=object))

    def __add__(self, other: "Tally") -> "Tally":
        return replace(self, mass=self.mass + other.mass, score=self.score + other.score)

    @cached_property
    def weight(self) -> np.ndarray:
        """Weight of the rows in each bin."""
        return to_float(self.mass[::2] + self.mass[1::2])

    @cached_property
    def predicted(self) -> np.ndarray:
        """Sum of their probabilities."""
        return to_float(self.score[::2] + self.score[1::2])

    @cached_property
    def observed(self) -> np.ndarray:
        """Weight of the rows where the event happened."""
        return to_float(self.mass[1::2])

    @cached_property
    def predicted_where_observed(self) -> np.ndarray:
        """Sum of the probabilities of the rows where the event happened."""
        return to_float(self.score[1::2])

    @cached_property
    def gap(self) -> np.ndarray:
        """Mean probability minus observed frequency; zero in empty bins."""
        weight = self.weight
        return to_float(self.score[::2] + self.score[1::2] - self.mass[1::2]) / np.where(weight > 0, weight, 1)


def tally(
    scores: np.ndarray, happened: np.ndarray, bins: Bins, weights: np.ndarray | None, cell: np.ndarray | None = None
) -> Tally:
    """One pass over the rows, a block at a time; the ``cell`` of each row need not be found where it is known."""
    total = Tally.empty(bins)
    for start in range(0, len(happened), ROWS):
        rows = range(start, min(start + ROWS, len(happened)), BLOCK)
        cells = ((slice(i, i + BLOCK), _cells(scores, happened, bins, cell, slice(i, i + BLOCK))) for i in rows)
        total += _shares(bins, scores, cells) if weights is None else _weighted(bins, scores, weights, cells)
    return total


def _cells(scores: np.ndarray, happened: np.ndarray, bins: Bins, cell: np.ndarray | None, rows: slice) -> np.ndarray:
    """Even cells for rows where the event did not happen, odd ones for those where it did."""
    found = (bins.of_rows(scores, rows) if cell is None else cell[rows]) << 1
    found += happened[rows]
    return found


def _shares(bins: Bins, scores: np.ndarray, cells: Iterable[tuple[slice, np.ndarray]]) -> Tally:
    """Every row counts once."""
    totals = np.zeros((3, 2 * len(bins)), dtype=np.int64)
    for rows, cell in cells:
        add_shares(totals, scores[rows].astype(np.float64, copy=False), cell)
    return Tally(bins, wholes(totals[0]), joined(totals))


def _weighted(bins: Bins, scores: np.ndarray, weights: np.ndarray, cells: Iterable[tuple[slice, np.ndarray]]) -> Tally:
    """Rows count as much as their weights."""
    total = Tally.empty(bins)
    for rows, cell in cells:
        w, size = weights[rows], 2 * len(bins)
        total += Tally(bins, sum_any(w, cell, size), sum_any(w * scores[rows], cell, size))
    return total
