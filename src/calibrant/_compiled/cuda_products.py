"""Triton: the same sums over one triangle of all pairs, by products of matrices on tensor cores.

Squared distances are ``|x_i|^2 + |x_j|^2 - 2 <x_i, x_j>``. Each number is the sum of two that tensor cores multiply exactly,
and three of the four products of those are added up (:func:`calibrant._compiled.cuda_memory.in_three`). Distances of rows that
nearly coincide lose digits: about ``1e-3`` of the length of the coordinates is left of a distance of zero.

A block of columns stays and rows pass by: what one thread holds is a few rows by many columns, so that sums along rows are
cheap in every turn, and those along columns are kept.
"""

import torch
import triton
import triton.language as tl

from calibrant._compiled.cuda_launch import SOME, Shape, shape_of
from calibrant._compiled.cuda_memory import filled, in_panels, in_three, scaled
from calibrant._compiled.cuda_moments import columns_of, kernel_of, triangle

STEP = 32
"""Features that tensor cores multiply at a turn."""


@triton.jit
def some_rows(x_ptr, rows, first, D: tl.constexpr, STEP: tl.constexpr):
    """STEP features of some rows of a matrix with D features."""
    feature = first + tl.arange(0, STEP)
    return tl.load(x_ptr + rows.to(tl.int64)[:, None] * D + feature[None, :])


@triton.jit
def products(a_ptr, b_ptr, kept, out, rows, columns, D: tl.constexpr, STEP: tl.constexpr, PRECISION: tl.constexpr):
    """``out + a @ b.T`` of some rows of two matrices with D features; few features of b are kept from turn to turn."""
    if D == STEP:
        return tl.dot(some_rows(a_ptr, rows, 0, D, STEP), tl.trans(kept), out, input_precision=PRECISION)
    for first in range(0, D, STEP):
        b = some_rows(b_ptr, columns, first, D, STEP)
        out = tl.dot(some_rows(a_ptr, rows, first, D, STEP), tl.trans(b), out, input_precision=PRECISION)
    return out


@triton.jit
def product_triangle(
    a_ptr, b_ptr, norms_ptr, r_ptr, s_ptr, sums_ptr, squares_ptr, n, least,
    D: tl.constexpr, D_STEP: tl.constexpr, Q: tl.constexpr, Q_STEP: tl.constexpr, GAUSSIAN: tl.constexpr,
    PRECISION: tl.constexpr, DIAGONAL: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, SPAN: tl.constexpr,
    CHUNK: tl.constexpr, SLOTS: tl.constexpr,
):  # fmt: skip
    """Sums of h by row, and of its squares, over pairs below the diagonal; ``a`` is multiplied by -2."""
    block = tl.program_id(0)
    low, high = columns_of(n, least, block, tl.program_id(1), COLUMNS, SPAN, CHUNK, DIAGONAL)
    if low >= high:
        return
    columns = block * COLUMNS + tl.arange(0, COLUMNS)
    norms = tl.load(norms_ptr + columns)
    b, s = some_rows(b_ptr, columns, 0, D, D_STEP), some_rows(s_ptr, columns, 0, Q, Q_STEP)
    down = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    squares = tl.zeros((ROWS,), dtype=tl.float32)
    for start in range(low, high, ROWS):
        rows = start + tl.arange(0, ROWS)
        distances = tl.load(norms_ptr + rows)[:, None] + norms[None, :]
        distances = products(a_ptr, b_ptr, b, distances, rows, columns, D, D_STEP, PRECISION)
        inner = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
        inner = products(r_ptr, s_ptr, s, inner, rows, columns, Q, Q_STEP, PRECISION)
        h = kernel_of(tl.maximum(distances, 0.0), GAUSSIAN) * inner
        if DIAGONAL:
            h = tl.where(rows[:, None] > columns[None, :], h, 0.0)
        down += h
        squares += tl.sum(h * h, axis=1)
        tl.atomic_add(sums_ptr + rows, tl.sum(h, axis=1).to(tl.float64), sem="relaxed")
    tl.atomic_add(sums_ptr + columns, tl.sum(down, axis=0).to(tl.float64), sem="relaxed")
    tl.atomic_add(squares_ptr + block % SLOTS, tl.sum(squares.to(tl.float64), axis=0), sem="relaxed")


def feature_moments(
    x: torch.Tensor, r: torch.Tensor, lengthscale: float, gaussian: bool, first: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sums of ``h`` over ``j != i`` of each row, and of ``h^2`` over ``i != j``, in double precision.

    Where ``first`` is not zero, of pairs between so many rows and all after them.
    """
    sort = in_panels(len(x), first, x.device)
    points, residuals = sort.laid(scaled(x, lengthscale, gaussian, torch.float32)), sort.laid(r.float())
    norms = filled((points.double() ** 2).sum(dim=1, keepdim=True).float())[:, 0].contiguous()
    a, b = in_three(points)
    arrays = (-2 * a, b, norms, *in_three(residuals))
    d, q = a.shape[1], arrays[3].shape[1]
    constants = {"D": d, "D_STEP": STEP, "Q": q, "Q_STEP": STEP, "GAUSSIAN": gaussian, "PRECISION": "tf32"}

    def run(shape: Shape, *arrays: torch.Tensor, first: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
        return triangle(product_triangle, arrays, len(arrays[2]), shape, constants, first=first, by_column=True)

    kind = "products" if max(d, q) == STEP else "wide products"
    some = [array[:SOME].contiguous() for array in arrays]
    shape = shape_of(kind, f"{d} x {q}", norms, len(x), lambda shape: run(shape, *some))
    sums, squares = run(shape, *arrays, first=sort.first)
    return sums[sort.place], squares
