"""Faster paths to the moments of ``k(P_i, P_j) <r_i, r_j>`` than tiles; ``NotImplemented`` where none fits.

Sorted: one-dimensional points with few features, O(n log n) in any array library. Compiled: NumPy arrays with the exponential
or Gaussian kernel on Euclidean coordinates, O(n^2) at a few nanoseconds a pair.
"""

from typing import Any

import numpy as np

from calibrant._array import namespace
from calibrant._pairwise import Moments
from calibrant.distributions.normal import Normal
from calibrant.estimators.kernel_problem import KernelRows
from calibrant.kernels import Euclidean, Exponential, Gaussian, Kernel
from calibrant.typing import Array

FEW = 2000
"""Up to so many rows tiles take a fraction of a second, less than it takes to load the compiled code."""

MOST_FEATURES = 6
"""Residuals with more features than this make more products for the sum of squares than sorting saves."""


def accelerated_moments(kernel: Kernel, rows: KernelRows) -> Any:
    """The moments by the best path that fits."""
    if len(rows) <= FEW:
        return NotImplemented
    features = rows.residuals.features
    if features is None:
        return _normal(kernel, rows)
    if rows.weights is not None:
        features = features * rows.weights[:, None]
    moments = _sorted(kernel, rows.coords, features)
    return _compiled(kernel, rows.coords, features) if moments is NotImplemented else moments


def _sorted(kernel: Kernel, coords: Array, features: Array) -> Any:
    """Running sums over the sorted points; the squared inner products are those of all products of two features."""
    q = features.shape[1]
    if coords.shape[1] != 1 or q > MOST_FEATURES:
        return NotImplemented
    xp = namespace(coords, features)
    order = xp.argsort(coords[:, 0])
    x, r = xp.take(coords[:, 0], order), xp.take(features, order, axis=0)
    first = kernel.product(x, r, diagonal=False)
    if first is NotImplemented:
        return NotImplemented
    pairs = [(a, b) for a in range(q) for b in range(a, q)]
    twofold = xp.stack([(1.0 if a == b else 2**0.5) * r[:, a] * r[:, b] for a, b in pairs], axis=1)
    second = kernel.product(x, twofold, diagonal=False, power=2)
    if second is NotImplemented:
        return NotImplemented
    diagonal = kernel.diagonal(coords) * xp.sum(features * features, axis=1)
    return Moments(_unsorted(xp.sum(r * first, axis=1), order), xp.sum(twofold * second), diagonal)


def _unsorted(values: Array, order: Array) -> Array:
    """Values in the order from before sorting."""
    if isinstance(values, np.ndarray):
        out = np.empty_like(values)
        out[order] = values
        return out
    xp = namespace(values, order)
    return xp.take(values, xp.argsort(order))


def _law(kernel: Kernel, *arrays: Array) -> tuple[float, bool] | None:
    """Length scale and shape (Gaussian or not) of a compiled kernel on predictions, for NumPy arrays."""
    if not isinstance(kernel, Gaussian | Exponential) or not isinstance(kernel.metric, Euclidean):
        return None
    if isinstance(kernel, Exponential) and kernel.power != 1:
        return None
    return (kernel.unit, isinstance(kernel, Gaussian)) if all(isinstance(a, np.ndarray) for a in arrays) else None


def _compiled(kernel: Kernel, coords: Array, features: Array) -> Any:
    """Explicit residuals."""
    law = _law(kernel, coords, features)
    if law is None:
        return NotImplemented
    from calibrant._fused.cpu import feature_moments

    sums, squares = feature_moments(coords, features, *law)
    return Moments(sums, np.float64(squares), np.sum(features * features, axis=1))


def _normal(kernel: Kernel, rows: KernelRows) -> Any:
    """Normal predictions with a Gaussian kernel on targets."""
    residuals = rows.residuals
    points, spread, target = residuals.points, residuals.spread, residuals.kernel
    if not isinstance(points, Normal) or not isinstance(spread, Normal) or rows.weights is not None:
        return NotImplemented
    if not isinstance(target, Gaussian) or not isinstance(target.metric, Euclidean):
        return NotImplemented
    arrays = rows.coords, spread.loc, spread.scale, points.loc
    law = _law(kernel, *arrays)
    if law is None:
        return NotImplemented
    from calibrant._fused.cpu import normal_moments

    sums, squares = normal_moments(*arrays, *law, target.unit)
    variance, distance = (spread.scale / target.unit) ** 2, (spread.loc - points.loc) / target.unit
    cross = np.exp(-0.5 * distance**2 / (1 + variance)) / np.sqrt(1 + variance)
    return Moments(sums, np.float64(squares), 1 - 2 * cross + 1 / np.sqrt(1 + 2 * variance))
