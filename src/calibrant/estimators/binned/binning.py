"""Cutting probabilities into bins, and exact tallies of what falls into each.

The rules hold for the whole library: bins are right-closed, 0 belongs to the first and 1 to the last, and, unless asked
otherwise, equal scores share a bin, so that no result depends on the order of the rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, reduce
from operator import add
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np

from calibrant._numerics.sums import BLOCK, ROWS, add_shares, joined, sum_any, to_float, wholes
from calibrant._spellings import Settings
from calibrant._validate import InputError, check_count, check_one_of
from calibrant.lenses.class_lenses import Event

Ties: TypeAlias = Literal["together", "split"]
"""Whether equal scores share a bin, or are dealt out in the order of the rows."""


MAX_DIRECT_EDGES, MIN_SCORES, CACHED = 32, 20_000, 1 << 14
"""Where comparing many scores, some at a time, with each of a few edges is faster than to search: four times of 15 bins."""

MAX_REPETITIONS = 1_000_000
"""Weights further apart than this are not taken for multiples of the smallest: rounding would decide."""


LOST = 2.0**-52
"""Weights below this share of all would change no digit of a running total."""


@dataclass(frozen=True, eq=False)
class Bins:
    """Right-closed cells of [0, 1]: cell b is ``(edges[b], edges[b + 1]]``, the first with its lower end."""

    edges: np.ndarray

    def __len__(self) -> int:
        return len(self.edges) - 1

    def index(self, scores: np.ndarray) -> np.ndarray:
        """The cell of each score."""
        inner = self.edges[1:-1]
        if len(inner) > MAX_DIRECT_EDGES or scores.ndim != 1 or len(scores) < MIN_SCORES:
            return np.searchsorted(inner, scores, side="left")
        return np.concatenate([_edges_below(inner, scores[i : i + CACHED]) for i in range(0, len(scores), CACHED)])

    def of_rows(self, scores: np.ndarray, rows: slice) -> np.ndarray:
        """The cells of some of the rows that the bins were made for."""
        return self.index(scores[rows])


class _UniformBins(Bins):
    """Cells of equal width, found by arithmetic instead of search."""

    def index(self, scores: np.ndarray) -> np.ndarray:
        """The cell of each score; a score equal to an edge, as a decimal, lands below it."""
        # The product may round to either side of an edge; comparing with the edge itself, the double nearest to j / B,
        # decides. The product is monotone, so it is never off by more than that one cell.
        index = (scores * len(self)).astype(np.intp)
        index -= scores <= self._below[index]
        return index

    @cached_property
    def _below(self) -> np.ndarray:
        """What scores of a cell must exceed; 0 itself belongs to the first."""
        return np.concatenate([-np.ones(1, self.edges.dtype), self.edges[1:]])


@dataclass(frozen=True, eq=False)
class _RankBins(Bins):
    """Bins of rows by their rank: equal scores may lie in several, so each row's bin is kept."""

    assigned: np.ndarray = field(kw_only=True)

    def of_rows(self, scores: np.ndarray, rows: slice) -> np.ndarray:
        """As they were dealt out."""
        return self.assigned[rows]


MAX_BINS = 1_000_000
"""Bins that may be asked for; more only take memory."""


def check_bins(n_bins: int) -> None:
    """Refuse a number of bins that cannot be."""
    check_count(n_bins, "n_bins")
    if n_bins > MAX_BINS:
        raise InputError(f"n_bins must be at most {MAX_BINS:,}; got {n_bins:,}: bins need rows to fill them")


class Binning(Settings, ABC):
    """A rule that makes bins, from the scores if need be; subclasses are frozen dataclasses."""

    is_adaptive: ClassVar[bool] = False
    """Whether the bins depend on what happened."""

    is_fixed: ClassVar[bool] = False
    """Whether the bins are the same for all data."""

    @abstractmethod
    def bins(self, scores: np.ndarray, weights: np.ndarray | None = None, observed: np.ndarray | None = None) -> Bins:
        """The bins for these scores and, where they matter, for what happened."""

    def notes(self, made: list[Bins]) -> tuple[str, ...]:
        """What a reader must know of the bins of each event."""
        return ()

    def statistic(
        self, events: tuple[Event, ...], weights: np.ndarray | None, norm: float
    ) -> Callable[[np.ndarray], np.ndarray]:
        """The binned error as a function of resampled targets; needed of rules that are adaptive."""
        raise NotImplementedError


@dataclass(frozen=True)
class EqualWidth(Binning):
    """``n_bins`` bins of the same width.

    >>> EqualWidth(10).bins(np.array([0.07])).index(np.array([0.0, 0.1, 0.3, 0.31, 1.0]))
    array([0, 0, 2, 3, 9])
    """

    n_bins: int = 15

    is_fixed = True

    def __post_init__(self) -> None:
        check_bins(self.n_bins)

    def bins(self, scores: np.ndarray, weights: np.ndarray | None = None, observed: np.ndarray | None = None) -> Bins:
        """The same bins whatever the scores; edges in their precision, so that 0.07 means 0.07 in float32 too."""
        make = _uniform_bins if self.n_bins <= MAX_KEPT else _uniform_bins.__wrapped__
        return make(self.n_bins, scores.dtype)


