"""The reliability curve: what was predicted, what was observed, and the bands around it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, Self

import numpy as np

from calibrant._array import to_numpy
from calibrant._clusters import Clusters
from calibrant._spellings import Settings
from calibrant._validate import InputError, check_count, check_fraction
from calibrant.distributions.base import Distribution
from calibrant.distributions.empirical.quantiles import check_whole
from calibrant.distributions.reading.conversion import Classes, as_clustered_problem
from calibrant.estimators.binned.binning import Binning, Bins, EqualMass
from calibrant.estimators.binned.ece import ECE, EventCounts
from calibrant.estimators.cluster_skewness import ClusterSkewness, rows_of_clusters
from calibrant.estimators.smooth.fitted_curves import (
    FINE,
    Curve,
    CurveRows,
    FittedCurve,
    GridPositions,
    IsotonicCurve,
    SmoothCurve,
    cells_of,
    quantiles,
)
from calibrant.inference.exact_tests.cluster_signs import check_clusters
from calibrant.inference.monte_carlo import draw
from calibrant.inference.proportions import Band, clopper_pearson, consistent_shares
from calibrant.lenses.class_lenses import Event, Lens, PositiveClass, default_lens
from calibrant.results import Table
from calibrant.typing import Array, ArrayLike, Engine, Seed

POINTS = 200
"""Places at most where a curve is shown."""

ROWS_AT_ENDS = 10
"""Rows beyond either end of a smooth curve, of which a twentieth at most."""


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


class FrequencyLine(ABC):
    """The observed frequencies of one event, at fixed places along its scores."""

    event: Event
    weights: np.ndarray | None

    @abstractmethod
    def resampled(self, targets: np.ndarray) -> np.ndarray:
        """The frequencies for each set of targets, ``(m, places)``."""

    @abstractmethod
    def confidence(self, targets: Array, how: Resampling) -> Band:
        """Where the true frequencies may lie."""


@dataclass(frozen=True, eq=False)
class BinnedLine(FrequencyLine):
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

    def resampled(self, targets: np.ndarray) -> np.ndarray:
        """Counts over weights."""
        full = self.counts.weight > 0
        return self.counts.observed(targets)[:, full] / self.counts.weight[full]

    def confidence(self, targets: Array, how: Resampling) -> Band:
        """Clopper and Pearson's interval of the mean true frequency in each bin."""
        weight = self.counts.weight[0]
        w = np.ones(len(self.event.probability)) if self.weights is None else self.weights
        squares = np.bincount(self.bins.of_rows(self.event.probability, slice(None)), w**2, len(self.bins))
        rows = weight[weight > 0] ** 2 / squares[weight > 0]
        return clopper_pearson(self.resampled(to_numpy(targets)[None])[0], rows, how.tail)

    def rows_of_clusters(self, targets: np.ndarray, clusters: Clusters, tail: float) -> np.ndarray:
        """How many independent rows those of each filled bin are worth."""
        cell = self.bins.of_rows(self.event.probability, slice(None))
        alike = ClusterSkewness.of_events((self.event,), targets, self.weights, clusters).correlation
        rows = rows_of_clusters(self.weights, cell, len(self.bins), alike, clusters, tail)
        return rows[self.counts.weight[0] > 0]


