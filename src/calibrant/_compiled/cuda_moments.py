"""Triton: sums over one triangle of all pairs of rows in registers, for features and for normal predictions.

Distances come from direct differences. In the triangle a block of rows stays and columns pass by; sums along rows are
kept for a chunk of columns, sums along columns are added up in double precision at once. Of two panels of rows, one after
the other, the same kernel passes over the columns of the first.

Columns are loaded as a matrix with one row: so the compiler keeps a few rows by four neighbouring columns of a tile in each
thread, and loads them four at a time, without going through shared memory.

For normal predictions ``<r_i, r_j>`` is that of :func:`calibrant._compiled.cpu.normal_moments`. Means and targets are scaled
so that exponentials are powers of two; the logarithm of the kernel on predictions is added to each exponent, which saves a
product and underflow.
"""

import math
from typing import Any

import torch
import triton
import triton.language as tl

from calibrant._compiled.cuda_launch import SHAPES, SOME, Shape, place, shape_of
from calibrant._compiled.cuda_memory import LARGEST, SPAN, far_apart, filled, in_panels, scaled, step_of, upright


@triton.jit
def square_distances(a_ptr, b_ptr, n, rows, columns, D: tl.constexpr, STEP: tl.constexpr):
    """Sums of squared differences of D features of rows of a and columns of b, STEP at a turn."""
    left, right = a_ptr + rows, b_ptr + columns[None, :]
    out = tl.zeros((rows.shape[0], columns.shape[0]), dtype=a_ptr.dtype.element_ty)
    for _ in range(0, D, STEP):
        for _ in tl.static_range(STEP):
            difference = tl.load(left)[:, None] - tl.load(right)
            out += difference * difference
            left += n
            right += n
    return out


@triton.jit
def inner_products(x_ptr, n, rows, columns, D: tl.constexpr, STEP: tl.constexpr):
    """Sums of products of D features."""
    left, right = x_ptr + rows, x_ptr + columns[None, :]
    out = tl.zeros((rows.shape[0], columns.shape[0]), dtype=x_ptr.dtype.element_ty)
    for _ in range(0, D, STEP):
        for _ in tl.static_range(STEP):
            out += tl.load(left)[:, None] * tl.load(right)
            left += n
            right += n
    return out


@triton.jit
def kernel_of(squares, GAUSSIAN: tl.constexpr):
    """The kernel of squared distances in scaled coordinates."""
    return tl.exp2(-squares) if GAUSSIAN else tl.exp2(-tl.sqrt(squares))


@triton.jit
def columns_of(
    n, least, block, chunk, BLOCK: tl.constexpr, SPAN: tl.constexpr, CHUNK: tl.constexpr, DIAGONAL: tl.constexpr
):
    """Where the other side of a block of rows begins and ends: its own span, or a chunk of what follows it, from ``least`` on."""
    own = block * BLOCK // SPAN * SPAN
    if DIAGONAL:
        low, high = own, own + SPAN
    else:
        low, high = tl.maximum(tl.maximum(own + SPAN, least), chunk * CHUNK), tl.minimum((chunk + 1) * CHUNK, n)
    return low, high


@triton.jit
def feature_triangle(
    x_ptr, r_ptr, sums_ptr, squares_ptr, n, least,
    D: tl.constexpr, D_STEP: tl.constexpr, Q: tl.constexpr, Q_STEP: tl.constexpr, GAUSSIAN: tl.constexpr,
    DIAGONAL: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, SPAN: tl.constexpr, CHUNK: tl.constexpr,
    SLOTS: tl.constexpr,
):  # fmt: skip
    """Sums of h by row, and of its squares, over pairs above the diagonal whose column is ``least`` or beyond."""
    block = tl.program_id(0)
    low, high = columns_of(n, least, block, tl.program_id(1), ROWS, SPAN, CHUNK, DIAGONAL)
    if low >= high:
        return
    rows = block * ROWS + tl.arange(0, ROWS)
    along = tl.zeros((ROWS, COLUMNS), dtype=x_ptr.dtype.element_ty)
    squares = tl.zeros((COLUMNS,), dtype=x_ptr.dtype.element_ty)
    for start in range(low, high, COLUMNS):
        columns = start + tl.arange(0, COLUMNS)
        distances = square_distances(x_ptr, x_ptr, n, rows, columns, D, D_STEP)
        h = kernel_of(distances, GAUSSIAN) * inner_products(r_ptr, n, rows, columns, Q, Q_STEP)
        if DIAGONAL:
            h = tl.where(rows[:, None] < columns[None, :], h, 0.0)
        along += h
        squares += tl.sum(h * h, axis=0)
        tl.atomic_add(sums_ptr + columns, tl.sum(h, axis=0).to(tl.float64), sem="relaxed")
    tl.atomic_add(sums_ptr + rows, tl.sum(along, axis=1).to(tl.float64), sem="relaxed")
    tl.atomic_add(squares_ptr + block % SLOTS, tl.sum(squares.to(tl.float64), axis=0), sem="relaxed")


