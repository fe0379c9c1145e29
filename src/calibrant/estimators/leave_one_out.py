"""The bandwidth that needs no choice: under which each prediction is most likely, given the others."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import pdist

from calibrant._array import to_numpy
from calibrant.distributions.base import matched
from calibrant.estimators.dirichlet import DirichletRows, log_sums
from calibrant.kernels.bandwidth import thinned, where_they_are
from calibrant.typing import Array

LEAST, MOST = 1e-5, 1.0
"""Bandwidths that are considered."""

GRID = 16
"""Bandwidths on the first, logarithmic grid."""

PRECISION = 0.01
"""Relative error of the bandwidth found."""

JUDGES = 1000
"""Predictions whose likelihood decides; all others still take part in the density."""

FEWEST = 20
"""Different predictions that are needed to judge."""

EDGE = 0.9
"""From this part of the widest bandwidth on, the likelihood has not been seen to fall."""

GOLDEN = (5**0.5 - 1) / 2


class Bandwidth(NamedTuple):
    """A bandwidth, and what a reader must know of it."""

    value: float
    note: str | None = None


def likeliest_bandwidth(points: Array, weights: np.ndarray | None = None) -> Bandwidth:
    """The bandwidth that maximises ``sum_j log sum_{i != j} k(f_j; f_i)`` for points ``(n, K)`` of the simplex.

    The best of a grid, refined by golden section. Predictions with copies would be the more likely the narrower the
    kernel, without end: they do not judge, and where all have copies, each is left out with its copies. Predictions of
    fewer than twenty values need no smoothing: the kernel is made too narrow to reach from one to the next. More than a
    thousand judges are thinned. Predictions that are spread evenly have no likeliest bandwidth, and get the widest, with a
    note. O(n K) for each bandwidth tried, some thirty, on the GPU where the points are. Duin (1976).

    >>> rng = np.random.default_rng(0)
    >>> round(likeliest_bandwidth(rng.dirichlet([8, 3, 2], 500)).value, 3)
    0.015
    """
    there, host = where_they_are(points), to_numpy(points)
    if weights is not None:
        host, weights = host[weights > 0], weights[weights > 0]
    values, which, copies = np.unique(host, axis=0, return_inverse=True, return_counts=True)
    if len(values) < min(FEWEST, len(host)):
        return _few(values)
    mass = np.bincount(which.ravel(), weights)
    singles = np.flatnonzero(copies == 1)
    candidates = singles if len(singles) >= FEWEST else np.arange(len(values))
    judges = candidates[thinned(values[candidates])[:JUDGES]]

    different = matched(values, there)

    def likelihood(bandwidth: float) -> np.ndarray:
        return log_sums(DirichletRows.of(different, bandwidth, mass), judges)

    seen = np.isfinite(likelihood(MOST))  # a prediction alone on its face of the simplex is never likely
    if not seen.any():
        return Bandwidth(MOST, "no prediction shares the zeros of another: none has neighbours")
    value = _maximum(lambda h: float(np.average(likelihood(h)[seen], weights=mass[judges][seen])))
    if value > EDGE * MOST:
        return Bandwidth(MOST, "predictions are too even to choose a bandwidth: this is the widest")
    tied = len(host) - len(singles)
    part = "do not choose the bandwidth" if len(singles) >= FEWEST else "are left out together with them"
    return Bandwidth(value, f"{tied:,} rows have copies and {part}" if tied else None)


def _few(values: np.ndarray) -> Bandwidth:
    """Kernels, whose standard deviation is at most ``sqrt(h) / 2``, that end before the nearest other value."""
    if len(values) == 1:
        return Bandwidth(MOST)
    gap = float(pdist(values, "chebyshev").min())
    return Bandwidth(float(np.clip((gap / 4) ** 2, LEAST, MOST)), "the bandwidth keeps the few values apart")


def _maximum(objective: Callable[[float], float]) -> float:
    """The best of the grid, then golden section between its neighbours, on the logarithmic scale."""
    grid = np.linspace(np.log(LEAST), np.log(MOST), GRID)
    best = int(np.argmax([objective(np.exp(u)) for u in grid]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, GRID - 1)]
    a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_a, at_b = objective(np.exp(a)), objective(np.exp(b))
    while high - low > PRECISION:
        if at_a >= at_b:
            high, b, at_b = b, a, at_a
            a = high - GOLDEN * (high - low)
            at_a = objective(np.exp(a))
        else:
            low, a, at_a = a, b, at_b
            b = low + GOLDEN * (high - low)
            at_b = objective(np.exp(b))
    return float(np.exp((low + high) / 2))
