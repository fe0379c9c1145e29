"""How often an event happens at each score, as a curve fitted to the rows, and the calibration index made of it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from numbers import Real
from typing import Literal, NamedTuple, Self

import numpy as np

from calibrant._numerics.reflected_smoothing import GridPlaces, ReflectedKernels
from calibrant._validate import InputError
from calibrant.estimators.base import EventEstimator, OfEvent
from calibrant.lenses.class_lenses import Lens

MIN_BANDWIDTH, MAX_BANDWIDTH = 1e-4, 10.0
"""Bandwidths in use: below, the grid would grow without end; above, every curve is a constant."""

FINE, COARSE = 32, 8
"""Nodes per bandwidth, for the curve and for the choice of its bandwidth: relative errors of order 1/(8 FINE^2)."""

NEAR = 14 * FINE
"""Nodes on either side of all rows that are seen: at least seven bandwidths, beyond which no sum of kernels is ``TRUSTED``."""

ALONE = 0.01
"""A row whose neighbours together weigh less than this share of it has none."""

CANDIDATES = np.geomspace(2, 0.02, 12)
"""Bandwidths tried, in standard deviations of the scores, the smoothest first."""


@dataclass(frozen=True, eq=False)
class GridPositions:
    """Where rows lie on a grid, what they weigh, and what they weigh together at its nodes.

    Rows that lie close together see only the nodes near them, from ``first`` on.
    """

    places: GridPlaces
    weights: np.ndarray
    weight: np.ndarray
    cells: int
    first: int

    @classmethod
    def of(cls, scores: np.ndarray, weights: np.ndarray, cells: int) -> Self:
        """Scores in [0, 1] on a grid of so many cells."""
        places, first, last = GridPlaces.of(scores, cells), 0, cells
        if cells > MIN_CELLS:
            first, last = max(0, int(places.left.min()) - NEAR), min(cells, int(places.left.max()) + 1 + NEAR)
            if last - first > cells // 4:  # cosines of all nodes take less
                first, last = 0, cells
        places = GridPlaces(places.left - first, places.part, last - first)
        return cls(places, weights, places.mass(weights), cells, first)

    def event(self, observed: np.ndarray) -> np.ndarray:
        """What the rows weigh whose event happened."""
        return self.places.mass(self.weights * observed)

    def kernels(self, bandwidths: np.ndarray) -> ReflectedKernels:
        """The kernels between the nodes."""
        return ReflectedKernels(bandwidths, self.cells, self.first, len(self.weight))


MIN_CELLS = 512


def cells_of(least: float) -> int:
    """The cells of a grid of ``2^m + 1`` nodes, at least 513 and at least so many.

    >>> cells_of(100), cells_of(600.5)
    (512, 1024)
    """
    return max(MIN_CELLS, 1 << int(np.ceil(np.log2(least))))


def grids_of(scores: np.ndarray, weights: np.ndarray) -> Callable[[int], GridPositions]:
    """The places of rows on grids of any number of cells; the last two are kept."""
    return lru_cache(maxsize=2)(partial(GridPositions.of, scores, weights))


def bandwidth_of(
    scores: np.ndarray, weights: np.ndarray, grids: Callable[[int], GridPositions]
) -> Callable[[np.ndarray], float]:
    """The bandwidth with the least leave-one-out squared error, as a function of what happened; of equals the smoothest."""
    bandwidths, unit = np.clip(CANDIDATES * _spread(scores, weights), MIN_BANDWIDTH, MAX_BANDWIDTH), _unit(weights)
    left_out, rounding = _LeftOut(grids(cells_of(COARSE / bandwidths[-1])), bandwidths, unit), 1e-12 * weights.sum()

    def choose(observed: np.ndarray) -> float:
        errors = left_out.errors(observed)
        equal = errors <= errors.min() * (1 + 1e-9) + rounding
        return float(bandwidths[np.argmax(equal)])

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


@dataclass(frozen=True, eq=False)
class _LeftOut:
    """The curves of several bandwidths, each row's fitted to the others; ``unit`` is what a row weighs."""

    rows: GridPositions
    bandwidths: np.ndarray
    unit: float

    def errors(self, observed: np.ndarray) -> np.ndarray:
        """Sum over rows of the squared error of the curve fitted to the others, one a bandwidth."""
        weight, mass, unit = self.rows.weight, self.rows.event(observed), self.unit
        kernels, own, others, alone = self._fixed
        event = kernels(mass)
        missed = np.where(alone, mass.sum() - unit, event - own) / others  # the fit to the others, for an event
        false = np.where(alone, mass.sum(), event) / others  # and for a row where it did not happen
        return (1 - missed) ** 2 @ mass + false**2 @ (weight - mass)

    @cached_property
    def _fixed(self) -> tuple[ReflectedKernels, np.ndarray, np.ndarray, np.ndarray]:
        """The kernels, what a row adds at its place, what the others weigh there, and where they are far away."""
        kernels = self.rows.kernels(self.bandwidths)
        own = self.unit * kernels.own
        others = kernels(self.rows.weight) - own
        alone = others < ALONE * own
        return kernels, own, np.where(alone, max(self.rows.weight.sum() - self.unit, self.unit), others), alone