@dataclass(frozen=True, eq=False)
class CurveLine(FrequencyLine):
    """Frequencies on a fitted curve, at most 200 places."""

    event: Event
    weights: np.ndarray | None
    rule: Curve
    places: np.ndarray

    @classmethod
    def of(cls, event: Event, rule: Curve, weights: np.ndarray | None) -> Self:
        """Places are the distinct scores, or quantiles of them where there are too many.

        A smooth curve ends where few rows are left: beyond, it follows single ones to 0 or 1.
        """
        scores = event.probability.astype(np.float64)
        left = 0 if isinstance(rule, IsotonicCurve) else min(ROWS_AT_ENDS, len(scores) // 20)
        low, high = np.partition(scores, [left, len(scores) - 1 - left])[[left, len(scores) - 1 - left]]
        places = np.unique(scores[(scores >= low) & (scores <= high)])
        if len(places) > POINTS:
            places = np.unique(np.clip(quantiles(scores, weights, np.linspace(0, 1, POINTS)), low, high))
        return cls(event, weights, rule, places)

    def resampled(self, targets: np.ndarray) -> np.ndarray:
        """A curve is fitted to each set of targets, with all that this chooses."""
        return np.stack([self._fit(self.event.observed(y))(self.places) for y in targets])

    @cached_property
    def _fit(self) -> Callable[[np.ndarray], FittedCurve]:
        return self.rule.given(self.event.probability, self.weights)

    def __getstate__(self) -> dict[str, object]:
        return {key: value for key, value in self.__dict__.items() if key != "_fit"}

    def confidence(self, targets: Array, how: Resampling) -> Band:
        """Intervals of the true frequency at each place, widened to hold the curve."""
        rows = CurveRows.of(self.event.probability, self.event.observed(targets), self.weights)
        curve = self.rule.fit(*rows)
        observed = curve(self.places)
        if isinstance(curve, SmoothCurve):
            low, high = clopper_pearson(observed, local_rows(rows, curve.bandwidth, self.places), how.tail)
        elif isinstance(self.rule, IsotonicCurve):
            low, high = monotone_band(rows, self.places, how.tail)
        else:
            low, high = self._bootstrap(rows, how)
        return np.minimum(low, observed), np.maximum(high, observed)

    def _bootstrap(self, rows: CurveRows, how: Resampling) -> Band:
        task = partial(_resampled, self.rule, rows, self.places)
        drawn = draw(task, how.n_resamples, width=len(rows.scores), rng=how.rng, engine=how.engine)
        return outward(drawn, how.tail)


def consistency(lines: tuple[FrequencyLine, ...], predictions: Distribution, width: int, how: Resampling) -> Band:
    """The range of the frequencies where targets, so many at a time, are drawn from the predictions; line after line."""
    task = partial(_from_predictions, lines, predictions)
    return outward(draw(task, how.n_resamples, width=width, rng=how.rng, engine=how.engine), how.tail)


def outward(drawn: np.ndarray, tail: float) -> Band:
    """Whole draws, rounded outwards: frequencies are discrete, and the band may only be too wide."""
    return np.quantile(drawn, tail, axis=0, method="lower"), np.quantile(drawn, 1 - tail, axis=0, method="higher")


def monotone_band(rows: CurveRows, places: np.ndarray, tail: float) -> Band:
    """Intervals of a non-decreasing true frequency: at least what rows just below show, at most what rows above do.

    Either end is Clopper and Pearson's of the ``n^(2/3)`` rows next to the place, ties included, chosen by the scores
    alone. The mean truth below a place is at most the truth there, so the level holds for every n.
    """
    order = np.argsort(rows.scores, kind="stable")
    scores = rows.scores[order]
    sums = [np.append(0, np.cumsum(x[order])) for x in (rows.weights, rows.weights**2, rows.weights * rows.observed)]
    size = int(np.ceil(len(scores) ** (2 / 3)))

    def interval(start: np.ndarray, stop: np.ndarray) -> Band:
        weight, squares, event = (total[stop] - total[start] for total in sums)
        some = squares > 0  # beyond all rows nothing is known, nor of weights that are lost in the running totals
        return clopper_pearson(
            event / np.where(some, weight, np.inf), weight**2 / np.where(some, squares, np.inf), tail
        )

    below = np.searchsorted(scores, places, side="right")
    first = np.searchsorted(scores, scores[np.maximum(below - size, 0)], side="left")
    above = np.searchsorted(scores, places, side="left")
    last = np.searchsorted(scores, scores[np.minimum(above + size, len(scores)) - 1], side="right")
    return interval(first, below)[0], interval(above, last)[1]


def local_rows(rows: CurveRows, bandwidth: float, places: np.ndarray) -> np.ndarray:
    """How many rows of equal weight a kernel mean rests on, ``(sum w k)^2 / sum w^2 k^2``, at the node next to each place."""
    cells = cells_of(FINE / bandwidth)
    grid, squares = (GridPositions.of(rows.scores, w, cells) for w in (rows.weights, rows.weights**2))
    kernel, counts = grid.kernels(np.array([bandwidth])), []
    for node in np.rint(places * cells).astype(np.intp) - grid.first:
        near = kernel.around(node)[0]
        counts.append((near @ grid.weight) ** 2 / (near**2 @ squares.weight))
    return np.array(counts)


def _from_predictions(
    lines: tuple[FrequencyLine, ...], predictions: Distribution, seed: np.random.SeedSequence, size: int
) -> np.ndarray:
    targets = predictions.sample(np.random.default_rng(seed), size)
    return np.concatenate([line.resampled(targets) for line in lines], axis=1)


def _resampled(rule: Curve, rows: CurveRows, places: np.ndarray, seed: np.random.SeedSequence, size: int) -> np.ndarray:
    """The curves of rows drawn with replacement."""
    rng, n = np.random.default_rng(seed), len(rows.scores)
    drawn = (np.bincount(rng.integers(0, n, n), minlength=n) for _ in range(size))
    return np.stack([rule.fit(rows.scores, rows.observed, rows.weights * times)(places) for times in drawn])


def resampled_sums(
    mean: np.ndarray, noise: np.ndarray, skew: np.ndarray, n_resamples: int, rng: np.random.Generator
) -> np.ndarray:
    """How many of independent events happen, ``(n_resamples, ...)``, from the mean, variance and third cumulant alone.

    For chances p these are ``sum p``, ``sum p (1 - p)`` and ``sum p (1 - p) (1 - 2 p)``. Such a sum is close to a binomial one of
    ``m`` events of chance ``q``, moved by s: ``q = (1 - skew / noise) / 2``, ``m = noise / (q (1 - q))``, ``s = mean - m q``. This
    is exact where all chances are equal. As sums are whole numbers, s and m are rounded; the mean is kept. Röllin (2007).

    >>> chances = np.array([[0.1] * 1000, [1.0] * 1000])
    >>> sums = chances.sum(1), (chances * (1 - chances)).sum(1), (chances * (1 - chances) * (1 - 2 * chances)).sum(1)
    >>> drawn = resampled_sums(*sums, 4000, np.random.default_rng(0))
    >>> drawn.mean(axis=0).round(), drawn.var(axis=0).round()
    (array([ 100., 1000.]), array([89.,  0.]))
    """
    chance = (1 - _ratio(skew, noise).clip(-1, 1)) / 2
    whole = _ratio(noise, chance * (1 - chance))
    moved = np.round(mean - whole * chance)
    moved = np.where(mean - moved <= noise, np.ceil(mean - noise) - 1, moved)  # a binomial varies less than its mean
    rest = mean - moved
    events = np.maximum(np.round(_ratio(rest**2, rest - noise)), np.ceil(rest)).clip(1)
    is_sure = noise <= 1e-12 * (1 + mean)
    drawn = rng.binomial(events.astype(np.int64), np.clip(rest / events, 0, 1), (n_resamples, *mean.shape))
    return np.where(is_sure, mean, drawn + moved)


def _ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A share, nothing of nothing."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)


@dataclass(frozen=True)
class ReliabilityCurve(Settings):
    """Observed frequency against predicted probability, with a band at every point by itself.

    A table with columns ``predicted``, ``observed``, ``low`` and ``high``: in bins (with their edges and weight), or on a
    ``curve`` fitted to the rows, at most 200 points along the scores; ``IsotonicCurve()`` is the CORP diagram.

    ``band="consistency"`` lies around what was predicted: targets drawn from the predictions, all else done again, put the
    observed frequency between ``low`` and ``high`` with at least the given probability. Broecker & Smith (2007).
    ``band="confidence"`` lies around what was observed, and holds with that probability

    * in bins the mean true frequency there (Clopper-Pearson);
    * on ``KernelSmooth(h)`` the mean of the truth under the same kernel (Clopper-Pearson with as many rows as the kernel
      sees); some 92 to 98 % instead of 95 % where the bandwidth was chosen by the same rows;
    * on ``IsotonicCurve()`` the truth itself if it does not decrease (Clopper-Pearson of the rows next to each point, for every n);
    * on curves of your own what a bootstrap of the rows holds, which is too little wherever all outcomes nearby agree: for
      the two above it held 58 to 94 % at 200 rows.

    ``clusters`` has one label per row: rows with the same label may depend on each other in any way. In bins the bands are then
    Clopper-Pearson's for as many independent rows as those of the clusters are worth; curves are refused, as are clusters that
    :class:`~calibrant.ExactTest` refuses. Weights are importance: each row stays one independent outcome. Dimitriadis, Gneiting &
    Jordan (2021).

    >>> curve = ReliabilityCurve(EqualMass(2))([0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.6, 0.7, 0.8])
    >>> curve["observed"].round(2), curve["high"].round(2)
    (array([0.33, 0.67]), array([0.67, 1.  ]))
    """

    bins: Binning = EqualMass(15)  # noqa: RUF009  # frozen
    lens: Lens | None = None
    level: float = 0.95
    n_resamples: int = 999
    curve: Curve | None = None
    band: Literal["consistency", "confidence"] = "consistency"

    def __post_init__(self) -> None:
        if not isinstance(self.bins, Binning) or self.bins.is_adaptive:
            raise InputError(
                "bins must be a binning that does not depend on what happened, such as EqualMass(15), or give a curve "
                f"such as IsotonicCurve(), which chooses its own; got {self.bins!r}"
            )
        check_fraction(self.level, "level")
        check_count(self.n_resamples, "n_resamples")
        if self.curve is not None and not isinstance(self.curve, Curve):
            raise InputError(f"curve must be None for bins, or a curve such as IsotonicCurve(); got {self.curve!r}")
        if self.band not in ("consistency", "confidence"):
            raise InputError(f"band must be 'consistency' or 'confidence'; got {self.band!r}")

    def __call__(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        clusters: ArrayLike | None = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> Table:
        """The curve of the lens's events, one after the other."""
        targets, predictions, weights, groups = as_clustered_problem(
            y_true, y_pred, sample_weight, clusters, Classes(labels, pos_label)
        )
        check_whole(predictions, self)
        if groups is not None and not groups.are_single_rows:
            return self._of_clusters(targets, predictions, weights, groups)
        lens = self.lens or default_lens(predictions)
        if len(lens.events(predictions)) == 1:  # resamples of one event need no classes
            lens, (targets, predictions) = PositiveClass(), lens(targets, predictions)
        how = Resampling(self.level, self.n_resamples, rng, engine)
        if self.curve is None:
            table, lines = self._binned(lens, targets, predictions, weights)
        else:
            table, lines = self._fitted(lens, targets, predictions, weights)
        if self.band == "consistency":
            low, high = consistency(lines, predictions, int(np.prod(targets.shape)), how)
        else:
            bands = [line.confidence(targets, how) for line in lines]
            low, high = (np.concatenate(ends) for ends in zip(*bands, strict=True))
        return Table({**table, "low": low, "high": high})

    def _of_clusters(
        self, targets: Array, predictions: Distribution, weights: np.ndarray | None, clusters: Clusters
    ) -> Table:
        """Bins with bands for as many independent rows as those of the clusters are worth."""
        if self.curve is not None:
            raise InputError(f"clusters go with bins, whose gaps are sums of residuals: leave out curve={self.curve!r}")
        check_clusters(self, (ECE(self.bins, norm=2),), targets, predictions, weights, clusters)
        lens, tail = self.lens or default_lens(predictions), (1 - self.level) / 2
        table, lines = self._binned(lens, targets, predictions, weights)
        binned = [line for line in lines if isinstance(line, BinnedLine)]
        rows = np.concatenate([line.rows_of_clusters(to_numpy(targets), clusters, tail) for line in binned])
        low, high = (
            consistent_shares(table["predicted"], rows, tail)
            if self.band == "consistency"
            else clopper_pearson(table["observed"], rows, tail)
        )
        return Table({**table, "low": low, "high": high})

    def _binned(
        self, lens: Lens, targets: Array, predictions: Distribution, weights: np.ndarray | None
    ) -> tuple[Table, tuple[FrequencyLine, ...]]:
        table = ECE(self.bins, lens=lens).estimate(targets, predictions, weights).table
        assert table is not None
        return table, tuple(BinnedLine.of(event, self.bins, weights) for event in lens.events(predictions))

    def _fitted(
        self, lens: Lens, targets: Array, predictions: Distribution, weights: np.ndarray | None
    ) -> tuple[Table, tuple[FrequencyLine, ...]]:
        assert self.curve is not None
        events = lens.events(predictions)
        lines = tuple(CurveLine.of(event, self.curve, weights) for event in events)
        observed = [line.resampled(to_numpy(targets)[None])[0] for line in lines]
        columns = {"predicted": np.concatenate([line.places for line in lines]), "observed": np.concatenate(observed)}
        if len(lines) > 1:
            columns = {"event": np.repeat([e.name for e in events], [len(line.places) for line in lines]), **columns}
        return Table(columns), lines


def beyond_chance(curve: Table) -> np.ndarray:
    """Which points of a curve lie outside their consistency band, rounding aside."""
    return (curve["observed"] < curve["low"] - 1e-9) | (curve["observed"] > curve["high"] + 1e-9)
