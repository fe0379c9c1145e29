"""How far the squared calibration errors of two models of the same targets lie apart, near calibration and far from it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias, TypeGuard

import numpy as np

from calibrant._array import to_numpy
from calibrant.distributions.base import Distribution
from calibrant.distributions.empirical.quantiles import fan_of
from calibrant.estimators.binned.debiased import BinWeights, DebiasedECE
from calibrant.estimators.forecast_errors.pit import pit_of, randomised
from calibrant.estimators.forecast_errors.pit_error import PITError
from calibrant.estimators.forecast_errors.quantile_cells import SharesBelow
from calibrant.estimators.mean_limits import MeanLimits
from calibrant.inference.proportions import equal_rows
from calibrant.results import Estimate, Interval
from calibrant.typing import Array

Rows: TypeAlias = tuple[Array, Distribution, np.ndarray | None]
"""Targets, predictions and weights."""

Squared: TypeAlias = DebiasedECE | PITError
"""Errors that are roots of mean squares."""

SURE = 0.999
"""The confidence of the limits of single errors, by which a difference of squares is told as one of roots."""

LEVELS = 64
"""Levels at which the distribution function of PIT values is looked at."""

CHUNK = 1 << 14
"""Rows whose PIT values are looked at together."""


@dataclass(frozen=True, eq=False)
class CellNoise:
    """One event of one model: the cell of each row, the root of the cells' shares times their gaps, and what each row adds to it.

    ``noise`` is that of rows around the mean of their cell, so that sums of its products are covariances of ``gaps``.
    """

    cell: np.ndarray
    gaps: np.ndarray
    noise: np.ndarray

    @classmethod
    def of(cls, error: DebiasedECE, rows: Rows) -> "list[CellNoise]":
        """Of every event of the error; cells of one row, which it leaves out, have no gap and no noise."""
        targets, predictions, weights = rows
        _, events, _ = error.look(predictions)
        w = np.ones(len(predictions)) if weights is None else weights
        found = []
        for event in events:
            observed, p = event.observed(targets), event.probability
            bins = error.bins.bins(p, weights, observed)
            cell = bins.of_rows(p, slice(None))
            counted = BinWeights.of(cell, len(bins), weights)
            several = counted.effective > 1 + 1e-9
            residual = observed - p.astype(np.float64)
            whole = np.where(several, counted.weight, np.inf)
            mean = np.bincount(cell, weights=w * residual, minlength=len(bins)) / whole
            rest = counted.effective / np.where(several, counted.effective - 1, 1)
            scale = np.sqrt(np.where(several, rest, 0.0) / (whole * w.sum() * len(events)))
            gaps = mean * np.sqrt(np.where(several, counted.weight, 0.0) / (w.sum() * len(events)))
            found.append(cls(cell, gaps, w * (residual - mean[cell]) * scale[cell]))
        return found

    def along_gaps(self) -> np.ndarray:
        """What each row adds in the direction of the gaps, ``(n,)``."""
        found: np.ndarray = self.gaps[self.cell] * self.noise
        return found

    def covariance(self, other: "Noise") -> np.ndarray:
        """Of the gaps of two events, ``(cells, cells)``: rows are in both."""
        assert isinstance(other, CellNoise)
        shape = len(self.gaps), len(other.gaps)
        both = self.cell * shape[1] + other.cell
        return np.bincount(both, weights=self.noise * other.noise, minlength=shape[0] * shape[1]).reshape(shape)


@dataclass(frozen=True, eq=False)
class LevelNoise:
    """PIT values of one model: gaps of their distribution function at some levels, and what rows add to these.

    Levels count by their width, the roots of which are in ``gaps`` and in ``scale``. ``beyond`` says of some rows how much of
    each lies below each level, less the level.
    """

    gaps: np.ndarray
    scale: np.ndarray
    beyond: Callable[[slice], np.ndarray]
    shares: np.ndarray

    @classmethod
    def of(cls, error: PITError, rows: Rows) -> Self:
        """At even levels; of quantile forecasts, at those that were given."""
        targets, predictions, weights = rows
        n = len(predictions)
        shares = np.full(n, 1 / n) if weights is None else weights / weights.sum()
        if (fan := fan_of(predictions)) is not None:
            below, levels = SharesBelow.of(fan, weights).beyond(targets), fan.levels
            ends = np.concatenate([[0.0], (levels[1:] + levels[:-1]) / 2, [1.0]])
            beyond: Callable[[slice], np.ndarray] = below.__getitem__
        else:
            u = randomised(pit_of(predictions, error, error.prerank, error.seed)(to_numpy(targets)), error.seed)
            ends = np.linspace(0, 1, LEVELS + 1)
            levels = (ends[1:] + ends[:-1]) / 2
            beyond = lambda some: (u[some, None] <= levels) - levels  # noqa: E731
        root = np.sqrt(np.diff(ends))
        whole = sum(shares[some] @ beyond(some) for some in _chunks(n))
        return cls(whole * root, root, beyond, shares)

    @property
    def square(self) -> float:
        """The mean square gap without bias, from pairs of rows: it may be negative."""
        once = sum(
            float(self.shares[some] ** 2 @ ((self.beyond(some) * self.scale) ** 2).sum(axis=1))
            for some in _chunks(len(self.shares))
        )
        return (float(self.gaps @ self.gaps) - once) / (1 - float(self.shares @ self.shares))

    def along_gaps(self) -> np.ndarray:
        """What each row adds in the direction of the gaps, ``(n,)``."""
        return np.concatenate([self._noise(some) @ self.gaps for some in _chunks(len(self.shares))])

    def covariance(self, other: "Noise") -> np.ndarray:
        """Of the gaps of two models, ``(levels, levels)``."""
        assert isinstance(other, LevelNoise)
        found = sum(self._noise(some).T @ other._noise(some) for some in _chunks(len(self.shares)))
        return np.asarray(found)

    def _noise(self, some: slice) -> np.ndarray:
        """What rows add to the gaps, around the mean of all."""
        rest = 1 / np.sqrt(1 - float(self.shares @ self.shares))
        off: np.ndarray = (self.beyond(some) * self.scale - self.gaps) * (rest * self.shares[some, None])
        return off


Noise: TypeAlias = CellNoise | LevelNoise
"""Of one error; those of two models are of one kind."""


def _chunks(n: int) -> Iterator[slice]:
    return (slice(start, start + CHUNK) for start in range(0, n, CHUNK))


@dataclass(frozen=True, eq=False)
class Square:
    """The mean square gap of one model without bias, with its noise, its root as an estimate, and sure limits of that."""

    value: float
    parts: Sequence[Noise]
    root: Estimate
    sure: Interval

    @classmethod
    def of(cls, error: Squared, rows: Rows) -> Self:
        """Of an error that :func:`is_square` knows."""
        if isinstance(error, DebiasedECE):
            root = error.estimate(*rows)
            value = float(np.sign(root.value) * root.value**2)
            return cls(value, CellNoise.of(error, rows), root, root.confidence_interval(SURE))
        noise, n = LevelNoise.of(error, rows), len(rows[1])
        value = noise.square
        root = Estimate("debiased PITError", float(np.sign(value) * np.sqrt(abs(value))), n, error)
        # by Dvoretzky, Kiefer, Wolfowitz and Massart
        far, seen = (
            np.sqrt(np.log(2 / (1 - SURE)) / (2 * equal_rows(rows[2], n))),
            float(np.sqrt(noise.gaps @ noise.gaps)),
        )
        return cls(value, [noise], root, Interval(max(seen - far, 0.0), min(seen + far, 1.0), SURE, ""))


def squares_apart(a: Square, b: Square, weights: np.ndarray | None) -> MeanLimits:
    """Limits of the difference of the mean square gaps of two models, ``a - b``.

    Each square comes without bias from pairs of rows: it is ``x' x`` of gaps x with noise of covariance C, less the trace of C. So
    with signs S of the models the difference is ``x' S x`` less ``tr S C``, and its variance ``2 tr S C S C + 4 m' S C S m``,
    m being the true gaps. The second part vanishes where both are calibrated, and the first where both err much; neither is
    left out. What the second seems to be is too large by ``4 tr S C S C`` on average, which is taken off. It is a mean over
    rows, whose skewness the limits know.
    """
    parts = [(sign, part) for sign, square in ((1.0, a), (-1.0, b)) for part in square.parts]
    quadratic = sum(s * t * float((one.covariance(other) ** 2).sum()) for s, one in parts for t, other in parts)
    linear = np.asarray(sum(2 * s * part.along_gaps() for s, part in parts))
    w = np.ones(len(linear)) if weights is None else weights
    share = w / w.sum()
    square, apart = float(linear @ linear), a.value - b.value
    ends = linear[w > 0] / share[w > 0]
    return MeanLimits(
        mean=apart,
        n=int(np.count_nonzero(w)),
        squares=2 * max(quadratic, 0.0) + max(square - 4 * max(quadratic, 0.0), 0.0),
        cubes=float((linear**3).sum()),
        share=float(share.max()),
        lowest=apart + float(ends.min()),
        highest=apart + float(ends.max()),
    )


def roots_apart(squares: Interval, a: Interval, b: Interval) -> Interval:
    """Of a difference of squares, as one of their roots; ``a`` and ``b`` are sure limits of these.

    ``x - y = (x^2 - y^2) / (x + y)``: the larger the roots, the less a difference of squares means. It is zero where that is.

    >>> print(roots_apart(Interval(-0.01, 0.03, 0.95, ""), Interval(0.0, 0.4, 0.999, ""), Interval(0.1, 0.3, 0.999, "")))
    -0.1 to 0.1
    """
    low, high = squares.low, squares.high
    most = _further(b.low if high > 0 else b.high, high)
    least = -_further(a.low if low < 0 else a.high, -low)
    return Interval(least, most, squares.level, "squares without bias")


def _further(root: float, more: float) -> float:
    """How far the root of a square lies above this root, whose square lies so much below it."""
    return float(np.sqrt(max(root**2 + more, 0.0)) - root)


def is_square(estimator: object) -> TypeGuard[Squared]:
    """Whether an estimator is the root of a mean square gap that pairs of rows estimate without bias."""
    if isinstance(estimator, PITError):
        return estimator.distance == "cramer-von-mises"
    return (
        isinstance(estimator, DebiasedECE)
        and (estimator.norm, estimator.method, estimator.singletons) == (2, "pairs", "drop")
        and not estimator.bins.is_adaptive
    )
