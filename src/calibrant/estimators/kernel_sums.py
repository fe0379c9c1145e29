"""Means of ``h_ij`` over pairs of rows, with their standard errors."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from calibrant._array import is_traced, namespace, to_numpy
from calibrant._pairwise import CALL, Moments, Pairwise, moments_of_panels
from calibrant._tasks import check_plain, elsewhere, mapping, pieces, sharing
from calibrant._validate import InputError
from calibrant.estimators.accelerated import (
    accelerated_block_sums,
    accelerated_moments,
    compiled_corner,
    moments_in_large_tiles,
    sorted_moments,
)
from calibrant.estimators.kernel_problem import KernelForm, KernelRows
from calibrant.typing import Array, Engine

FEW = 2000
"""Up to so many rows tiles take a fraction of a second, less than it takes to load the compiled code."""


def all_pairs(
    form: KernelForm, rows: KernelRows, *, unbiased: bool, few: int | None = None, engine: Engine | None = None
) -> tuple[Array, "PairSpread | None"]:
    """The mean over pairs with its spread; more than ``few`` rows take the faster paths."""
    moments, n = moments_of(form, rows, FEW if few is None else few, engine), len(rows)
    if not unbiased:
        xp = namespace(moments.diagonal)
        return (moments.total + xp.sum(moments.diagonal)) / n**2, spread_of_pairs(moments, n)
    pairs = float(n * (n - 1))
    if rows.weights is not None:
        pairs = n**2 - float(namespace(rows.weights).sum(rows.weights**2))
    if pairs <= 0:
        raise InputError("sample_weight leaves a single row: the unbiased SKCE needs two")
    return moments.total / pairs, spread_of_pairs(moments, n)


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
        return fused
    if elsewhere(engine) is None:
        return _sums_of_blocks(form, size, rows)
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
    if size <= FEW:
        return Pairwise(form, rows, min(size, tile_of(rows))).block_sums(size)
    blocks = [rows[i * size : (i + 1) * size] for i in range(len(rows) // size)]
    totals = [moments_of(form, block, FEW, alone=alone).total for block in blocks]
    return namespace(totals[0]).stack(totals)


def moments_of(
    form: KernelForm, rows: KernelRows, few: int = FEW, engine: Engine | None = None, *, alone: bool = False
) -> Moments:
    """The moments of all pairs; more than ``few`` rows take the faster paths. Points on a line need no engine.

    Without one, all threads of compiled code take part, or one ``alone``.
    """
    tile, is_long, engine = tile_of(rows), len(rows) > few, elsewhere(engine)
    moments = NotImplemented
    if is_long:
        kernel = form.on_predictions
        moments = accelerated_moments(kernel, rows, alone=alone) if engine is None else sorted_moments(kernel, rows)
    if moments is not NotImplemented:
        return moments
    if engine is not None:
        check_plain(rows.coords)
    if engine is not None and is_long:
        return moments_of_panels(partial(compiled_corner, form, tile), rows, tile, engine)
    if engine is None:
        moments = moments_in_large_tiles(form, tile, rows)
    return Pairwise(form, rows, tile, engine).moments() if moments is NotImplemented else moments


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
    row_squares = float(sums @ sums)
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
