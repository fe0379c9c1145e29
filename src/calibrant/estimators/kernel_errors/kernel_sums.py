"""Means of ``h_ij = k(P_i, P_j) <r_i, r_j>`` over pairs of rows, with their standard errors.

Paths that are faster than tiles give ``NotImplemented`` where they do not fit. Sorted: one-dimensional points with few
features, O(n log n) in any array library. Compiled: NumPy arrays, and tensors on a GPU, with the exponential or Gaussian
kernel on Euclidean coordinates, O(n^2) at a few nanoseconds per pair, or a few picoseconds.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from calibrant._array import detached, is_traced, namespace, on_gpu, to_numpy
from calibrant._compiled.choice import (
    BY_ENGINE,
    NOT_COMPILED,
    ON_GPU,
    PLAIN,
    SORTED,
    compiled_loop,
    is_long,
    library_of,
    tell,
    threads_for,
)
from calibrant._pairwise import CALL, TILE, Corner, Moments, Pairwise, moments_of_panels, tiled_corner
from calibrant._tasks import check_plain, elsewhere, mapping, pieces, sharing
from calibrant._validate import InputError
from calibrant.distributions.continuous.location_scale import Normal
from calibrant.distributions.multivariate import MultivariateNormal
from calibrant.estimators.kernel_errors.kernel_problem import KernelForm, KernelRows, weight_of_pairs
from calibrant.kernels import Euclidean, Exponential, Gaussian, Kernel
from calibrant.residuals.embedding import Residuals
from calibrant.typing import Array, Engine


def all_pairs(
    form: KernelForm, rows: KernelRows, *, unbiased: bool, few: int | None = None, engine: Engine | None = None
) -> tuple[Array, "PairSpread | None"]:
    """The mean over pairs with its spread; more than ``few`` rows take the faster paths."""
    moments, n = moments_of(form, rows, few, engine), len(rows)
    if not unbiased:
        xp = namespace(moments.diagonal)
        return (moments.total + xp.sum(moments.diagonal)) / n**2, spread_of_pairs(moments, n)
    squares = n if rows.weights is None else float(namespace(rows.weights).sum(rows.weights**2))
    return moments.total / weight_of_pairs(squares, n), spread_of_pairs(moments, n)


def block_mean(
    form: KernelForm, rows: KernelRows, size: int, engine: Engine | None = None
) -> tuple[Array, np.ndarray | None, tuple[str, ...]]:
    """The mean of the U-statistics of consecutive blocks, these themselves where there are several, and notes."""
    n = len(rows)
    notes = notes_on_blocks(n, size)
    if rows.weights is not None:
        raise InputError("block takes no sample_weight: blocks are of equal weight")
    means = block_sums(form, rows, size, engine) / (size * (size - 1))
    several = means.shape[0] > 1 and not is_traced(means)
    return namespace(means).mean(means), to_numpy(means).astype(np.float64) if several else None, notes


def notes_on_blocks(n: int, size: int) -> tuple[str, ...]:
    """What is to be said of n rows in blocks of a size; fewer rows than one block are refused."""
    if size > n:
        raise InputError(f"block must not exceed the number of rows, {n:,}; got {size:,}")
    left_out = n % size
    return (f"the last {left_out:,} rows do not fill a block of {size:,} and are left out",) if left_out else ()


def block_sums(form: KernelForm, rows: KernelRows, size: int, engine: Engine | None = None) -> Array:
    """Sums over the pairs of each complete block, ``(n / size,)``: of large ones by the best path, of small ones in tiles.

    A task of an engine is some consecutive blocks, as many as small ones share a tile or more, so that no digit changes.
    """
    fused = accelerated_block_sums(form.on_predictions, rows, size)
    if fused is not NotImplemented:
        tell(ON_GPU)
        return fused
    if elsewhere(engine) is None:
        return _sums_of_blocks(form, size, rows)
    tell(BY_ENGINE)
    check_plain(rows.coords)
    some = pieces(len(rows) // size * size, max(CALL // size, 1) * size)
    tasks = [sharing(engine)(rows[cut]) for cut in some]  # which devices of a pool are given
    parts = list(mapping(engine)(partial(_task_of_blocks, form, size), tasks))
    return namespace(parts[0]).concat(parts)


def _task_of_blocks(form: KernelForm, size: int, rows: KernelRows) -> Array:
    """What a worker does with its rows, in one thread; on a GPU if the rows came there."""
    fused = accelerated_block_sums(form.on_predictions, rows, size)
    return _sums_of_blocks(form, size, rows, alone=True) if fused is NotImplemented else fused


def _sums_of_blocks(form: KernelForm, size: int, rows: KernelRows, *, alone: bool = False) -> Array:
    if not is_long(size):
        tell(PLAIN)
        return Pairwise(form, rows, min(size, tile_of(rows))).block_sums(size)
    blocks = [rows[i * size : (i + 1) * size] for i in range(len(rows) // size)]
    totals = [moments_of(form, block, alone=alone).total for block in blocks]
    return namespace(totals[0]).stack(totals)


def moments_of(
    form: KernelForm, rows: KernelRows, few: int | None = None, engine: Engine | None = None, *, alone: bool = False
) -> Moments:
    """The moments of all pairs; more than ``few`` rows take the faster paths. Points on a line need no engine.

    Without one, all threads of compiled code take part, or one ``alone``.
    """
    tile, are_many, engine = tile_of(rows), is_long(len(rows), few), elsewhere(engine)
    if are_many:
        kernel = form.on_predictions
        moments = accelerated_moments(kernel, rows, alone=alone) if engine is None else sorted_moments(kernel, rows)
        if moments is not NotImplemented:
            return moments
    tell((NOT_COMPILED if are_many else PLAIN) if engine is None else BY_ENGINE)
    if engine is None:
        moments = moments_in_large_tiles(form, tile, rows)
        return Pairwise(form, rows, tile).moments() if moments is NotImplemented else moments
    check_plain(rows.coords)
    if are_many:
        panel = TILE if is_compiled(form.on_predictions, rows) else tile
        return moments_of_panels(partial(compiled_corner, form, tile), rows, panel, engine)
    return Pairwise(form, rows, tile, engine).moments()


@dataclass(frozen=True)
class PairSpread:
    """Both Hoeffding terms of the variance of a mean over pairs of rows, each without bias but never below zero.

    ``first`` is the variance of what one row adds, ``4 (n - 2) / (n (n - 1)) Var E[h | row]``, which vanishes for calibrated
    models; ``second`` is ``2 / (n (n - 1)) Var h``.
    """

    first: float
    second: float

    @property
    def standard_error(self) -> float:
        """The root of both. Next to calibration it is about a third too large rather than too small."""
        return float(np.sqrt(self.first + self.second))


def spread_of_pairs(moments: Moments, n: int) -> PairSpread | None:
    """From sums over pairs; none for fewer than four rows, or while gradients are traced."""
    if n < 4 or is_traced(moments.row_sums):
        return None
    sums = to_numpy(moments.row_sums).astype(np.float64)
    squares, total = float(to_numpy(moments.sum_of_squares)), sums.sum()
    row_squares = float((sums * sums).sum())  # a product of BLAS has other digits with other threads
    one_shared = (row_squares - squares) / (n * (n - 1) * (n - 2))
    none_shared = (total**2 - 4 * row_squares + 2 * squares) / (n * (n - 1) * (n - 2) * (n - 3))
    first, second = one_shared - none_shared, squares / (n * (n - 1)) - none_shared
    return PairSpread(4 * (n - 2) * max(first, 0.0) / (n * (n - 1)), 2 * max(second, 0.0) / (n * (n - 1)))


def tile_of(rows: KernelRows) -> int:
    """Rows of a tile: fewer where the inner product of one pair takes much memory."""
    spread = rows.residuals.spread
    members = getattr(spread, "members", None)
    if members is not None:
        return max(1, 2048 // int(members.shape[1]))
    covariance = getattr(spread, "covariance", None)
    return 512 if covariance is None else max(16, 256 // int(covariance.shape[1]))


MAX_WIDTH = 6
"""Residuals with more features than this make more products for the sum of squares than sorting saves."""


WIDER = 8
"""How many times the rows of a tile a GPU wants."""


MAX_NUMBERS = 1 << 26
"""Numbers that are multiplied with a kernel matrix on a GPU at a time."""

MIN_TILE = 16
"""Rows of a tile that every GPU must have memory for."""


def accelerated_moments(kernel: Kernel, rows: KernelRows, *, alone: bool = False) -> Any:
    """The moments by the best path that fits; ``alone``, in one thread where threads are of the CPU."""
    moments = sorted_moments(kernel, rows)
    if moments is not NotImplemented or not is_compiled(kernel, rows):
        return moments
    tell(compiled_loop(rows.coords))
    if on_gpu(rows.coords):
        return _own_pairs(kernel, rows)
    # The panels and their order are those of engines, so that digits are, too.
    work, threads = partial(compiled_corner, KernelForm(kernel), TILE), 1 if alone else threads_for(len(rows) ** 2)
    if threads == 1:
        return moments_of_panels(work, rows, TILE, None)
    with ThreadPoolExecutor(threads) as pool:
        return moments_of_panels(work, rows, TILE, pool)


def sorted_moments(kernel: Kernel, rows: KernelRows) -> Any:
    """The moments of points on a line."""
    features = _weighted_features(rows)
    moments = NotImplemented if features is None else _sorted(kernel, rows.coords, features)
    if moments is not NotImplemented:
        tell(SORTED)
    return moments


def compiled_corner(form: KernelForm, tile: int, a: KernelRows, b: KernelRows | None) -> Corner:
    """The sums over pairs of two panels, or of one with itself, in one thread: compiled where that fits, else in tiles."""
    kernel = form.on_predictions
    if not all(is_compiled(kernel, rows) for rows in (a, b) if rows is not None):
        return _large_tiles(form, tile, a, b) if on_gpu(a.coords) else tiled_corner(form, tile, a, b)
    if b is not None:
        return _cross(kernel, a, b)
    own = _own_pairs(kernel, a)
    return Corner(own.row_sums, None, own.sum_of_squares, own.diagonal)


def _large_tiles(form: KernelForm, tile: int, a: KernelRows, b: KernelRows | None) -> Corner:
    """Tiles for a GPU; where it has no memory for them, smaller ones."""
    from calibrant._compiled.cuda_memory import in_smaller, memory_for

    def corner(size: int) -> Corner:
        return tiled_corner(form, size, a, b)

    with memory_for("tiles of pairs", len(a)):
        return in_smaller(corner, WIDER * tile, min(tile, MIN_TILE), "tiles of {:,} rows")


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
    from calibrant._compiled.cuda import block_sums

    return block_sums(rows.coords, features, *law, size)


def accelerated_product(kernel: Kernel, coords: Array) -> Any:
    """``K @ v`` as a function of v ``(n, q)``, both on the GPU where the points are."""
    law = compiled_law(kernel)
    if law is None or not on_gpu(coords):
        return NotImplemented
    from calibrant._compiled.cuda import matmul

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

    step = max(1, MAX_NUMBERS // (n * q))
    return xp.concat([some(v[:, i : i + step]) for i in range(0, v.shape[1], step)], axis=1)


def _sorted(kernel: Kernel, coords: Array, features: Array) -> Any:
    """Running sums over the sorted points; the squared inner products are those of all products of two features."""
    q = features.shape[1]
    if coords.shape[1] != 1 or q > MAX_WIDTH:
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


def is_compiled(kernel: Kernel, rows: KernelRows) -> bool:
    """Whether sums over the pairs of these rows are compiled: of explicit residuals, and of normal predictions."""
    columns = _columns(rows)
    if columns is None or compiled_law(kernel) is None or library_of(rows.coords, *columns) is None:
        return False
    return rows.residuals.features is not None or _gaussian_target(rows) is not None


def _settings(kernel: Kernel, rows: KernelRows) -> tuple[str, tuple[float, ...]]:
    """What compiled code is about, and its length scales and shape."""
    law: tuple[float, ...] = compiled_law(kernel) or ()
    target = _gaussian_target(rows)
    return (
        ("feature", law) if rows.residuals.features is not None or target is None else ("normal", (*law, target.unit))
    )


def _own_pairs(kernel: Kernel, rows: KernelRows) -> Moments:
    """The moments of the pairs of rows that something is compiled for, in one thread."""
    columns, (kind, law) = _columns(rows) or (), _settings(kernel, rows)
    sums, squares = getattr(library_of(rows.coords, *columns), f"{kind}_moments")(rows.coords, *columns, *law)
    xp = namespace(sums)
    diagonal = xp.sum(columns[0] ** 2, axis=1) if kind == "feature" else _diagonal_of_normals(columns, law[-1])
    return Moments(sums, xp.asarray(squares), diagonal)


def _cross(kernel: Kernel, a: KernelRows, b: KernelRows) -> Corner:
    """The sums over pairs of two panels that something is compiled for."""
    left, right = ((rows.coords, *(_columns(rows) or ())) for rows in (a, b))
    kind, law = _settings(kernel, a)
    along, down, squares = getattr(library_of(*left, *right), f"{kind}_cross")(left, right, *law)
    return Corner(along, down, namespace(along).asarray(2 * squares))


def _columns(rows: KernelRows) -> tuple[Array, ...] | None:
    """What compiled code knows of residuals: features, or those of normal predictions."""
    features = _weighted_features(rows)
    return _isotropic(rows.residuals) if features is None else (features,)


def _gaussian_target(rows: KernelRows) -> Gaussian | None:
    """The Gaussian kernel on targets of rows without weights."""
    target = rows.residuals.kernel
    return target if rows.weights is None and isinstance(target, Gaussian) and target.is_euclidean else None


def _diagonal_of_normals(normals: tuple[Array, ...], unit: float) -> Array:
    """``<r_i, r_i>`` for a Gaussian kernel on targets of this length scale."""
    mu, scale, y = normals
    xp = namespace(mu)
    half, variance = mu.shape[1] / 2, (scale / unit) ** 2
    distance = xp.sum(((mu - y) / unit) ** 2, axis=1)
    cross = xp.exp(-0.5 * distance / (1 + variance)) / (1 + variance) ** half
    return 1 - 2 * cross + (1 + 2 * variance) ** -half


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
