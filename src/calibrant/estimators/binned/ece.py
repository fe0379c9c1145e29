"""The expected calibration error over bins of the predicted probability, of the data and of many resamples at once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np

from calibrant._clusters import Clusters
from calibrant._tasks import cuts
from calibrant._validate import InputError, check_norm, shown
from calibrant.distributions.base import Distribution
from calibrant.estimators.base import LensedEstimator, Statistic
from calibrant.estimators.binned.binning import Binning, Bins, EqualWidth, Tally, lp_norm, tally
from calibrant.estimators.binned.signed_counts import signed_counts
from calibrant.estimators.limits import EXACT, ErrorLimits, binned_slack, largest_gap, noise_of, noise_of_rows
from calibrant.estimators.signs import no_signs
from calibrant.lenses.class_lenses import ClassWise, Event, Lens
from calibrant.results import Estimate, Table
from calibrant.typing import Array

ADAPTIVE = "the bins depend on what happened; bins that do not, such as EqualMass(15), have one"
"""Why an error of adaptive bins has no interval."""


@dataclass(frozen=True)
class ECE(LensedEstimator):
    """Expected calibration error: the mean distance of predicted from observed frequency over bins.

    ``(sum_b w_b |fbar_b - ybar_b|^p)^(1/p)`` with ``w_b`` the share of rows in bin b, ``fbar_b`` their mean predicted
    probability, ``ybar_b`` how often the event happened, and ``p = norm`` (``inf``: the largest gap). With
    ``label_binned`` every row's own probability is compared with ``ybar_b``. Several events (``lens=ClassWise()``)
    are averaged in the same norm.

    Never negative, hence biased upwards: read it beside the null band of :class:`~calibrant.ExactTest`. With norm 1, 2 or
    ``inf``, ``confidence_interval()`` covers the error that these bins would show with the true frequencies of the predictions;
    it reaches down to zero where chance explains the error, and there is none for bins that depend on what happened. O(n)
    time with equal widths, O(n log n) with equal mass. Naeini, Cooper & Hauskrecht (2015); Roelofs et al. (2022).

    >>> from calibrant import ECE, EqualWidth
    >>> ECE(bins=EqualWidth(10))([1, 0], [0.95, 1.0])
    ECE = 0.475
      lens       positive class (1)
      n          2
      estimator  ECE(bins=EqualWidth(n_bins=10), lens=PositiveClass())
    """

    least = 0.0
    most = 1.0

    bins: Binning = EqualWidth(15)  # noqa: RUF009  # frozen
    norm: float = 1
    lens: Lens | None = None
    label_binned: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.bins, Binning):
            n = self.bins if isinstance(self.bins, int) else 15
            raise InputError(
                f"bins must be a binning such as EqualWidth({n}) or EqualMass({n}); got {shown(self.bins)}"
            )
        check_norm(self.norm)
        super().__post_init__()

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The error with its bin table."""
        settled, events, lens = self.look(predictions)
        tallies = [self._tally(e, e.observed(targets), weights) for e in events]
        names = [event.name for event in events]
        values = None
        if self.label_binned:
            values = [_label_binned(e, t, self.norm, weights) for e, t in zip(events, tallies, strict=True)]
        notes = self.bins.notes([t.bins for t in tallies])
        noises, step = None, 1 / len(predictions)
        if weights is not None:
            noises = [self._noise(e, e.observed(targets), t, weights) for e, t in zip(events, tallies, strict=True)]
            step = float(weights.max() / weights.sum())
        found = binned_estimate(settled, len(predictions), lens, names, tallies, values, notes)
        return with_limits(found, settled, tallies, step, noises)

    def _noise(self, event: Event, observed: np.ndarray, t: Tally, weights: np.ndarray) -> np.ndarray:
        p = event.probability
        return noise_of_rows(p.astype(np.float64), observed, t.bins.of_rows(p, slice(None)), weights, len(t.bins))

    def _tally(self, event: Event, observed: np.ndarray, weights: np.ndarray | None) -> Tally:
        p = event.probability
        return tally(p, observed, self.bins.bins(p, weights, observed), weights)

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """Bins, and sums of the predictions in them, are found once; each resample only counts what happened."""
        if self.label_binned:
            return super().given(predictions, weights)
        settled, events, _ = self.look(predictions)
        if self.bins.is_adaptive:
            return self.bins.statistic(events, weights, self.norm)
        bins = [self.bins.bins(e.probability, weights) for e in events]
        if isinstance(settled.lens, ClassWise):
            return BinnedStatistic(self.norm, (ClassCounts.of(events, bins, weights),))
        return BinnedStatistic(
            self.norm, tuple(EventCounts.of(e, b, weights) for e, b in zip(events, bins, strict=True))
        )

    def with_signs(
        self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None, clusters: Clusters
    ) -> Statistic:
        """Gaps of bins are sums of residuals, which get the signs of their clusters."""
        if self.bins.is_adaptive:
            raise no_signs(self, ADAPTIVE)
        if self.label_binned:
            raise no_signs(self, "label_binned=True compares each row with its bin; label_binned=False does")
        _, events, _ = self.look(predictions)
        bins = [self.bins.bins(e.probability, weights) for e in events]
        return BinnedStatistic(self.norm, signed_counts(events, bins, targets, weights, clusters))


