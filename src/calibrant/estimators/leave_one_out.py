"""The bandwidth that needs no choice: the likeliest, unless it would smooth calibration itself away."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import pdist

from calibrant._array import as_double, namespace, to_numpy
from calibrant.distributions.base import matched
from calibrant.estimators.dirichlet import (
    FEW,
    DirichletRows,
    log_sums,
    smoothed,
    weight_panels,
    weights_of_tensors,
)
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

BALANCED = 200
"""Predictions at which the smoothing of a calibrated model is compared with its noise."""

WORTHWHILE = 0.95
"""Another bandwidth is taken where it has at most this part of the squared error of the likeliest."""

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
    thousand judges are thinned. O(n K) for each bandwidth tried, some thirty, on the GPU where the points are. Duin (1976).

    Predictions that are spread evenly are likeliest under the widest kernels, which flatten every regression: a calibrated
    model would then look far from calibrated. Where the frequencies of a calibrated model, ``sum_i w_ji f_i``, would be
    smoothed away from its predictions by more than their noise, ``sum_i w_ji^2 f_i (1 - f_i)`` in squares, the bandwidth is
    the one at which both together are least, and a note says so. It depends on the predictions alone.

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
    share = np.bincount(which.ravel(), None if weights is None else weights**2) / mass**2
    balanced = _balanced(different, mass, share, judges[seen][:BALANCED], value)
    notes = (
        [] if balanced is None else [f"the likeliest bandwidth, {value:.2g}, would make a calibrated model look wrong"]
    )
    if tied := len(host) - len(singles):
        part = "do not choose the bandwidth" if len(singles) >= FEWEST else "are left out together with them"
        notes.append(f"{tied:,} rows have copies and {part}")
    return Bandwidth(value if balanced is None else balanced, "; ".join(notes) or None)


def _balanced(values: Array, mass: np.ndarray, share: np.ndarray, chosen: np.ndarray, likeliest: float) -> float | None:
    """The bandwidth of least squared error of calibrated frequencies; ``None`` where the likeliest smooths less than it is noisy.

    ``share`` is the part of a value's variance that is left when its copies are averaged.
    """
    points = as_double(values)
    variance = namespace(points).sum(points * (1 - points), axis=1)
    spread = (matched(share, points) * variance)[:, None]
    own = matched(chosen, points)

    def errors(bandwidth: float) -> tuple[float, float]:
        rows = DirichletRows.of(points, bandwidth, mass)
        mean, noise = _calibrated(rows, points, spread, chosen)
        return float(((mean - points[own]) ** 2).sum()), float(noise.sum())

    smoothing, noise = errors(likeliest)
    if smoothing <= noise:
        return None
    best = min(_maximum(lambda h: -sum(errors(h))), likeliest)
    return best if sum(errors(best)) <= WORTHWHILE * (smoothing + noise) else None


def _calibrated(rows: DirichletRows, points: Array, spread: Array, chosen: np.ndarray) -> tuple[Array, Array]:
    """Frequencies of a calibrated model around some rows, ``(m, K)``, and the sums of their variances, ``(m, 1)``."""
    if not isinstance(points, np.ndarray):
        weights = weights_of_tensors(rows, matched(chosen, points))
        return weights @ points, weights**2 @ spread
    if len(rows) > FEW:
        local = smoothed(rows, points, spread, chosen)
        return local.mean, local.mean_of_squares
    weights = np.concatenate([weights for _, weights in weight_panels(rows, chosen)])
    return weights @ points, weights**2 @ spread


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