MAX_KEPT = 1_000
"""Bins that are kept for the next call."""


@lru_cache(maxsize=32)
def _uniform_bins(n_bins: int, dtype: np.dtype[np.floating[Any]]) -> Bins:
    edges = (np.arange(n_bins + 1) / n_bins).astype(dtype)
    edges.setflags(write=False)  # calls share them
    return _UniformBins(edges)


@dataclass(frozen=True)
class Edges(Binning):
    """Bins between given edges, which begin with 0 and end with 1.

    >>> Edges((0, 0.2, 0.5, 1)).bins(np.zeros(1)).index(np.array([0.0, 0.2, 0.3, 1.0]))
    array([0, 0, 1, 2])
    """

    edges: tuple[float, ...]

    is_fixed = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", tuple(float(edge) for edge in self.edges))
        steps = np.diff(self.edges)
        if len(self.edges) < 2 or not np.all(steps > 0) or (self.edges[0], self.edges[-1]) != (0, 1):
            raise InputError(f"edges must grow from 0 to 1, as (0, 0.2, 0.5, 1) does; got {self.edges}")

    def bins(self, scores: np.ndarray, weights: np.ndarray | None = None, observed: np.ndarray | None = None) -> Bins:
        """The same bins whatever the scores; edges in their precision."""
        return Bins(np.array(self.edges).astype(scores.dtype))


@dataclass(frozen=True)
class EqualMass(Binning):
    """``n_bins`` bins that hold the same number of rows, as nearly as ties allow.

    Sorted scores are cut as ``numpy.array_split`` cuts; a cut inside a run of equal scores moves to its end. Of
    weights only the ratios matter: a row with twice the smallest weight counts as two; weights that are no whole multiples
    of the smallest share the total evenly. ``ties="split"`` deals equal scores out in the order of the rows, row of rank r
    to bin ``floor(r n_bins / n)``, as Roelofs et al. (2022) do: the result then depends on that order.

    >>> EqualMass(2).bins(np.array([0.1, 0.2, 0.2, 0.9])).edges
    array([0. , 0.2, 1. ])
    """

    n_bins: int = 15
    ties: Ties = "together"

    def __post_init__(self) -> None:
        check_bins(self.n_bins)
        check_one_of(self.ties, ("together", "split"), "ties")

    def bins(self, scores: np.ndarray, weights: np.ndarray | None = None, observed: np.ndarray | None = None) -> Bins:
        """Bins between quantiles of the scores."""
        if self.ties == "split":
            return _dealt(scores, weights, self.n_bins)
        if weights is None:
            cuts, places = _places(len(scores), self.n_bins)
            ordered = np.partition(scores, places)  # in order at the cuts, which is enough
        else:
            order = np.argsort(scores, kind="stable")
            order = order[weights[order] > 0]
            ordered, reached = scores[order], np.cumsum(weights[order])
            cuts = np.searchsorted(reached, _cuts(reached[-1], self.n_bins, weights) * (1 - 1e-12))
        inner = np.unique(ordered[cuts])
        return Bins(with_ends(inner[inner < ordered[-1]]))


