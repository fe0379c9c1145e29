"""Histogram binning, and scaling-binning: in each bin of scores, how often class 1 happened."""

from dataclasses import dataclass
from numbers import Real
from typing import Literal

import numpy as np

from calibrant._validate import InputError, check_count, check_one_of
from calibrant.distributions.base import Distribution
from calibrant.recalibration.base import Found, Recalibrator
from calibrant.recalibration.maps import ClassMap
from calibrant.recalibration.nonparametric.isotonic import (
    BinaryMap,
    Pools,
    as_fractions,
    as_knots,
    check_two_classes,
    pools_of,
)
from calibrant.recalibration.scaling.log_odds import Platt


@dataclass(frozen=True)
class HistogramBinning(Recalibrator):
    """The frequency of class 1 in the bin of the score, for two classes; ``OneVsRest(HistogramBinning())`` for more.

    ``(events + c) / (rows + 2c)`` in each of ``n_bins`` bins with as many rows each (``by="mass"``; equal scores share a
    bin, edges lie halfway between scores) or as wide each (``by="width"``; right-closed; bins without rows take what lies on
    the line between their neighbours). O(n log n). Zadrozny & Elkan (2001).

    ``c`` is ``pseudocount``. Without it one row that disagrees with a bin whose rows agreed costs an infinite log loss.
    The default of 1/2 is the smallest change that is never far from the best frequency of each bin in hindsight, by log
    loss: ``log(rows) / 2`` plus a constant in all (Krichevsky & Trofimov 1981). 1 is Laplace's rule, 0 the bare frequency.

    >>> fitted = HistogramBinning(2, pseudocount=0).fit([0, 1, 0, 1, 1, 1], [0.1, 0.3, 0.4, 0.6, 0.8, 0.9], folds=0)
    >>> fitted([0.0, 0.49, 0.51, 1.0])
    array([0.33333333, 0.33333333, 1.        , 1.        ])
    """

    n_bins: int = 15
    by: Literal["mass", "width"] = "mass"
    pseudocount: float = 0.5

    def __post_init__(self) -> None:
        check_count(self.n_bins, "n_bins")
        check_one_of(self.by, ("mass", "width"), "by")
        if not isinstance(self.pseudocount, Real) or not 0 <= self.pseudocount < np.inf:
            raise InputError(f"pseudocount must be a number of at least 0; got {self.pseudocount!r}")

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """Counts in bins."""
        pools = pools_of(targets, predictions, weights, "HistogramBinning")
        edges = mass_edges(pools, self.n_bins) if self.by == "mass" else np.arange(1, self.n_bins) / self.n_bins
        rows, events = (in_bins(pools, edges, x) for x in (np.ones_like(pools.rows), pools.frequency))
        seen = np.flatnonzero(rows)
        value = (events[seen] + self.pseudocount) / (rows[seen] + 2 * self.pseudocount)
        notes = () if len(seen) == self.n_bins else (f"{len(seen)} of {self.n_bins} bins have rows",)
        values = np.interp(np.arange(len(rows)), seen, value)
        return Found(BinnedMap(edges, np.clip(values, 0, 1)), notes=notes)


def mass_edges(pools: Pools, n_bins: int) -> np.ndarray:
    """Inner edges of bins of the same number of rows, halfway between scores; rows are dealt as ``numpy.array_split`` does."""
    reached = np.cumsum(pools.rows)
    total, j = reached[-1], np.arange(1, n_bins)
    if abs(total - np.rint(total)) <= 1e-9 * total:
        size, larger = divmod(round(total), n_bins)
        cuts = j * size + np.minimum(j, larger)
    else:
        cuts = j * (total / n_bins)
    last = np.unique(np.searchsorted(reached, cuts * (1 - 1e-12)))
    last = last[last < len(reached) - 1]
    below, above = pools.scores[last], pools.scores[last + 1]
    middle = below + (above - below) / 2
    return np.where(middle < above, middle, below)


def in_bins(pools: Pools, edges: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Sums of x over the rows of each bin."""
    return np.bincount(np.searchsorted(edges, pools.scores), weights=pools.rows * x, minlength=len(edges) + 1)


@dataclass(frozen=True, eq=False)
class BinnedMap(BinaryMap):
    """One value per bin; bins are right-closed, and lie between 0, the edges and 1."""

    edges: np.ndarray
    values: np.ndarray
    n_classes: int = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", as_knots(self.edges, "edges"))
        object.__setattr__(self, "values", as_fractions(self.values, "values"))
        check_two_classes(self.n_classes)
        if len(self.values) != len(self.edges) + 1:
            raise InputError(f"{len(self.edges)} edges make {len(self.edges) + 1} bins; got {len(self.values)} values")

    def probability(self, scores: np.ndarray) -> np.ndarray:
        """The value of the bin."""
        return self.values[np.searchsorted(self.edges, scores)]


@dataclass(frozen=True)
class ScalingBinning(Recalibrator):
    """Platt scaling, then its mean over each of ``n_bins`` bins with as many rows each; two classes.

    Outcomes are used by the two numbers of Platt scaling only, hence the variance of a parametric fit; the output has
    few values, hence an error that can be measured. Platt scaling is monotone, so that bins of its outputs are bins of the
    scores, and the map is a table of both. All rows serve both steps, where the paper splits them.
    Kumar, Liang & Ma (2019).

    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2_000)
    >>> y = rng.random(2_000) < 1 / (1 + (1 / p - 1) ** 0.5)
    >>> fitted = ScalingBinning(10).fit(y, p)
    >>> len(set(fitted(p))), bool(fitted.scores["change"][0] < 0)
    (10, True)
    """

    n_bins: int = 15

    def __post_init__(self) -> None:
        check_count(self.n_bins, "n_bins")

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """Means of the scaled scores over equal-mass bins."""
        pools = pools_of(targets, predictions, weights, "ScalingBinning")
        scaling = Platt().find(targets, predictions, weights)
        assert isinstance(scaling.map, ClassMap)
        scaled = scaling.map.probabilities(np.stack([1 - pools.scores, pools.scores], axis=1))[:, 1]
        edges = mass_edges(pools, self.n_bins)
        values = in_bins(pools, edges, scaled) / in_bins(pools, edges, np.ones_like(scaled))
        return Found(BinnedMap(edges, np.clip(values, 0, 1)), scaling.is_converged, scaling.notes)
