"""Faster paths to the moments of ``k(P_i, P_j) <r_i, r_j>`` than tiles; ``NotImplemented`` where none fits.

Sorted: one-dimensional points with few features, O(n log n) in any array library. Compiled: NumPy arrays, and tensors on a
GPU, with the exponential or Gaussian kernel on Euclidean coordinates, O(n^2) at a few nanoseconds a pair, or a few picoseconds.
"""

from importlib import import_module
from typing import Any

import numpy as np

from calibrant._array import detached, namespace, on_gpu
from calibrant._pairwise import Corner, Moments, tiled_corner
from calibrant.distributions.mvnormal import MultivariateNormal
from calibrant.distributions.normal import Normal
from calibrant.estimators.kernel_problem import KernelForm, KernelRows
from calibrant.kernels import Euclidean, Exponential, Gaussian, Kernel
from calibrant.residuals import Residuals
from calibrant.typing import Array

MOST_FEATURES = 6
"""Residuals with more features than this make more products for the sum of squares than sorting saves."""


WIDER = 8
"""How many times the rows of a tile a GPU wants."""


ROOM = 1 << 26
"""Numbers that are multiplied with a kernel matrix on a GPU at a time."""

LEAST = 16
"""Rows of a tile that every GPU must have room for."""


def accelerated_moments(kernel: Kernel, rows: KernelRows, *, alone: bool = False) -> Any:
    """The moments by the best path that fits; ``alone``, in one thread where threads are of the CPU."""
    moments = sorted_moments(kernel, rows)
    return _compiled(kernel, rows, alone=alone) if moments is NotImplemented else moments


def sorted_moments(kernel: Kernel, rows: KernelRows) -> Any:
    """The moments of points on a line."""
    features = _weighted_features(rows)
    return NotImplemented if features is None else _sorted(kernel, rows.coords, features)


def compiled_corner(form: KernelForm, tile: int, a: KernelRows, b: KernelRows | None) -> Corner:
    """The sums over pairs of two panels, or of one with itself, in one thread: compiled where that fits, else in tiles."""
    if b is not None:
        found = _cross(form.on_predictions, a, b)
    else:
        found = _compiled(form.on_predictions, a, alone=True)
        if found is not NotImplemented:
            found = Corner(found.row_sums, None, found.sum_of_squares, found.diagonal)
    if found is not NotImplemented:
        return found
    return _large_tiles(form, tile, a, b) if on_gpu(a.coords) else tiled_corner(form, tile, a, b)


def _large_tiles(form: KernelForm, tile: int, a: KernelRows, b: KernelRows | None) -> Corner:
    """Tiles for a GPU; where it has no room for them, smaller ones."""
    from calibrant._fused.room import in_smaller, room_for

    def corner(size: int) -> Corner:
        return tiled_corner(form, size, a, b)

    with room_for("tiles of pairs", len(a)):
        return in_smaller(corner, WIDER * tile, min(tile, LEAST), "tiles of {:,} rows")


def moments_in_large_tiles(form: KernelForm, tile: int, rows: KernelRows) -> Any:
    """The moments of rows on a GPU that nothing is compiled for, and of those with gradients."""
    if not on_gpu(detached(rows.coords)):
        return NotImplemented
    whole = _large_tiles(form, tile, rows, None)
    return Moments(whole.along, whole.squares, whole.diagonal)


def _weighted_features(rows: KernelRows) -> Any:
    """Residuals as vectors, where they are, times the weights of their rows."""
    features = rows.residuals.features
    return features if features is None or rows.weights is None else features * rows.weights[:, None]


def accelerated_block_sums(kernel: Kernel, rows: KernelRows, size: int) -> Any:
    """Sums over pairs within consecutive blocks of so many rows, for explicit residuals on a GPU."""
    features, law = rows.residuals.features, compiled_law(kernel)
    if features is None or law is None or rows.weights is not None or not on_gpu(rows.coords, features):
        return NotImplemented
    from calibrant._fused.cuda import block_sums

    return block_sums(rows.coords, features, *law, size)


def accelerated_product(kernel: Kernel, coords: Array) -> Any:
    """``K @ v`` as a function of v ``(n, q)``, both on the GPU where the points are."""
    law = compiled_law(kernel)
    if law is None or not on_gpu(coords):
        return NotImplemented
    from calibrant._fused.cuda import matmul

    return lambda v: matmul(coords, v, *law)


