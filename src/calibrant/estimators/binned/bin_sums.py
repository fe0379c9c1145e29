"""What falls into each bin: exact tallies of the rows, and counts for many resamples at once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, Self

import numpy as np

from calibrant._numerics.sums import BLOCK, ROWS, add_shares, joined, sum_any, to_float, wholes
from calibrant.estimators.binned.binning import Bins
from calibrant.lenses.class_lenses import Event


@dataclass(frozen=True, eq=False)
class Tally:
    """Weight, sum of probabilities, and weight of the rows where the event happened, in each bin.

    Sums are exact integers of :mod:`~calibrant._numerics.sums` in even cells for rows where the event did not
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
    scores: np.ndarray, observed: np.ndarray, bins: Bins, weights: np.ndarray | None, cell: np.ndarray | None = None
) -> Tally:
    """One pass over the rows, a block at a time; the ``cell`` of each row need not be found where it is known."""
    total = Tally.empty(bins)
    for start in range(0, len(observed), ROWS):
        rows = range(start, min(start + ROWS, len(observed)), BLOCK)
        cells = ((slice(i, i + BLOCK), _cells(scores, observed, bins, cell, slice(i, i + BLOCK))) for i in rows)
        total += _shares(bins, scores, cells) if weights is None else _weighted(bins, scores, weights, cells)
    return total


def _cells(scores: np.ndarray, observed: np.ndarray, bins: Bins, cell: np.ndarray | None, rows: slice) -> np.ndarray:
    """Even cells for rows where the event did not happen, odd ones for those where it did."""
    found = (bins.of_rows(scores, rows) if cell is None else cell[rows]) << 1
    found += observed[rows]
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


CACHED = 1 << 16
"""Classes that are looked up at a time, so that they stay in the cache."""


def lp_norm(gap: np.ndarray, weight: np.ndarray, norm: float) -> np.ndarray:
    """Weighted Lp norm over the last axis; entries without weight do not count."""
    size = np.where(weight > 0, np.abs(gap), 0.0)
    largest = size.max(axis=-1)
    if np.isinf(norm):
        return largest
    unit = np.where(largest > 0, largest, 1.0)  # powers of shares of the largest cannot vanish
    return unit * (((size / unit[..., None]) ** norm @ weight) / weight.sum()) ** (1 / norm)


class BinCounts(Protocol):
    """Events with equally many bins: weights and sums of probabilities ``(events, bins)``, and counts of resamples."""

    @property
    def weight(self) -> np.ndarray:
        """Weight of the rows in each bin."""
        ...

    @property
    def predicted(self) -> np.ndarray:
        """Sum of their probabilities."""
        ...

    def observed(self, targets: np.ndarray) -> np.ndarray:
        """Weight of the rows where each event happened, ``(m, events, bins)``, for targets ``(m, n, ...)``."""
        ...


@dataclass(frozen=True, eq=False)
class EventCounts:
    """Counts of one event: rows are put in the order of their bins, and each stretch is summed.

    A product with the indicator matrix of bins takes two to three times as long, and much more room.
    """

    event: Event
    stretches: "Stretches"
    weights: np.ndarray | None
    weight: np.ndarray
    predicted: np.ndarray

    @classmethod
    def of(cls, event: Event, bins: Bins, weights: np.ndarray | None) -> Self:
        """Prepare the resamples of an event."""
        p = event.probability
        stretches = Stretches.of(bins.of_rows(p, slice(None)), len(bins))
        w = stretches.ordered(np.ones(len(p)) if weights is None else weights)
        predicted = stretches.sums(w * stretches.ordered(p.astype(np.float64)))
        return cls(event, stretches, None if weights is None else w, stretches.sums(w)[None], predicted[None])

    def observed(self, targets: np.ndarray) -> np.ndarray:
        """Weight of the rows where the event happened, ``(m, 1, bins)``."""
        observed = self.stretches.ordered(self.event.observed(targets))
        return self.stretches.sums(observed if self.weights is None else observed * self.weights)[:, None, :]


