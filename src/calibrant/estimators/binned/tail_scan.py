"""Tails of the score: whether the highest and the lowest claims come true as often as they say."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from calibrant._array import to_numpy
from calibrant._clusters import Clusters
from calibrant.distributions.base import Distribution
from calibrant.estimators.base import LensedEstimator
from calibrant.estimators.binned.binning import Bins, with_ends
from calibrant.estimators.binned.ece import BinCounts, ClassCounts, EventCounts
from calibrant.estimators.binned.signed_counts import signed_counts
from calibrant.lenses.class_lenses import ClassWise, Event, Lens
from calibrant.results import Estimate, Table
from calibrant.typing import Array

MIN_VARIANCE = 0.25
"""The variance of the number of events, in rows, that a tail has at least: less says little beyond a single surprise."""

ROUNDING = 1e-9
"""Gaps up to this share of the weight of a tail are rounding."""


@dataclass(frozen=True)
class TailScan(LensedEstimator):
    """The largest gap between events predicted and observed in any tail of the score, in standard errors.

    ``max |sum (y - f)| / sqrt(sum f (1 - f) + 1)`` over upper tails ``f > t`` and lower tails ``f <= t``. Thresholds t are such
    that the variance of a tail is about a half, a quarter, an eighth and so on of that of all rows: tails that hold few
    rows or few events are looked at by themselves, where means over all rows, and errors by bins, drown them. One row is
    added to every variance, so that a single surprise does not decide. An event of probability 0 that happened, or of
    probability 1 that did not, makes it infinite. Of several events the largest counts.

    Not an error of probabilities but a statistic for :class:`~calibrant.ExactTest` and :class:`~calibrant.AggregatedTest`, which
    has it by default; never zero, and it grows with n where tails are wrong. Weights are importance. O(n log n).
    After the standardised empirical processes of Jaeschke (1979); Glaz, Naus & Wallenstein (2001) on scans.

    >>> f = np.r_[np.full(990, 0.01), np.full(10, 0.95)]
    >>> y = np.r_[np.repeat([1, 0], [10, 980]), np.repeat([1, 0], [5, 5])]  # of ten claims of 95 % five came true
    >>> scan = TailScan()(y, f)
    >>> round(scan.value, 2)
    3.71
    >>> worst = scan.table["score"].argmax()
    >>> str(scan.table["side"][worst]), round(float(scan.table["predicted"][worst]), 2), int(scan.table["observed"][worst])
    ('above', 9.5, 5)
    """

    lens: Lens | None = None

    least = 0.0

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The largest score, with the table of all tails: a positive score says that more was predicted than observed."""
        settled, events, lens = self.look(predictions)
        table = self.given(predictions, weights).table(to_numpy(targets), [event.name for event in events])
        value = float(np.abs(table["score"]).max())
        return Estimate("TailScan", value, len(predictions), settled, lens, table=table)

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> "TailStatistic":
        """Tails, and what they predict, are found once; each resample only counts what happened in them."""
        settled, events, _ = self.look(predictions)
        return TailStatistic.of(events, weights, is_class_wise=isinstance(settled.lens, ClassWise))

    def with_signs(
        self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None, clusters: Clusters
    ) -> "TailStatistic":
        """Gaps of tails get the signs of their clusters; they are scaled as if rows were independent."""
        _, events, _ = self.look(predictions)
        scan = TailStatistic.of(events, weights, is_class_wise=False)
        return replace(scan, counts=signed_counts(events, scan.bins, targets, weights, clusters))


