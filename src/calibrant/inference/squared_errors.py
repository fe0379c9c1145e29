"""How far the binned calibration errors of two models of the same targets lie apart, near calibration and far from it."""

from dataclasses import dataclass
from typing import TypeAlias, TypeGuard

import numpy as np

from calibrant.distributions.base import Distribution
from calibrant.estimators.binned.debiased import BinWeights, DebiasedECE
from calibrant.estimators.mean_limits import MeanLimits
from calibrant.results import Interval
from calibrant.typing import Array

Rows: TypeAlias = tuple[Array, Distribution, np.ndarray | None]
"""Targets, predictions and weights."""

SURE = 0.999
"""The confidence of the limits of single errors, by which a difference of squares is told as one of roots."""


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

    def covariance(self, other: "CellNoise") -> np.ndarray:
        """Of the gaps of two events, ``(cells, cells)``: rows are in both."""
        shape = len(self.gaps), len(other.gaps)
        both = self.cell * shape[1] + other.cell
        return np.bincount(both, weights=self.noise * other.noise, minlength=shape[0] * shape[1]).reshape(shape)


def squares_apart(error: DebiasedECE, a: Rows, b: Rows) -> MeanLimits:
    """Limits of the difference of the mean square gaps of two models, ``a - b``.

    Each square comes without bias from pairs of rows: it is ``x' x`` of gaps x with noise of covariance C, less the trace of C. So
    with signs S of the models the difference is ``x' S x`` less ``tr S C``, and its variance ``2 tr S C S C + 4 m' S C S m``,
    m being the true gaps. The second part vanishes where both are calibrated, and the first where both err much; neither is
    left out. What the second seems to be is too large by ``4 tr S C S C`` on average, which is taken off. It is a mean over
    rows, whose skewness the limits know.
    """
    parts = [(1.0, column) for column in CellNoise.of(error, a)] + [(-1.0, column) for column in CellNoise.of(error, b)]
    quadratic = sum(s * t * float((one.covariance(other) ** 2).sum()) for s, one in parts for t, other in parts)
    linear = sum(2 * s * one.gaps[one.cell] * one.noise for s, one in parts)
    assert isinstance(linear, np.ndarray)
    w = np.ones(len(linear)) if a[2] is None else a[2]
    share = w / w.sum()
    square = float(linear @ linear)
    apart = sum(s * _square(error, rows) for s, rows in ((1.0, a), (-1.0, b)))
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


def _square(error: DebiasedECE, rows: Rows) -> float:
    root = float(error.estimate(*rows))
    return float(np.sign(root) * root**2)


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


def is_square(estimator: object) -> TypeGuard[DebiasedECE]:
    """Whether an estimator is the root of a mean square without bias, of bins that do not depend on what happened."""
    return (
        isinstance(estimator, DebiasedECE)
        and (estimator.norm, estimator.method, estimator.singletons) == (2, "pairs", "drop")
        and not estimator.bins.is_adaptive
    )
