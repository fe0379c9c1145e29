"""Bands around a reliability curve: what chance alone would show, and where the truth may lie."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Self

import numpy as np

from calibrant._array import to_numpy
from calibrant.distributions.base import Distribution
from calibrant.estimators.binning import Binning, Bins
from calibrant.estimators.counts import EventCounts
from calibrant.estimators.curves import Curve, FittedCurve, Isotonic, Rows, SmoothCurve
from calibrant.estimators.integrated import quantiles
from calibrant.estimators.smoothing_grid import FINE, Places, cells_of
from calibrant.inference.draws import draw
from calibrant.inference.proportions import Band, clopper_pearson
from calibrant.lenses import Event
from calibrant.typing import Array, Engine, Seed

POINTS = 200
"""Places at most where a curve is shown."""


@dataclass(frozen=True)
class Resampling:
    """How bands are drawn: the level, how many draws, their seed and where they run."""

    level: float
    n_resamples: int
    rng: Seed = None
    engine: Engine | None = None

    @property
    def tail(self) -> float:
        """Outside on either side."""
        return (1 - self.level) / 2


class Line(ABC):
    """The observed frequencies of one event, at fixed places along its scores."""

    event: Event
    weights: np.ndarray | None

    @abstractmethod
    def redrawn(self, targets: np.ndarray) -> np.ndarray:
        """The frequencies for each set of targets, ``(m, places)``."""

    @abstractmethod
    def confidence(self, targets: Array, how: Resampling) -> Band:
        """Where the true frequencies may lie."""


@dataclass(frozen=True, eq=False)
class BinnedLine(Line):
    """Frequencies in the bins that have rows."""

    event: Event
    weights: np.ndarray | None
    bins: Bins
    counts: EventCounts

    @classmethod
    def of(cls, event: Event, binning: Binning, weights: np.ndarray | None) -> Self:
        """Bins of the event's scores, found once."""
        bins = binning.bins(event.probability, weights)
        return cls(event, weights, bins, EventCounts.of(event, bins, weights))

    def redrawn(self, targets: np.ndarray) -> np.ndarray:
        """Counts over weights."""
        full = self.counts.weight > 0
        return self.counts.happened(targets)[:, full] / self.counts.weight[full]

    def confidence(self, targets: Array, how: Resampling) -> Band:
        """Clopper and Pearson's interval of the mean true frequency in each bin."""
        weight = self.counts.weight[0]
        w = np.ones(len(self.event.probability)) if self.weights is None else self.weights
        squares = np.bincount(self.bins.of_rows(self.event.probability, slice(None)), w**2, len(self.bins))
        rows = weight[weight > 0] ** 2 / squares[weight > 0]
        return clopper_pearson(self.redrawn(to_numpy(targets)[None])[0], rows, how.tail)


@dataclass(frozen=True, eq=False)
class CurveLine(Line):
    """Frequencies on a fitted curve, at most 200 places."""

    event: Event
    weights: np.ndarray | None
    rule: Curve
    places: np.ndarray

    @classmethod
    def of(cls, event: Event, rule: Curve, weights: np.ndarray | None) -> Self:
        """Places are the distinct scores, or quantiles of them where there are too many."""
        scores = event.probability.astype(np.float64)
        places = np.unique(scores)
        if len(places) > POINTS:
            places = np.unique(quantiles(scores, weights, np.linspace(0, 1, POINTS)))
        return cls(event, weights, rule, places)

    def redrawn(self, targets: np.ndarray) -> np.ndarray:
        """A curve is fitted to each set of targets, with all that this chooses."""
        return np.stack([self._fit(self.event.happened(y))(self.places) for y in targets])

    @cached_property
    def _fit(self) -> Callable[[np.ndarray], FittedCurve]:
        return self.rule.given(self.event.probability, self.weights)

    def __getstate__(self) -> dict[str, object]:
        return {key: value for key, value in self.__dict__.items() if key != "_fit"}

    def confidence(self, targets: Array, how: Resampling) -> Band:
        """Intervals of the true frequency at each place, widened to hold the curve."""
        rows = Rows.of(self.event.probability, self.event.happened(targets), self.weights)
        curve = self.rule.fit(*rows)
        observed = curve(self.places)
        if isinstance(curve, SmoothCurve):
            low, high = clopper_pearson(observed, local_rows(rows, curve.bandwidth, self.places), how.tail)
        elif isinstance(self.rule, Isotonic):
            low, high = monotone_band(rows, self.places, how.tail)
        else:
            low, high = self._bootstrap(rows, how)
        return np.minimum(low, observed), np.maximum(high, observed)

    def _bootstrap(self, rows: Rows, how: Resampling) -> Band:
        task = partial(_resampled, self.rule, rows, self.places)
        drawn = draw(task, how.n_resamples, width=len(rows.scores), rng=how.rng, engine=how.engine)
        return outward(drawn, how.tail)