def _label_binned(event: Event, t: Tally, norm: float, weights: np.ndarray | None) -> np.ndarray:
    """Each row's probability against the frequency of its bin."""
    frequency = t.observed / np.where(t.weight > 0, t.weight, 1)
    gap = event.probability - frequency[t.bins.of_rows(event.probability, slice(None))]
    return lp_norm(gap, np.ones(len(gap)) if weights is None else weights, norm)


def binned_estimate(
    ece: ECE,
    n: int,
    lens: str | None,
    names: list[str],
    tallies: list[Tally],
    errors: list[np.ndarray] | None = None,
    notes: tuple[str, ...] = (),
) -> Estimate:
    """The estimate from what fell into the bins of each event; errors of events where they are others."""
    values = [lp_norm(t.gap, t.weight, ece.norm) for t in tallies] if errors is None else errors
    value = values[0] if len(values) == 1 else lp_norm(np.array(values), np.ones(len(values)), ece.norm)
    return Estimate("ECE", float(value), n, ece, lens, table=bin_table(names, tallies), notes=notes)


def with_limits(
    found: Estimate, ece: ECE, tallies: list[Tally], step: float, noises: list[np.ndarray] | None = None
) -> Estimate:
    """The estimate with the limits of its norm, or with the reason why it has none; noise from tallies where not given."""
    if ece.bins.is_adaptive:
        return replace(found, withheld=ADAPTIVE)
    if ece.label_binned:
        return replace(found, withheld="none is known with label_binned=True; label_binned=False has one")
    if ece.norm not in (1, 2, np.inf):
        return replace(found, withheld=f"none is known for norm={ece.norm:g}; norm=1 and norm=2 have one")
    if np.isinf(ece.norm):
        if noises is not None:
            return replace(found, withheld="the largest gap has one without sample_weight")
        return replace(found, limits=ErrorLimits(float(found), (largest_gap(tallies),), most=ece.most, method=EXACT))
    noises = [noise_of(t) for t in tallies] if noises is None else noises
    slacks = tuple(binned_slack(t, v, step, ece.norm) for t, v in zip(tallies, noises, strict=True))
    return replace(found, limits=ErrorLimits(float(found), slacks, ece.norm, ece.most))


def bin_table(names: list[str], tallies: list[Tally]) -> Table:
    """One row per bin that is not empty, of each event in turn."""
    full = [t.weight > 0 for t in tallies]
    pairs = list(zip(tallies, full, strict=True))
    columns = {
        "lower": [t.bins.edges[:-1][f] for t, f in pairs],
        "upper": [t.bins.edges[1:][f] for t, f in pairs],
        "weight": [t.weight[f] for t, f in pairs],
        "predicted": [t.predicted[f] / t.weight[f] for t, f in pairs],
        "observed": [t.observed[f] / t.weight[f] for t, f in pairs],
        "gap": [t.gap[f] for t, f in pairs],
    }
    name = {} if len(names) == 1 else {"event": np.repeat(names, [f.sum() for f in full])}
    return Table({**name, **{key: np.concatenate(parts) for key, parts in columns.items()}})


CACHED = 1 << 16
"""Classes that are looked up at a time, so that they stay in the cache."""

TOGETHER = 1 << 16
"""Gaps of resamples, classes and bins whose norms are taken at a time, for the same reason."""


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

    A product with the indicator matrix of bins takes two to three times as long, and much more memory.
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
        """Prepare the resamples of k events, one per class."""
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
        gap, weight = np.moveaxis(gap, 1, 0), counts.weight[:, None, :]
        some = cuts(len(gap), max(1, TOGETHER // gap[0].size))
        errors = np.concatenate([lp_norm(gap[cut], weight[cut], self.norm) for cut in some])
        return np.ascontiguousarray(errors.T)  # sums over events depend on where numbers lie