TRUSTED = 1e-9
"""Sums of kernels below this share of the largest are rounding: there the curve is drawn from its neighbours."""


class FittedCurve(ABC):
    """A curve with the rule that made it, its numbers resolved; call it at any scores in [0, 1].

    >>> from calibrant.estimators import IsotonicCurve
    >>> curve = IsotonicCurve().fit(np.array([0.2, 0.4, 0.8]), np.array([0.0, 1.0, 1.0]), np.ones(3))
    >>> curve(np.array([0.2, 0.8]))
    array([0., 1.])
    """

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
    """Values at equidistant nodes of [0, 1], joined by straight lines; constant beyond the first and the last."""

    rule: "KernelSmooth"
    nodes: np.ndarray
    values: np.ndarray

    @property
    def bandwidth(self) -> float:
        """The standard deviation of the kernel, given or chosen."""
        assert self.rule.bandwidth is not None
        return self.rule.bandwidth

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """The value at each score."""
        return np.interp(scores, self.nodes, self.values)


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
        """Rows find their places on grids once."""
        rows = CurveRows.of(scores, np.zeros(len(scores)), weights)
        grids = grids_of(rows.scores, rows.weights)
        choose = bandwidth_of(rows.scores, rows.weights, grids) if self.bandwidth is None else None
        return partial(self._smoothed, weights, lru_cache(maxsize=4)(partial(_Smoothing.of, grids)), choose)

    def _smoothed(
        self,
        weights: np.ndarray | None,
        smoothing: "Callable[[float], _Smoothing]",
        choose: Callable[[np.ndarray], float] | None,
        y: np.ndarray,
    ) -> SmoothCurve:
        observed = CurveRows.of(y, y, weights).observed
        h = float(self.bandwidth) if choose is None else choose(observed)  # type: ignore[arg-type]
        return SmoothCurve(replace(self, bandwidth=h), *smoothing(h)(observed))


class _Smoothing(NamedTuple):
    """Rows on a grid, the kernel of one bandwidth, and the rows' smoothed weight at the nodes where it is known."""

    rows: GridPositions
    kernel: ReflectedKernels
    known: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(cls, grids: Callable[[int], GridPositions], bandwidth: float) -> Self:
        """On a grid as fine as the bandwidth asks for."""
        rows = grids(cells_of(FINE / bandwidth))
        kernel = rows.kernels(np.array([bandwidth]))
        weight = kernel(rows.weight)[0]
        known = np.flatnonzero(weight > TRUSTED * weight.max())
        return cls(rows, kernel, known, weight[known])

    def __call__(self, observed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The nodes, and the curve at each."""
        event, nodes = self.kernel(self.rows.event(observed))[0], np.arange(self.kernel.count)
        values = np.interp(nodes, self.known, event[self.known] / self.weight)
        return (self.rows.first + nodes) / self.rows.cells, np.clip(values, 0, 1)


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