def consistency(lines: tuple[Line, ...], predictions: Distribution, width: int, how: Resampling) -> Band:
    """The range of the frequencies where targets, so many at a time, are drawn from the predictions; line after line."""
    task = partial(_redrawn, lines, predictions)
    return outward(draw(task, how.n_resamples, width=width, rng=how.rng, engine=how.engine), how.tail)


def outward(drawn: np.ndarray, tail: float) -> Band:
    """Whole draws, rounded outwards: frequencies are discrete, and the band may only be too wide."""
    return np.quantile(drawn, tail, axis=0, method="lower"), np.quantile(drawn, 1 - tail, axis=0, method="higher")


def monotone_band(rows: Rows, places: np.ndarray, tail: float) -> Band:
    """Intervals of a non-decreasing true frequency: at least what rows just below show, at most what rows above do.

    Either end is Clopper and Pearson's of the ``n^(2/3)`` rows next to the place, ties included, chosen by the scores
    alone. The mean truth below a place is at most the truth there, so the level holds for every n.
    """
    order = np.argsort(rows.scores, kind="stable")
    scores = rows.scores[order]
    sums = [np.append(0, np.cumsum(x[order])) for x in (rows.weights, rows.weights**2, rows.weights * rows.happened)]
    size = int(np.ceil(len(scores) ** (2 / 3)))

    def interval(start: np.ndarray, stop: np.ndarray) -> Band:
        weight, squares, event = (total[stop] - total[start] for total in sums)
        some = stop > start  # beyond all rows nothing is known
        return clopper_pearson(event / np.where(some, weight, 1), weight**2 / np.where(some, squares, 1), tail)

    below = np.searchsorted(scores, places, side="right")
    first = np.searchsorted(scores, scores[np.maximum(below - size, 0)], side="left")
    above = np.searchsorted(scores, places, side="left")
    last = np.searchsorted(scores, scores[np.minimum(above + size, len(scores)) - 1], side="right")
    return interval(first, below)[0], interval(above, last)[1]


def local_rows(rows: Rows, bandwidth: float, places: np.ndarray) -> np.ndarray:
    """How many rows of equal weight a kernel mean rests on, ``(sum w k)^2 / sum w^2 k^2``, at the node next to each place."""
    cells = cells_of(FINE / bandwidth)
    first, second = (Places.of(rows.scores, w, cells) for w in (rows.weights, rows.weights**2))
    grid, squares = (each.grid(rows.happened) for each in (first, second))
    kernel = grid.kernel(np.array([bandwidth]))[0]
    nodes = np.arange(len(kernel))
    counts = []
    for node in np.rint(places * nodes[-1]).astype(np.intp):
        around = node + nodes
        near = kernel[np.abs(node - nodes)] + kernel[np.minimum(around, 2 * nodes[-1] - around)]
        counts.append((near @ grid.weight) ** 2 / (near**2 @ squares.weight))
    return np.array(counts)


def _redrawn(lines: tuple[Line, ...], predictions: Distribution, seed: np.random.SeedSequence, size: int) -> np.ndarray:
    targets = predictions.sample(np.random.default_rng(seed), size)
    return np.concatenate([line.redrawn(targets) for line in lines], axis=1)


def _resampled(rule: Curve, rows: Rows, places: np.ndarray, seed: np.random.SeedSequence, size: int) -> np.ndarray:
    """The curves of rows drawn with replacement."""
    rng, n = np.random.default_rng(seed), len(rows.scores)
    drawn = (np.bincount(rng.integers(0, n, n), minlength=n) for _ in range(size))
    return np.stack([rule.fit(rows.scores, rows.happened, rows.weights * times)(places) for times in drawn])