def _edges_below(inner: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """How many edges lie below each score."""
    found = np.zeros(len(scores), dtype=np.uint8)
    for edge in inner:
        found += edge < scores
    return found.astype(np.intp)


def with_ends(inner: np.ndarray) -> np.ndarray:
    """All edges from the inner ones."""
    return np.concatenate([np.zeros(1, inner.dtype), inner, np.ones(1, inner.dtype)])


def _dealt(scores: np.ndarray, weights: np.ndarray | None, n_bins: int) -> _RankBins:
    """Rows by rank; edges lie at the largest score of each bin, which the next may share."""
    if weights is not None:
        raise InputError("ties='split' deals out whole rows: leave out sample_weight, or use ties='together'")
    n = len(scores)
    order = np.argsort(scores, kind="stable")
    bin_of_rank = np.arange(n) * n_bins // n
    assigned = np.empty(n, dtype=np.intp)
    assigned[order] = bin_of_rank
    last = np.searchsorted(bin_of_rank, np.arange(n_bins - 1), side="right") - 1
    return _RankBins(with_ends(scores[order][np.maximum(last, 0)]), assigned=assigned)


def _cuts(total: float, n_bins: int, weights: np.ndarray | None = None) -> np.ndarray:
    """How many rows (or how much weight) lie below each inner edge."""
    return rows_below(np.arange(1, n_bins), total, n_bins, unit=unit_of(weights))


@lru_cache(maxsize=64)
def _places(n: int, n_bins: int) -> tuple[np.ndarray, list[int]]:
    """Places of the largest scores of each bin but the last among n in order, and all different ones with the last row's."""
    places = _cuts(n, n_bins) - 1
    return places, [*np.unique(places).tolist(), n - 1]


def unit_of(weights: np.ndarray | None) -> float | None:
    """The weight of one row where all weights are whole multiples of the smallest, but for rounding.

    >>> unit_of(np.array([3.0, 1.5, 0.0])), unit_of(np.array([2.0, 3.0]))
    (1.5, None)
    """
    if weights is None:
        return 1
    unit = float(weights[weights > 0].min())
    rows = weights / unit
    is_whole = rows.max() <= MAX_REPETITIONS and np.all(np.abs(rows - np.rint(rows)) <= 1e-9 * rows)
    return unit if is_whole else None


def rows_below(j: np.ndarray, total: float, n_bins: int, *, unit: float | None) -> np.ndarray:
    """How much weight lies below the j-th of ``n_bins`` cuts: whole rows as ``numpy.array_split`` has it, or even shares."""
    if unit is None:
        return j * (total / n_bins)
    size, larger = divmod(round(total / unit), n_bins)
    found: np.ndarray = (j * size + np.minimum(j, larger)) * unit
    return found


@dataclass(frozen=True, eq=False)
class Ordered:
    """Distinct scores in their order (every row with ``ties="split"``), and what lies below each.

    ``weight`` and ``predicted`` have one entry more than there are scores: totals of everything before the first, before
    the second and so on. Cuts are positions in them.
    """

    scores: np.ndarray
    weight: np.ndarray
    predicted: np.ndarray
    order: np.ndarray
    ends: np.ndarray
    weights: np.ndarray | None

    @classmethod
    def of(cls, scores: np.ndarray, weights: np.ndarray | None, ties: Ties = "together") -> Self:
        """Sort once."""
        order = np.argsort(scores, kind="stable" if ties == "split" else None)
        if weights is not None:
            order = order[weights[order] >= LOST * weights.sum()]
        ordered = scores[order]
        last = np.ones(len(order), dtype=bool)
        if ties == "together":
            np.not_equal(ordered[1:], ordered[:-1], out=last[:-1])
        ends = np.flatnonzero(last) + 1
        w = None if weights is None else weights[order]
        weight = np.concatenate([[0], ends]).astype(np.float64) if w is None else _totals(w, ends)
        predicted = _totals(ordered.astype(np.float64) if w is None else ordered * w, ends)
        return cls(ordered[ends - 1], weight, predicted, order, ends, w)

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def is_whole(self) -> bool:
        """Whether sums of weights are exact: they are whole numbers."""
        return self.weights is None or not np.any(self.weights != np.floor(self.weights))

    def observed(self, observed: np.ndarray) -> np.ndarray:
        """Weight of the rows where the event happened before each score, ``(m, scores + 1)``, for ``(m, n)`` answers."""
        there = observed[:, self.order]
        if self.weights is not None:
            return _totals(there * self.weights, self.ends)
        return _totals(there, self.ends, dtype=np.int32 if len(self.order) < 1 << 31 else np.int64)


def _totals(values: np.ndarray, ends: np.ndarray, dtype: type | None = None) -> np.ndarray:
    """Running totals over the last axis at some positions, from zero on."""
    total = np.cumsum(values, axis=-1, dtype=dtype)
    at = total if len(ends) == total.shape[-1] else total[..., ends - 1]
    return np.concatenate([np.zeros((*at.shape[:-1], 1), at.dtype), at], axis=-1)


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
        return Tally(self.bins, self.mass + other.mass, self.score + other.score)

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
    found = []
    for start in range(0, len(observed), ROWS):
        rows = range(start, min(start + ROWS, len(observed)), BLOCK)
        cells = ((slice(i, i + BLOCK), _cells(scores, observed, bins, cell, slice(i, i + BLOCK))) for i in rows)
        found.append(_shares(bins, scores, cells) if weights is None else _weighted(bins, scores, weights, cells))
    return reduce(add, found) if found else Tally.empty(bins)


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


def lp_norm(gap: np.ndarray, weight: np.ndarray, norm: float) -> np.ndarray:
    """Weighted Lp norm over the last axis; entries without weight do not count.

    Weights are one row for all, or tables of one row that go with tables of gaps, ``(k, 1, bins)`` with ``(k, m, bins)``.
    """
    size = np.where(weight > 0, np.abs(gap), 0.0)
    largest = size.max(axis=-1)
    if np.isinf(norm):
        return largest
    unit = np.where(largest > 0, largest, 1.0)  # powers of shares of the largest cannot vanish
    powers = (size / unit[..., None]) ** norm
    total = powers @ weight if weight.ndim == 1 else (powers @ np.swapaxes(weight, -1, -2))[..., 0]
    return unit * (total / weight.sum(axis=-1)) ** (1 / norm)