@dataclass(frozen=True, eq=False)
class Stretches:
    """Rows in the order of their cells: what that order is, where the stretch of each filled cell starts, and how many there are.

    >>> stretches = Stretches.of(np.array([2, 0, 2]), 4)
    >>> stretches.sums(stretches.ordered(np.array([[0.5, 1.0, 2.0]])))
    array([[1. , 0. , 2.5, 0. ]])
    """

    order: np.ndarray | None
    filled: np.ndarray
    starts: np.ndarray
    size: int

    @classmethod
    def of(cls, cell: np.ndarray, size: int) -> Self:
        """From the number of each row's cell, of so many; small integers are sorted in O(n)."""
        count = np.bincount(cell, minlength=size)
        filled = np.flatnonzero(count)
        order = np.argsort(cell.astype(np.min_scalar_type(size)), kind="stable") if len(filled) > 1 else None
        return cls(order, filled, (np.cumsum(count) - count)[filled], size)

    def ordered(self, values: np.ndarray) -> np.ndarray:
        """Rows on the last axis, put in order; not to ask whether they exist is faster."""
        return values if self.order is None else np.take(values, self.order, axis=-1, mode="clip")

    def sums(self, ordered: np.ndarray) -> np.ndarray:
        """The sum over each cell, ``(..., size)``; truth values are counted."""
        total = np.zeros((*ordered.shape[:-1], self.size))
        dtype = np.uint32 if ordered.dtype == bool else np.float64
        total[..., self.filled] = np.add.reduceat(ordered, self.starts, axis=-1, dtype=dtype)
        return total


@dataclass(frozen=True, eq=False)
class ClassCounts:
    """Counts of all classes of a categorical problem: each row adds to one bin of one class, whatever their number."""

    cell: np.ndarray
    weights: np.ndarray | None
    weight: np.ndarray
    predicted: np.ndarray

    @classmethod
    def of(cls, events: Sequence[Event], bins: Sequence[Bins], weights: np.ndarray | None) -> Self:
        """Prepare the resamples of k events, one a class."""
        width = max(map(len, bins))
        cells = [
            b.of_rows(e.probability, slice(None)) + i * width for i, (e, b) in enumerate(zip(events, bins, strict=True))
        ]
        size = len(events) * width
        w = np.ones(len(cells[0])) if weights is None else weights
        weight = sum(np.bincount(c, weights=w, minlength=size) for c in cells)
        predicted = sum(
            np.bincount(c, weights=w * e.probability, minlength=size) for c, e in zip(cells, events, strict=True)
        )
        shape = (len(events), width)
        return cls(np.stack(cells, axis=1), weights, np.reshape(weight, shape), np.reshape(predicted, shape))

    def observed(self, targets: np.ndarray) -> np.ndarray:
        """Weight of the rows of each class that occurred, ``(m, k, bins)``."""
        n, k = self.cell.shape
        every, first = self.cell.reshape(-1), np.arange(n) * k
        size = max(1, CACHED // n)
        parts = [self._counts(every, first + targets[i : i + size]) for i in range(0, len(targets), size)]
        return np.concatenate(parts)

    def _counts(self, every: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Of some resamples, from all cells and where those of the classes that occurred stand among them."""
        m, size = len(index), self.weight.size
        cell = np.take(every, index, mode="clip") + size * np.arange(m)[:, None]
        w = None if self.weights is None else np.broadcast_to(self.weights, index.shape).ravel()
        return np.bincount(cell.ravel(), weights=w, minlength=m * size).reshape(m, *self.weight.shape)


@dataclass(frozen=True, eq=False)
class BinnedStatistic:
    """The binned error as a function of resampled targets."""

    norm: float
    counts: tuple[BinCounts, ...]

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """The error of each resample, ``(m,)``."""
        errors = self.each(targets)
        return lp_norm(errors, np.ones(errors.shape[1]), self.norm)

    def each(self, targets: np.ndarray) -> np.ndarray:
        """The error of each event in each resample, ``(m, events)``."""
        return np.concatenate([self._errors(c, targets) for c in self.counts], axis=1)

    def _errors(self, counts: BinCounts, targets: np.ndarray) -> np.ndarray:
        """The error of each event, ``(m, events)``."""
        gap = (counts.predicted - counts.observed(targets)) / np.where(counts.weight > 0, counts.weight, 1)
        pairs = zip(np.moveaxis(gap, 1, 0), counts.weight, strict=True)
        return np.stack([lp_norm(g, w, self.norm) for g, w in pairs], axis=1)
