"""How often an event happens at each score, as a curve fitted to the rows."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from numbers import Real
from typing import NamedTuple, Self

import numpy as np

from calibrant._validate import InputError

LEAST, MOST = 1e-4, 10.0
"""Bandwidths in use: below, the grid would grow without end; above, every curve is a constant."""

FINE, COARSE = 32, 8
"""Nodes a bandwidth, for the curve and for the choice of its bandwidth: relative errors of order 1/(8 FINE^2)."""

TRUSTED = 1e-9
"""Sums of kernels below this share of the largest are rounding: there the curve is drawn from its neighbours."""

ALONE = 0.01
"""A row whose neighbours together weigh less than this share of it has none."""

CANDIDATES = np.geomspace(2, 0.02, 12)
"""Bandwidths tried, in standard deviations of the scores, the smoothest first."""


class FittedCurve(ABC):
    """A curve with the rule that made it, its numbers resolved; call it at any scores in [0, 1]."""

    rule: "Curve"

    @abstractmethod
    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """The fitted frequency at each score."""


class Curve(ABC):
    """A rule that fits a curve; subclasses are frozen dataclasses that write :meth:`fit`."""

    @abstractmethod
    def fit(self, scores: np.ndarray, happened: np.ndarray, weights: np.ndarray | None = None) -> FittedCurve:
        """The curve of one event: scores in [0, 1], whether it happened, and how much each row counts, all ``(n,)``."""


class Rows(NamedTuple):
    """Scores, zeros and ones, and weights in double precision, without the rows that do not count."""

    scores: np.ndarray
    happened: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, scores: np.ndarray, happened: np.ndarray, weights: np.ndarray | None) -> Self:
        """All rows, or those with weight."""
        f, y = np.asarray(scores, dtype=np.float64), np.asarray(happened, dtype=np.float64)
        if weights is None:
            return cls(f, y, np.ones(len(f)))
        w = np.asarray(weights, dtype=np.float64)
        return cls(f[w > 0], y[w > 0], w[w > 0])


@dataclass(frozen=True, eq=False)
class StepCurve(FittedCurve):
    """A step function: at t the value of the last knot that is at most t, below all knots that of the first.

    It is continuous from the right, and jumps at scores that occurred.
    """

    rule: Curve
    knots: np.ndarray
    values: np.ndarray

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """The value of the step each score stands on."""
        return self.values[np.maximum(np.searchsorted(self.knots, scores, side="right") - 1, 0)]


@dataclass(frozen=True)
class Isotonic(Curve):
    """The non-decreasing curve closest to the outcomes, by pooling adjacent violators.

    Least squares over all non-decreasing functions of the score, which is also the best in every other proper score.
    Rows with equal scores are pooled first, so their order does not matter. No setting, O(n log n). Overfits: it is the
    recalibration that is most favourable in hindsight. Ayer et al. (1955); Dimitriadis, Gneiting & Jordan (2021).

    >>> curve = Isotonic().fit(np.array([0.1, 0.3, 0.5, 0.9]), np.array([0, 1, 0, 1]))
    >>> curve(np.array([0.0, 0.29, 0.3, 0.6, 0.9]))
    array([0. , 0. , 0.5, 0.5, 1. ])
    """

    def fit(self, scores: np.ndarray, happened: np.ndarray, weights: np.ndarray | None = None) -> StepCurve:
        """The curve, as one step a pool."""
        from scipy.optimize import isotonic_regression  # slow to import, and few need it

        rows = Rows.of(scores, happened, weights)
        distinct, which = np.unique(rows.scores, return_inverse=True)
        weight = np.bincount(which, weights=rows.weights)
        frequency = np.bincount(which, weights=rows.weights * rows.happened) / weight
        pools = isotonic_regression(frequency, weights=weight)
        first = pools.blocks[:-1]
        return StepCurve(self, distinct[first], np.clip(pools.x[first], 0, 1))


@dataclass(frozen=True, eq=False)
class SmoothCurve(FittedCurve):
    """Values at equidistant nodes of [0, 1], joined by straight lines."""

    rule: "KernelSmooth"
    values: np.ndarray

    @property
    def bandwidth(self) -> float:
        """The standard deviation of the kernel, given or chosen."""
        assert self.rule.bandwidth is not None
        return self.rule.bandwidth

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """The value at each score."""
        return np.interp(scores, np.linspace(0, 1, len(self.values)), self.values)


@dataclass(frozen=True)
class KernelSmooth(Curve):
    """Local means of the outcomes: ``sum_i w_i K(t, f_i) y_i / sum_i w_i K(t, f_i)`` (Nadaraya & Watson 1964).

    K is Gaussian with standard deviation ``bandwidth``, reflected at 0 and 1 so that no weight is lost there. Without
    a bandwidth the one with the least leave-one-out squared error is taken, of twelve from 2 to 0.02 standard deviations
    of the scores; the fitted curve says which. Whole weights leave out one of so many rows, others the mean weight.
    Computed on a grid of g nodes, O(n + g log g), error about 1e-4; more than some six bandwidths from every
    score the curve is a straight line between what is known.

    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random(2000)
    >>> curve = KernelSmooth().fit(scores, rng.random(2000) < scores**2)
    >>> curve(np.array([0.3, 0.6, 0.9])).round(2), round(curve.bandwidth, 3)
    (array([0.08, 0.37, 0.79]), 0.02)
    """

    bandwidth: float | None = None

    def __post_init__(self) -> None:
        h = self.bandwidth
        if h is not None and (isinstance(h, bool) or not isinstance(h, Real) or not LEAST <= h <= MOST):
            raise InputError(
                f"bandwidth must be a number from {LEAST:g} to {MOST:g}, or None to have it chosen; got {h!r}"
            )

    def fit(self, scores: np.ndarray, happened: np.ndarray, weights: np.ndarray | None = None) -> SmoothCurve:
        """The curve with the bandwidth given, or else chosen."""
        rows = Rows.of(scores, happened, weights)
        h = _chosen_bandwidth(rows) if self.bandwidth is None else float(self.bandwidth)
        (weight, event) = Grid.of(rows, FINE / h).smoothed(np.array([h]))[:, 0]
        known = np.flatnonzero(weight > TRUSTED * weight.max())
        values = np.interp(np.arange(len(weight)), known, event[known] / weight[known])
        return SmoothCurve(replace(self, bandwidth=h), np.clip(values, 0, 1))


@dataclass(frozen=True, eq=False)
class Grid:
    """Rows shared out linearly between the nodes of a grid: weight, and weight of the events."""

    weight: np.ndarray
    event: np.ndarray

    @classmethod
    def of(cls, rows: Rows, least: float) -> Self:
        """A grid of ``2^m + 1`` nodes, at least 513 and at least so many."""
        cells = max(512, 1 << int(np.ceil(np.log2(least))))
        place = rows.scores * cells
        left = np.minimum(place.astype(np.intp), cells - 1)
        share = rows.weights * (place - left)

        def mass(right: np.ndarray, total: np.ndarray) -> np.ndarray:
            return np.bincount(left, total - right, cells + 1) + np.bincount(left + 1, right, cells + 1)

        return cls(mass(share, rows.weights), mass(share * rows.happened, rows.weights * rows.happened))

    def smoothed(self, bandwidths: np.ndarray) -> np.ndarray:
        """Weight and events under the reflected kernel, up to one factor, ``(2, bandwidths, nodes)``."""
        from scipy.fft import dct, idct

        # A cosine series is even around 0 and 1: all reflections at once. End nodes are their own mirror images.
        mass = np.stack([self.weight, self.event])
        mass[:, [0, -1]] *= 2
        return idct(dct(mass, type=1)[:, None] * self._damping(bandwidths), type=1)

    def kernel(self, bandwidths: np.ndarray) -> np.ndarray:
        """The kernel, on the circle of two mirrored intervals, at distances of 0, 1, 2, ... cells."""
        from scipy.fft import idct

        return idct(self._damping(bandwidths), type=1)

    def own(self, bandwidths: np.ndarray) -> np.ndarray:
        """What a row of weight one at each node adds there, ``(bandwidths, nodes)``."""
        kernel = self.kernel(bandwidths)
        nodes = np.arange(kernel.shape[-1])
        mirror = 2 * np.minimum(nodes, nodes[::-1])
        return kernel[:, :1] + kernel[:, mirror]

    def _damping(self, bandwidths: np.ndarray) -> np.ndarray:
        """What the kernel leaves of each frequency."""
        return np.exp(-((np.pi * bandwidths[:, None] * np.arange(len(self.weight))) ** 2) / 2)


def _chosen_bandwidth(rows: Rows) -> float:
    """The bandwidth with the least leave-one-out squared error; of equals the smoothest."""
    bandwidths = np.clip(CANDIDATES * _spread(rows), LEAST, MOST)
    grid = Grid.of(rows, COARSE / bandwidths[-1])
    errors = _left_out_errors(grid, bandwidths, _unit(rows.weights))
    equal = errors <= errors.min() * (1 + 1e-9) + 1e-12 * rows.weights.sum()
    return float(bandwidths[np.argmax(equal)])


def _spread(rows: Rows) -> float:
    """Standard deviation of the scores; one where they are all equal, and no bandwidth matters."""
    if np.ptp(rows.scores) == 0:
        return 1.0
    mean = np.average(rows.scores, weights=rows.weights)
    return float(np.sqrt(np.average((rows.scores - mean) ** 2, weights=rows.weights)))


def _unit(weights: np.ndarray) -> float:
    """The weight of one row: a whole weight stands for so many rows, others have their mean, weighted by themselves."""
    return 1.0 if np.all(weights == np.floor(weights)) else float(weights @ weights / weights.sum())


def _left_out_errors(grid: Grid, bandwidths: np.ndarray, unit: float) -> np.ndarray:
    """Sum over rows of the squared error of the curve fitted to the others, one a bandwidth."""
    weight, event = grid.smoothed(bandwidths)
    own = unit * grid.own(bandwidths)
    others = weight - own
    alone = others < ALONE * own
    total = max(grid.weight.sum() - unit, unit)
    others = np.where(alone, total, others)
    missed = np.where(alone, grid.event.sum() - unit, event - own) / others  # the fit to the others, for an event
    false = np.where(alone, grid.event.sum(), event) / others  # and for a row where it did not happen
    return (1 - missed) ** 2 @ grid.event + false**2 @ (grid.weight - grid.event)