@triton.jit
def kernel_product(
    x_ptr, v_ptr, out_ptr, n, width, D: tl.constexpr, D_STEP: tl.constexpr, GAUSSIAN: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, WIDTH: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """``K @ v`` for v ``(n, width)``, WIDTH columns at a time; the chunks of the sum are added in double precision."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    low = tl.program_id(1) * CHUNK
    value = tl.program_id(2) * WIDTH + tl.arange(0, WIDTH)
    out = tl.zeros((ROWS, WIDTH), dtype=x_ptr.dtype.element_ty)
    for start in range(low, tl.minimum(low + CHUNK, n), COLUMNS):
        columns = start + tl.arange(0, COLUMNS)
        k = kernel_of(square_distances(x_ptr, x_ptr, n, rows, columns, D, D_STEP), GAUSSIAN)
        v = tl.load(v_ptr + columns.to(tl.int64)[:, None] * width + value[None, :])
        out += tl.dot(k, v, input_precision="ieee", out_dtype=x_ptr.dtype.element_ty)
    tl.atomic_add(out_ptr + rows.to(tl.int64)[:, None] * width + value[None, :], out.to(tl.float64), sem="relaxed")


@triton.jit
def sums_in_blocks(
    x_ptr, r_ptr, out_ptr, n, size, D: tl.constexpr, D_STEP: tl.constexpr, Q: tl.constexpr, Q_STEP: tl.constexpr,
    GAUSSIAN: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """The sum of h of each row over the other rows of its block of so many rows."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    low = tl.program_id(0) * ROWS // size * size
    high = tl.minimum(((tl.program_id(0) + 1) * ROWS - 1) // size * size + size, n)
    sums = tl.zeros((ROWS,), dtype=tl.float64)
    for start in range(low, high, COLUMNS):
        columns = start + tl.arange(0, COLUMNS)
        inside = tl.minimum(columns, n - 1)
        distances = square_distances(x_ptr, x_ptr, n, rows, inside, D, D_STEP)
        h = kernel_of(distances, GAUSSIAN) * inner_products(r_ptr, n, rows, inside, Q, Q_STEP)
        here = (rows[:, None] // size == columns[None, :] // size) & (rows[:, None] != columns[None, :])
        sums += tl.sum(tl.where(here & (columns < n)[None, :], h, 0.0), axis=1).to(tl.float64)
    tl.store(out_ptr + rows, sums)


SLOTS = 1024
"""Places where programs add up sums of squares, so that they do not wait for each other."""


def triangle(
    kernel: Any,
    inputs: tuple[torch.Tensor, ...],
    rows: int,
    shape: Shape,
    constants: dict[str, Any],
    *,
    first: int = 0,
    by_column: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Start a kernel over one triangle: chunks of tiles beyond the diagonal, then the diagonal.

    Of two panels of rows, the first as long as ``first`` says, pairs between the panels alone are met.
    """
    like = inputs[0]
    sums = torch.zeros(rows, dtype=torch.float64, device=like.device)
    squares = torch.zeros(SLOTS, dtype=torch.float64, device=like.device)
    blocks = (first or rows) // (shape.columns if by_column else shape.rows)
    settings = {"ROWS": shape.rows, "COLUMNS": shape.columns, "SPAN": SPAN, "CHUNK": shape.chunk, "SLOTS": SLOTS}
    with place(like):
        for diagonal, chunks in ((False, -(-rows // shape.chunk)), (True, 1))[: 1 if first else 2]:
            kernel[blocks, chunks](
                *inputs, sums, squares, rows, first, DIAGONAL=diagonal, **settings, **constants, **shape.options
            )
    return sums, 2 * squares.sum()


def feature_moments(
    x: torch.Tensor, r: torch.Tensor, lengthscale: float, gaussian: bool, dtype: torch.dtype, first: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sums of ``h`` over ``j != i`` of each row, and of ``h^2`` over ``i != j``, in double precision.

    Where ``first`` is not zero, of pairs between so many rows and all after them.
    """
    d, q = step_of(x.shape[1]), step_of(r.shape[1])
    sort = in_panels(len(x), first, x.device)
    a = upright(sort.laid(scaled(x, lengthscale, gaussian, dtype)), d)
    b = upright(sort.laid(r.to(dtype)), q)
    constants = {"D": len(a), "D_STEP": d, "Q": len(b), "Q_STEP": q, "GAUSSIAN": gaussian}

    def run(shape: Shape, a: torch.Tensor, b: torch.Tensor, first: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
        return triangle(feature_triangle, (a, b), a.shape[1], shape, constants, first=first)

    some = a[:, :SOME].contiguous(), b[:, :SOME].contiguous()
    shape = shape_of("features", f"{len(a)} x {len(b)} {dtype}", a, len(x), lambda shape: run(shape, *some))
    sums, squares = run(shape, a, b, sort.first)
    return sums[sort.place], squares


def matmul(x: torch.Tensor, v: torch.Tensor, lengthscale: float, gaussian: bool, dtype: torch.dtype) -> torch.Tensor:
    """``K @ v`` for v ``(n, q)``, with the diagonal, in double precision."""
    step = step_of(x.shape[1])
    a = upright(scaled(x, lengthscale, gaussian, dtype), step)
    width = min(64, max(16, triton.next_power_of_2(v.shape[1])))
    values = filled(v.to(dtype), width)
    constants = {"D": len(a), "D_STEP": step, "GAUSSIAN": gaussian, "WIDTH": width}

    def run(shape: Shape, rows: int) -> torch.Tensor:
        out = torch.zeros((a.shape[1], values.shape[1]), dtype=torch.float64, device=a.device)
        grid = (rows // shape.rows, -(-a.shape[1] // shape.chunk), values.shape[1] // width)
        sizes = {"ROWS": shape.rows, "COLUMNS": shape.columns, "CHUNK": shape.chunk}
        with place(a):
            kernel_product[grid](a, values, out, a.shape[1], values.shape[1], **constants, **sizes, **shape.options)
        return out

    shape = shape_of(
        "matmul", f"{len(a)} x {width} {dtype}", a, len(x), lambda shape: run(shape, min(SOME // 16, a.shape[1]))
    )
    return run(shape, a.shape[1])[: len(v), : v.shape[1]]


def block_sums(
    x: torch.Tensor, r: torch.Tensor, lengthscale: float, gaussian: bool, size: int, dtype: torch.dtype
) -> torch.Tensor:
    """Sums of h over pairs within consecutive blocks of so many rows; an incomplete last block is left out."""
    d, q = step_of(x.shape[1]), step_of(r.shape[1])
    a, b = upright(scaled(x, lengthscale, gaussian, dtype), d), upright(r.to(dtype), q)
    out = torch.empty(a.shape[1], dtype=torch.float64, device=a.device)
    shape = SHAPES["blocks"][0]
    constants = {"D": len(a), "D_STEP": d, "Q": len(b), "Q_STEP": q, "GAUSSIAN": gaussian}
    with place(a):
        sums_in_blocks[(a.shape[1] // shape.rows,)](
            a, b, out, a.shape[1], size, ROWS=shape.rows, COLUMNS=shape.columns, **constants, **shape.options
        )
    return out[: len(x) // size * size].reshape(-1, size).sum(dim=1)


@triton.jit
def normal_products(log, mu_ptr, y_ptr, v_ptr, n, rows, columns, D: tl.constexpr):
    """``2^log <r_i, r_j>``; v holds ``2 g s^2``, ``a = 1 / (1 + 2 g s^2)`` and ``a^(D/2)``."""
    a, b = tl.load(v_ptr + n + rows)[:, None], tl.load(v_ptr + n + columns)[None, :]
    left, right = tl.load(v_ptr + 2 * n + rows)[:, None], tl.load(v_ptr + 2 * n + columns)[None, :]
    out = tl.exp2(log - square_distances(y_ptr, y_ptr, n, rows, columns, D, D))
    out -= left * tl.exp2(log - a * square_distances(mu_ptr, y_ptr, n, rows, columns, D, D))
    out -= right * tl.exp2(log - b * square_distances(y_ptr, mu_ptr, n, rows, columns, D, D))
    root = tl.rsqrt(1.0 + tl.load(v_ptr + rows)[:, None] + tl.load(v_ptr + columns)[None, :])
    both = root * root
    power = root
    for _ in tl.static_range(D - 1):
        power *= root
    return out + power * tl.exp2(log - both * square_distances(mu_ptr, mu_ptr, n, rows, columns, D, D))


@triton.jit
def normal_triangle(
    x_ptr, mu_ptr, y_ptr, v_ptr, sums_ptr, squares_ptr, n, least,
    K: tl.constexpr, K_STEP: tl.constexpr, D: tl.constexpr, GAUSSIAN: tl.constexpr, DIAGONAL: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, SPAN: tl.constexpr, CHUNK: tl.constexpr, SLOTS: tl.constexpr,
):  # fmt: skip
    """Sums of h by row, and of its squares, over pairs above the diagonal; the x of filling rows are far apart."""
    block = tl.program_id(0)
    low, high = columns_of(n, least, block, tl.program_id(1), ROWS, SPAN, CHUNK, DIAGONAL)
    if low >= high:
        return
    rows = block * ROWS + tl.arange(0, ROWS)
    along = tl.zeros((ROWS, COLUMNS), dtype=x_ptr.dtype.element_ty)
    squares = tl.zeros((COLUMNS,), dtype=x_ptr.dtype.element_ty)
    for start in range(low, high, COLUMNS):
        columns = start + tl.arange(0, COLUMNS)
        log = square_distances(x_ptr, x_ptr, n, rows, columns, K, K_STEP)
        log = -log if GAUSSIAN else -tl.sqrt(log)
        h = normal_products(log, mu_ptr, y_ptr, v_ptr, n, rows, columns, D)
        if DIAGONAL:
            h = tl.where(rows[:, None] < columns[None, :], h, 0.0)
        along += h
        squares += tl.sum(h * h, axis=0)
        tl.atomic_add(sums_ptr + columns, tl.sum(h, axis=0).to(tl.float64), sem="relaxed")
    tl.atomic_add(sums_ptr + rows, tl.sum(along, axis=1).to(tl.float64), sem="relaxed")
    tl.atomic_add(squares_ptr + block % SLOTS, tl.sum(squares.to(tl.float64), axis=0), sem="relaxed")


def normal_moments(
    x: torch.Tensor, mu: torch.Tensor, s: torch.Tensor, y: torch.Tensor, lengthscale: float, gaussian: bool,
    target_lengthscale: float, dtype: torch.dtype, first: int = 0,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Sums of ``h`` over ``j != i`` of each row, and of ``h^2`` over ``i != j``: mu and y ``(n, d)``, s ``(n,)``.

    Where ``first`` is not zero, of pairs between so many rows and all after them.
    """
    n, d, step = len(x), mu.shape[1], step_of(x.shape[1])
    sort = in_panels(n, first, x.device)
    points = upright(far_apart(scaled(x, lengthscale, gaussian, dtype), sort), step)
    middle = y.double().mean(dim=0)
    means, targets = mu.double() - middle, y.double() - middle
    largest = max(float(means.abs().max()), float(targets.abs().max()), 1e-300)
    unit = min(math.sqrt(0.5 * math.log2(math.e)) / target_lengthscale, LARGEST / largest)
    v = torch.clamp((s.double() / target_lengthscale) ** 2, max=1e30)
    spread = torch.stack([v, 1 / (1 + v), (1 + v) ** (-d / 2)], dim=1)
    arrays = (points, *(upright(sort.laid(array.to(dtype))) for array in (means * unit, targets * unit, spread)))
    constants = {"K": len(points), "K_STEP": step, "D": d, "GAUSSIAN": gaussian}

    def run(shape: Shape, *arrays: torch.Tensor, first: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
        return triangle(normal_triangle, arrays, arrays[0].shape[1], shape, constants, first=first)

    some = [array[:, :SOME].contiguous() for array in arrays]
    shape = shape_of("normals", f"{len(points)}, {d} {dtype}", points, n, lambda shape: run(shape, *some))
    sums, squares = run(shape, *arrays, first=sort.first)
    return sums[sort.place], squares