@dataclass(frozen=True, eq=False)
class TailStatistic:
    """The largest score over tails as a function of targets; the variance between thresholds is ``(events, cells)``."""

    counts: tuple[BinCounts, ...]
    bins: tuple[Bins, ...]
    variance: tuple[np.ndarray, ...]
    unit: float

    @classmethod
    def of(cls, events: Sequence[Event], weights: np.ndarray | None, *, is_class_wise: bool) -> Self:
        """Cut the scores of each event."""
        spreads = [_variance(event.probability, weights) for event in events]
        unit = 1.0 if weights is None else float((weights**2).sum() / np.count_nonzero(weights))
        bins = tuple(tails(e.probability, v, unit) for e, v in zip(events, spreads, strict=True))
        triples = zip(events, bins, spreads, strict=True)
        cells = [np.bincount(b.of_rows(e.probability, slice(None)), weights=v, minlength=len(b)) for e, b, v in triples]
        if not is_class_wise:
            pairs = zip(events, bins, strict=True)
            counts: tuple[BinCounts, ...] = tuple(EventCounts.of(e, b, weights) for e, b in pairs)
            return cls(counts, bins, tuple(cell[None] for cell in cells), unit)
        width = max(map(len, bins))
        stacked = np.stack([np.pad(cell, (0, width - len(cell))) for cell in cells])
        return cls((ClassCounts.of(events, bins, weights),), bins, (stacked,), unit)

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """The largest score of each resample, ``(m,)``."""
        return self.each(targets).max(axis=1)

    def each(self, targets: np.ndarray) -> np.ndarray:
        """That of each event in each resample, ``(m, events)``."""
        pairs = zip(self.counts, self.variance, strict=True)
        return np.concatenate([np.abs(self._scores(c, v, targets)).max(axis=-1) for c, v in pairs], axis=1)

    def _scores(self, counts: BinCounts, variance: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Scores of lower tails, then of upper ones, ``(m, events, 2 cells)``."""
        gap, size = _both(counts.predicted - counts.observed(targets)), _both(variance)
        score: np.ndarray = gap / np.sqrt(size + self.unit)
        impossible = np.abs(gap) > np.where(size == 0, ROUNDING * _both(counts.weight), np.inf)
        score[impossible] = np.copysign(np.inf, gap[impossible])
        return score

    def table(self, targets: np.ndarray, names: Sequence[str]) -> Table:
        """One row a tail of each event: which side of which threshold, how many rows, what was predicted and observed."""
        columns: dict[str, list[np.ndarray]] = {key: [] for key in ("event", *TAIL_COLUMNS)}
        events = [(c, v, i) for c, v in zip(self.counts, self.variance, strict=True) for i in range(len(v))]
        for (counts, variance, i), bins, name in zip(events, self.bins, names, strict=True):
            observed, size = counts.observed(targets[None])[0, i], len(bins)
            score = self._scores(counts, variance, targets[None])[0, i]
            width = len(score) // 2
            keep = np.r_[0:size, width + 1 : width + size]  # the whole, which is both, once
            values = [_both(x)[keep] for x in (counts.weight[i], counts.predicted[i], observed)]
            inner = bins.edges[1:-1]
            side = np.repeat(["up to", "above"], [size, size - 1])
            threshold = np.r_[inner, bins.edges[-1:], inner].astype(np.float64)
            for key, column in zip(
                columns, [np.full(len(keep), name), side, threshold, *values, score[keep]], strict=True
            ):
                columns[key].append(column)
        joined = {key: np.concatenate(parts) for key, parts in columns.items()}
        return Table(joined if len(names) > 1 else {key: joined[key] for key in TAIL_COLUMNS})


TAIL_COLUMNS = ("side", "threshold", "weight", "predicted", "observed", "score")


def tails(scores: np.ndarray, variance: np.ndarray, unit: float) -> Bins:
    """Cells between thresholds: where lower and upper tails reach a half, a quarter and so on of the whole variance.

    Scores of exactly 0 and of exactly 1 have cells of their own.

    >>> f = np.array([0.01, 0.02, 0.3, 0.5, 0.6, 0.7])
    >>> tails(f, f * (1 - f), 1.0).edges
    array([0. , 0.3, 0.5, 1. ])
    """
    order = np.argsort(scores, kind="stable")
    ordered, reached = scores[order].astype(np.float64), np.cumsum(variance[order])
    whole = reached[-1]
    steps = int(max(0, np.floor(np.log2(max(whole / (MIN_VARIANCE * unit), 1)))))
    goals = whole * 0.5 ** np.arange(1, steps + 1)
    below = ordered[np.searchsorted(reached, goals * (1 - ROUNDING))]
    # an upper tail begins after its threshold: the last score with at least the goal beyond it
    beyond = np.searchsorted(reached, (whole - goals) * (1 + ROUNDING), side="right")
    above = ordered[np.maximum(beyond - 1, 0)]
    ends = np.array([0.0, np.nextafter(1.0, 0.0)])
    inner = np.unique(np.concatenate([below, above, ends]))
    return Bins(with_ends(inner[(inner >= ordered[0]) & (inner < ordered[-1])]))


def _variance(probability: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """What each row adds to the variance of the weight of events."""
    p = probability.astype(np.float64)
    return p * (1 - p) if weights is None else weights**2 * p * (1 - p)


def _both(cells: np.ndarray) -> np.ndarray:
    """Sums over lower tails, up to each cell, and over upper ones, from each cell on, on the last axis."""
    return np.concatenate([np.cumsum(cells, axis=-1), np.cumsum(cells[..., ::-1], axis=-1)[..., ::-1]], axis=-1)
