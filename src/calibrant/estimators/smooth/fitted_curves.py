"""How often an event happens at each score, as a curve fitted to the rows, and the calibration index made of it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from numbers import Real
from typing import Literal, NamedTuple, Self

import numpy as np

from calibrant._numerics.reflected_smoothing import GridPlaces, cosine_sums, damping
from calibrant._validate import InputError
from calibrant.estimators.base import EventEstimator, OfEvent
from calibrant.lenses.class_lenses import Lens

MIN_BANDWIDTH, MAX_BANDWIDTH = 1e-4, 10.0
"""Bandwidths in use: below, the grid would grow without end; above, every curve is a constant."""

FINE, COARSE = 32, 8
"""Nodes a bandwidth, for the curve and for the choice of its bandwidth: relative errors of order 1/(8 FINE^2)."""

ALONE = 0.01
"""A row whose neighbours together weigh less than this share of it has none."""

FAR = 6.5
"""Bandwidths from a score where its kernel is below ``TRUSTED``."""

CANDIDATES = np.geomspace(2, 0.02, 12)
"""Bandwidths tried, in standard deviations of the scores, the smoothest first."""


@dataclass(frozen=True, eq=False)
class GridPositions:
    """Where rows lie on a grid, what they weigh, and what they weigh together at its nodes."""

    places: GridPlaces
    weights: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(cls, scores: np.ndarray, weights: np.ndarray, cells: int) -> Self:
        """Scores in [0, 1] on a grid of so many cells."""
        places = GridPlaces.of(scores, cells)
        return cls(places, weights, places.mass(weights))

    def event(self, observed: np.ndarray) -> np.ndarray:
        """What the rows weigh at the nodes whose event happened."""
        return self.places.mass(self.weights * observed)


class Smoothed:
    """Masses on a grid under the reflected kernel, one bandwidth a row, up to one factor; what weights decide is done once."""

    def __init__(self, grid: GridPositions, bandwidths: np.ndarray) -> None:
        self.grid = grid
        self._damping = 2 * damping(bandwidths, len(grid.weight))
        self.weight = self.of(grid.weight)

    def of(self, mass: np.ndarray) -> np.ndarray:
        """``(bandwidths, nodes)``."""
        from scipy.fft import idct

        return idct(cosine_sums(mass) * self._damping, type=1)

    def kernel(self) -> np.ndarray:
        """The kernel, on the circle of two mirrored intervals, at distances of 0, 1, 2, ... cells."""
        from scipy.fft import idct

        return idct(self._damping, type=1) / 2

    def own(self) -> np.ndarray:
        """What a row of weight one at each node adds there, ``(bandwidths, nodes)``."""
        kernel = self.kernel()
        nodes = np.arange(kernel.shape[-1])
        mirror = 2 * np.minimum(nodes, nodes[::-1])
        return kernel[:, :1] + kernel[:, mirror]


def cells_of(least: float) -> int:
    """The cells of a grid of ``2^m + 1`` nodes, at least 513 and at least so many.

    >>> cells_of(100), cells_of(600.5)
    (512, 1024)
    """
    return max(512, 1 << int(np.ceil(np.log2(least))))


def grids_of(scores: np.ndarray, weights: np.ndarray) -> Callable[[int], GridPositions]:
    """The places of rows on grids of any number of cells; the last two are kept."""
    return lru_cache(maxsize=2)(partial(GridPositions.of, scores, weights))


def bandwidth_of(
    bandwidths: np.ndarray, weights: np.ndarray, grids: Callable[[int], GridPositions]
) -> Callable[[np.ndarray], int]:
    """Which bandwidth has the least leave-one-out squared error, as a function of what happened; of equals the first."""
    errors = left_out_errors(Smoothed(grids(cells_of(COARSE / bandwidths[-1])), bandwidths), _unit(weights))
    rounding = 1e-12 * weights.sum()

    def choose(observed: np.ndarray) -> int:
        found = errors(observed)
        return int(np.argmax(found <= found.min() * (1 + 1e-9) + rounding))

    return choose


def _unit(weights: np.ndarray) -> float:
    """The weight of one row: the mean, weighted by itself."""
    return float(weights @ weights / weights.sum())


def _spread(scores: np.ndarray, weights: np.ndarray) -> float:
    """Standard deviation of the scores, as pairs of rows show it; one where all are equal, and no bandwidth matters.

    Deviations from a mean that lies on the row of most weight vanish. So their square is divided by the chance that two
    rows drawn by weight are different ones, relative to equal weights: a row that outweighs all others leaves a width.
    """
    if np.ptp(scores) == 0:
        return 1.0
    shares, most = weights / weights.sum(), int(np.argmax(weights))
    rest = np.delete(shares, most)
    differ = rest.sum() * shares[most] + rest @ (1 - rest)
    variance = shares @ (scores - shares @ scores) ** 2
    return float(np.sqrt(variance * ((1 - 1 / len(scores)) / differ)))


def reach_of(scores: np.ndarray, bandwidth: float) -> float:
    """Where a grid from 0 may end: a power of two, at most one, which no kernel at a score passes. Rare events need little.

    >>> reach_of(np.array([0.001, 0.02]), 0.005), reach_of(np.array([0.5]), 0.1)
    (0.0625, 1.0)
    """
    return float(min(1.0, np.exp2(np.ceil(np.log2(scores.max() + FAR * bandwidth)))))


def left_out_errors(smoothed: Smoothed, unit: float) -> Callable[[np.ndarray], np.ndarray]:
    """Sum over rows of the squared error of the curve fitted to the others, one a bandwidth, given what happened."""
    grid, own = smoothed.grid, unit * smoothed.own()
    others = smoothed.weight - own
    alone = others < ALONE * own
    total = max(grid.weight.sum() - unit, unit)
    others = np.where(alone, total, others)

    def errors(observed: np.ndarray) -> np.ndarray:
        mass = grid.event(observed)
        event = smoothed.of(mass)
        missed = np.where(alone, mass.sum() - unit, event - own) / others  # the fit to the others, for an event
        false = np.where(alone, mass.sum(), event) / others  # and for a row where it did not happen
        return (1 - missed) ** 2 @ mass + false**2 @ (grid.weight - mass)

    return errors


TRUSTED = 1e-9
"""Sums of kernels below this share of the largest are rounding: there the curve is drawn from its neighbours."""


class FittedCurve(ABC):
    """A curve with the rule that made it, its numbers resolved; call it at any scores in [0, 1]."""

    rule: "Curve"

    @abstractmethod
    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """The fitted frequency at each score."""


class Curve(ABC):
    """A rule that fits a curve; subclasses are frozen dataclasses that write :meth:`fit`."""

    @abstractmethod
    def fit(self, scores: np.ndarray, observed: np.ndarray, weights: np.ndarray | None = None) -> FittedCurve:
        """The curve of one event: scores in [0, 1], whether it happened, and how much each row counts, all ``(n,)``."""

    def given(self, scores: np.ndarray, weights: np.ndarray | None = None) -> Callable[[np.ndarray], FittedCurve]:
        """:meth:`fit` as a function of what happened, ``(n,)``; what scores and weights decide may be done once."""
        return lambda observed: self.fit(scores, observed, weights)


class CurveRows(NamedTuple):
    """Scores, zeros and ones, and weights in double precision, without the rows that do not count."""

    scores: np.ndarray
    observed: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, scores: np.ndarray, observed: np.ndarray, weights: np.ndarray | None) -> Self:
        """All rows, or those with weight."""
        f, y = np.asarray(scores, dtype=np.float64), np.asarray(observed, dtype=np.float64)
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
class IsotonicCurve(Curve):
    """The non-decreasing curve closest to the outcomes, by pooling adjacent violators.

    Least squares over all non-decreasing functions of the score, which is also the best in every other proper score.
    Rows with equal scores are pooled first, so their order does not matter. No setting, O(n log n). Overfits: it is the
    recalibration that is most favourable in hindsight. Ayer et al. (1955); Dimitriadis, Gneiting & Jordan (2021).

    >>> curve = IsotonicCurve().fit(np.array([0.1, 0.3, 0.5, 0.9]), np.array([0, 1, 0, 1]))
    >>> curve(np.array([0.0, 0.29, 0.3, 0.6, 0.9]))
    array([0. , 0. , 0.5, 0.5, 1. ])
    """

    def fit(self, scores: np.ndarray, observed: np.ndarray, weights: np.ndarray | None = None) -> StepCurve:
        """The curve, as one step a pool."""
        return self.given(scores, weights)(observed)

    def given(self, scores: np.ndarray, weights: np.ndarray | None = None) -> Callable[[np.ndarray], StepCurve]:
        """Scores are sorted once, and equal ones found."""
        rows = CurveRows.of(scores, np.zeros(len(scores)), weights)
        distinct, which = np.unique(rows.scores, return_inverse=True)
        return partial(self._pooled, weights, distinct, which, np.bincount(which, weights=rows.weights))

    def _pooled(
        self, weights: np.ndarray | None, distinct: np.ndarray, which: np.ndarray, weight: np.ndarray, y: np.ndarray
    ) -> StepCurve:
        from scipy.optimize import isotonic_regression  # slow to import, and few need it

        _, observed, w = CurveRows.of(y, y, weights)
        frequency = np.bincount(which, weights=w * observed) / weight
        pools = isotonic_regression(frequency, weights=weight)
        first = pools.blocks[:-1]
        return StepCurve(self, distinct[first], np.clip(pools.x[first], 0, 1))


@dataclass(frozen=True, eq=False)
class SmoothCurve(FittedCurve):
    """Values at equidistant nodes from 0 to ``reach``, joined by straight lines; beyond, the last."""

    rule: "KernelSmooth"
    values: np.ndarray
    reach: float = 1.0

    @property
    def bandwidth(self) -> float:
        """The standard deviation of the kernel, given or chosen."""
        assert self.rule.bandwidth is not None
        return self.rule.bandwidth

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """The value at each score."""
        return np.interp(scores, np.linspace(0, self.reach, len(self.values)), self.values)


@dataclass(frozen=True)
class KernelSmooth(Curve):
    """Local means of the outcomes: ``sum_i w_i K(t, f_i) y_i / sum_i w_i K(t, f_i)`` (Nadaraya & Watson 1964).

    K is Gaussian with standard deviation ``bandwidth``, reflected at 0 and 1 so that no weight is lost there. Without
    a bandwidth the one with the least leave-one-out squared error is taken, of twelve from 2 to 0.02 standard deviations
    of the scores; the fitted curve says which. What is left out is the weight of a typical row, ``sum w^2 / sum w``.
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
        if h is not None and (
            isinstance(h, bool) or not isinstance(h, Real) or not MIN_BANDWIDTH <= h <= MAX_BANDWIDTH
        ):
            raise InputError(
                f"bandwidth must be a number from {MIN_BANDWIDTH:g} to {MAX_BANDWIDTH:g}, or None to have it chosen; got {h!r}"
            )

    def fit(self, scores: np.ndarray, observed: np.ndarray, weights: np.ndarray | None = None) -> SmoothCurve:
        """The curve with the bandwidth given, or else chosen."""
        return self.given(scores, weights)(observed)

    def given(self, scores: np.ndarray, weights: np.ndarray | None = None) -> Callable[[np.ndarray], SmoothCurve]:
        """Rows find their places on grids once, and kernels are laid over their weights."""
        rows = CurveRows.of(scores, np.zeros(len(scores)), weights)
        bandwidths = self._bandwidths(rows)
        reach = reach_of(rows.scores, bandwidths[0])
        grids = grids_of(rows.scores / reach, rows.weights)
        choose = bandwidth_of(bandwidths / reach, rows.weights, grids) if len(bandwidths) > 1 else lambda _: 0

        @lru_cache(maxsize=3)
        def fine(which: int) -> Smoothed:
            h = bandwidths[which : which + 1] / reach
            return Smoothed(grids(cells_of(FINE / h[0])), h)

        def smoothed(y: np.ndarray) -> SmoothCurve:
            observed = CurveRows.of(y, y, weights).observed
            which = choose(observed)
            rule, found = replace(self, bandwidth=float(bandwidths[which])), fine(which)
            return SmoothCurve(rule, _quotients(found.of(found.grid.event(observed))[0], found.weight[0]), reach)

        return smoothed

    def _bandwidths(self, rows: CurveRows) -> np.ndarray:
        """The one given, or those to choose from."""
        if self.bandwidth is not None:
            return np.array([float(self.bandwidth)])
        return np.clip(CANDIDATES * _spread(rows.scores, rows.weights), MIN_BANDWIDTH, MAX_BANDWIDTH)