def accelerated_matmul(kernel: Kernel, rows: KernelRows, v: Array) -> Any:
    """``H @ v`` for explicit residuals on a GPU: ``sum_a r_a * K (r_a * v)`` over their features a."""
    features, product = _weighted_features(rows), accelerated_product(kernel, rows.coords)
    if features is None or product is NotImplemented or not on_gpu(features, v):
        return NotImplemented
    xp, (n, q) = namespace(features), features.shape

    def some(columns: Array) -> Array:
        met = product(xp.reshape(features[:, :, None] * columns[:, None, :], (n, -1)))
        return xp.sum(features[:, :, None] * xp.reshape(met, (n, q, -1)), axis=1)

    step = max(1, ROOM // (n * q))
    return xp.concat([some(v[:, i : i + step]) for i in range(0, v.shape[1], step)], axis=1)


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


def compiled_law(kernel: Kernel) -> tuple[float, bool] | None:
    """Length scale and shape (Gaussian or not) of a kernel on predictions that is compiled."""
    if not isinstance(kernel, Gaussian | Exponential) or not isinstance(kernel.metric, Euclidean):
        return None
    if isinstance(kernel, Exponential) and kernel.power != 1:
        return None
    return kernel.unit, isinstance(kernel, Gaussian)


def _library(*arrays: Array) -> Any:
    """The module of compiled code for where the arrays are; ``None`` where there is none."""
    if on_gpu(*arrays):
        return import_module("calibrant._fused.cuda")
    return import_module("calibrant._fused.cpu") if all(isinstance(x, np.ndarray) for x in arrays) else None


def _compiled(kernel: Kernel, rows: KernelRows, *, alone: bool = False) -> Any:
    """Explicit residuals, or normal predictions; ``alone``, in one thread where threads are of the CPU."""
    features, law = _weighted_features(rows), compiled_law(kernel)
    threads = {"threads": 1} if alone and isinstance(rows.coords, np.ndarray) else {}
    if features is None:
        return _normal(kernel, rows, threads)
    library = _library(rows.coords, features)
    if law is None or library is None:
        return NotImplemented
    sums, squares = library.feature_moments(rows.coords, features, *law, **threads)
    xp = namespace(features)
    return Moments(sums, xp.asarray(squares), xp.sum(features * features, axis=1))


def _cross(kernel: Kernel, a: KernelRows, b: KernelRows) -> Any:
    """The sums over pairs of two panels."""
    law, target = compiled_law(kernel), _gaussian_target(a)
    left, right = ((rows.coords, *(_columns(rows) or ())) for rows in (a, b))
    if law is None or len(left) == 1 or len(left) != len(right):
        return NotImplemented
    library = _library(*left, *right)
    if library is None:
        return NotImplemented
    if a.residuals.features is not None:
        along, down, squares = library.feature_cross(left, right, *law)
    elif target is None:
        return NotImplemented
    else:
        along, down, squares = library.normal_cross(left, right, *law, target.unit)
    return Corner(along, down, namespace(along).asarray(2 * squares))


def _columns(rows: KernelRows) -> tuple[Array, ...] | None:
    """What compiled code knows of residuals: features, or those of normal predictions."""
    features = _weighted_features(rows)
    return _isotropic(rows.residuals) if features is None else (features,)


def _gaussian_target(rows: KernelRows) -> Gaussian | None:
    """The Gaussian kernel on targets of rows without weights."""
    target = rows.residuals.kernel
    return target if rows.weights is None and isinstance(target, Gaussian) and target.is_euclidean else None


def _normal(kernel: Kernel, rows: KernelRows, threads: dict[str, int]) -> Any:
    """Normal predictions, in several dimensions with one spread for all, and a Gaussian kernel on targets."""
    target, normals = _gaussian_target(rows), _isotropic(rows.residuals)
    if normals is None or target is None:
        return NotImplemented
    law, library = compiled_law(kernel), _library(rows.coords, *normals)
    if law is None or library is None:
        return NotImplemented
    sums, squares = library.normal_moments(rows.coords, *normals, *law, target.unit, **threads)
    mu, scale, y = normals
    xp = namespace(mu)
    half, variance = mu.shape[1] / 2, (scale / target.unit) ** 2
    distance = xp.sum(((mu - y) / target.unit) ** 2, axis=1)
    cross = xp.exp(-0.5 * distance / (1 + variance)) / (1 + variance) ** half
    return Moments(sums, xp.asarray(squares), 1 - 2 * cross + (1 + 2 * variance) ** -half)


def _isotropic(residuals: Residuals) -> tuple[Array, Array, Array] | None:
    """Means ``(n, d)``, standard deviations ``(n,)`` and targets ``(n, d)`` of normal predictions that have them."""
    points, spread = residuals.points, residuals.spread
    if isinstance(spread, Normal) and isinstance(points, Normal):
        return spread.loc[:, None], spread.scale, points.loc[:, None]
    if not isinstance(spread, MultivariateNormal) or not isinstance(points, MultivariateNormal):
        return None
    scale: Any = spread.scale
    is_here = isinstance(scale, np.ndarray) or on_gpu(scale)
    if not is_here or bool(namespace(scale).any(scale != scale[:, :1])):
        return None
    return spread.loc, scale[:, 0], points.loc