def _quotients(event: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The fitted frequencies; between what is known straight lines."""
    known = np.flatnonzero(weight > TRUSTED * weight.max())
    return np.clip(np.interp(np.arange(len(weight)), known, event[known] / weight[known]), 0, 1)


NAMES = {"mean": "ICI", "median": "E50", "p90": "E90", "max": "Emax"}
"""What the literature calls each summary."""

SHARES = {"median": 0.5, "p90": 0.9, "max": 1.0}


@dataclass(frozen=True)
class ICI(EventEstimator):
    """Integrated calibration index: how far, over the rows, the scores lie from a curve fitted to the outcomes.

    ``|c(f_i) - f_i|`` with the curve c of one event, summarised by its weighted ``mean`` (ICI), ``median`` (E50), 90 %
    quantile ``p90`` (E90) or ``max`` (Emax). Several events are averaged. The curve is :class:`KernelSmooth` unless
    another is given; the bandwidth it chose is in the result's ``estimator``.

    Never negative, hence biased upwards, most with a curve that follows the noise: read it beside the null band of
    :class:`~calibrant.ExactTest`. O(n), and O(n log n) for the quantiles. Austin & Steyerberg (2019).

    >>> rng = np.random.default_rng(0)
    >>> y_pred = rng.random(2000)
    >>> y_true = (rng.random(2000) < 0.3 + 0.4 * y_pred) * 1    # the truth: |0.3 - 0.6 f|, 0.15 on average
    >>> round(ICI(KernelSmooth(0.1))(y_true, y_pred).value, 2)
    0.16
    >>> ICI(KernelSmooth(0.1), "max")(y_true, y_pred)
    Emax = 0.3356
      lens       positive class (1)
      n          2,000
      estimator  ICI(curve=KernelSmooth(bandwidth=0.1), summary='max', lens=PositiveClass())
    """

    least = 0.0
    most = 1.0
    resampling = "the bias of a fitted curve is not known"

    curve: Curve = KernelSmooth()  # frozen
    summary: Literal["mean", "median", "p90", "max"] = "mean"
    lens: Lens | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.curve, Curve):
            raise InputError(f"curve must be a curve such as KernelSmooth() or IsotonicCurve(); got {self.curve!r}")
        if self.summary not in NAMES:
            raise InputError(f"summary must be 'mean', 'median', 'p90' or 'max'; got {self.summary!r}")

    @property
    def name(self) -> str:
        """ICI, E50, E90 or Emax."""
        return NAMES[self.summary]

    def of_event(self, scores: np.ndarray, observed: np.ndarray, weights: np.ndarray | None) -> OfEvent:
        """The summary of the gaps, and the curve's own choices."""
        curve = self.curve.fit(scores, observed, weights)
        gaps = np.abs(curve(scores) - scores)
        if self.summary == "mean":
            value = np.average(gaps, weights=weights)
        else:
            value = quantiles(gaps, weights, np.array([SHARES[self.summary]]))[0]
        return OfEvent(float(value), settings={"curve": curve.rule})


def quantiles(values: np.ndarray, weights: np.ndarray | None, shares: np.ndarray) -> np.ndarray:
    """Quantiles of weighted values: the inverse of their distribution function, the middle of its flat places.

    A whole weight counts as so many values (Hyndman & Fan 1996, type 2: half of an even number is the usual median).

    >>> quantiles(np.array([3.0, 1.0, 2.0]), np.array([1, 1, 2]), np.array([0, 0.25, 0.5, 1]))
    array([1. , 1.5, 2. , 3. ])
    """
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(np.ones(len(values)) if weights is None else weights[order])
    wanted, slack = shares * reached[-1], 1e-12 * reached[-1]  # sums of weights are rounded
    lower = np.searchsorted(reached, wanted - slack, side="left")
    upper = np.searchsorted(reached, wanted + slack, side="right")
    last = len(values) - 1
    lower, upper = np.minimum(lower, last), np.minimum(upper, last)
    return (values[order[lower]] + values[order[upper]]) / 2
