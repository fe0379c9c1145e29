"""Triton: kernels between blocks of rows and columns in registers, and their sums over one triangle of all pairs.

Distances come from direct differences. In the triangle a block of rows stays and columns pass by; sums along rows are
kept for a chunk of columns, sums along columns are added up in double precision at once. Residuals are features, or, where
``CLASSES``, one-hot labels minus the coordinates: then ``<r_i, r_j>`` follows from the squared distance,
``-|x_i - x_j|^2 / 2 + (|x_i|^2 / 2 - x_i[y_j]) + (|x_j|^2 / 2 - x_j[y_i]) + [y_i = y_j]``, and blocks are of one label each.
"""

import torch
import triton
import triton.language as tl

from calibrant._fused.cuda_launch import SOME, Shape, place, shape_of
from calibrant._fused.cuda_layout import (
    SPAN, by_label, factor, far_apart, filled, labels_of, scaled, step_of, upright,
)  # fmt: skip

SLOTS = 1024
"""Places where programs add up sums of squares, so that they do not wait for each other."""

OFTEN = 8
"""Spans of rows a label from which on sorting by label is worth the filling."""

@triton.jit
def square_distances(x_ptr, n, rows, columns, D: tl.constexpr, STEP: tl.constexpr):
    """Sums of squared differences of D features, STEP at a turn."""
    left, right = x_ptr + rows, x_ptr + columns
    out = tl.zeros((rows.shape[0], columns.shape[0]), dtype=x_ptr.dtype.element_ty)
    for _ in range(0, D, STEP):
        for _ in tl.static_range(STEP):
            difference = tl.load(left)[:, None] - tl.load(right)[None, :]
            out += difference * difference
            left += n
            right += n
    return out


@triton.jit
def inner_products(x_ptr, n, rows, columns, D: tl.constexpr, STEP: tl.constexpr):
    """Sums of products of D features."""
    left, right = x_ptr + rows, x_ptr + columns
    out = tl.zeros((rows.shape[0], columns.shape[0]), dtype=x_ptr.dtype.element_ty)
    for _ in range(0, D, STEP):
        for _ in tl.static_range(STEP):
            out += tl.load(left)[:, None] * tl.load(right)[None, :]
            left += n
            right += n
    return out


@triton.jit
def kernel_of(squares, GAUSSIAN: tl.constexpr):
    """The kernel of squared distances in scaled coordinates."""
    return tl.exp2(-squares) if GAUSSIAN else tl.exp2(-tl.sqrt(squares))


@triton.jit
def columns_of(n, block, chunk, BLOCK: tl.constexpr, SPAN: tl.constexpr, CHUNK: tl.constexpr, DIAGONAL: tl.constexpr):
    """Where the other side of a block of rows begins and ends: its own span, or a chunk of what follows it."""
    own = block * BLOCK // SPAN * SPAN
    if DIAGONAL:
        low, high = own, own + SPAN
    else:
        low, high = tl.maximum(own + SPAN, chunk * CHUNK), tl.minimum((chunk + 1) * CHUNK, n)
    return low, high


@triton.jit
def feature_triangle(
    x_ptr, r_ptr, labels_ptr, sums_ptr, squares_ptr, n, unit,
    D: tl.constexpr, D_STEP: tl.constexpr, Q: tl.constexpr, Q_STEP: tl.constexpr, GAUSSIAN: tl.constexpr,
    CLASSES: tl.constexpr, DIAGONAL: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, SPAN: tl.constexpr,
    CHUNK: tl.constexpr, SLOTS: tl.constexpr,
):  # fmt: skip
    """Sums of h by row, and of its squares, over pairs above the diagonal."""
    block = tl.program_id(0)
    low, high = columns_of(n, block, tl.program_id(1), ROWS, SPAN, CHUNK, DIAGONAL)
    if low >= high:
        return
    rows = block * ROWS + tl.arange(0, ROWS)
    along = tl.zeros((ROWS, COLUMNS), dtype=x_ptr.dtype.element_ty)
    squares = tl.zeros((COLUMNS,), dtype=x_ptr.dtype.element_ty)
    for start in range(low, high, COLUMNS):
        columns = start + tl.arange(0, COLUMNS)
        distances = square_distances(x_ptr, n, rows, columns, D, D_STEP)
        if CLASSES:
            inner = of_labels(x_ptr, r_ptr, labels_ptr, n, unit, rows, columns, block * ROWS // SPAN, start // SPAN)
            inner -= 0.5 * distances
        else:
            inner = inner_products(r_ptr, n, rows, columns, Q, Q_STEP)
        h = kernel_of(distances, GAUSSIAN) * inner
        if DIAGONAL:
            h = tl.where(rows[:, None] < columns[None, :], h, 0.0)
        along += h
        squares += tl.sum(h * h, axis=0)
        tl.atomic_add(sums_ptr + columns, tl.sum(h, axis=0).to(tl.float64), sem="relaxed")
    tl.atomic_add(sums_ptr + rows, tl.sum(along, axis=1).to(tl.float64), sem="relaxed")
    tl.atomic_add(squares_ptr + block % SLOTS, tl.sum(squares.to(tl.float64), axis=0), sem="relaxed")


@triton.jit
def of_labels(x_ptr, half_ptr, labels_ptr, n, unit, rows, columns, left, right):
    """What inner products of residuals have beyond minus half the squared distance, for two blocks of one label each."""
    own, other = tl.load(labels_ptr + left), tl.load(labels_ptr + right)
    a = tl.load(half_ptr + rows) - unit * tl.load(x_ptr + other.to(tl.int64) * n + rows)
    b = tl.load(half_ptr + columns) - unit * tl.load(x_ptr + own.to(tl.int64) * n + columns)
    b += tl.where(own == other, unit * unit, 0.0)
    return a[:, None] + b[None, :]


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
        k = kernel_of(square_distances(x_ptr, n, rows, columns, D, D_STEP), GAUSSIAN)
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
        distances = square_distances(x_ptr, n, rows, inside, D, D_STEP)
        h = kernel_of(distances, GAUSSIAN) * inner_products(r_ptr, n, rows, inside, Q, Q_STEP)
        here = (rows[:, None] // size == columns[None, :] // size) & (rows[:, None] != columns[None, :])
        sums += tl.sum(tl.where(here & (columns < n)[None, :], h, 0.0), axis=1).to(tl.float64)
    tl.store(out_ptr + rows, sums)


def triangle(kernel, inputs, rows: int, like: torch.Tensor, shape: Shape, by_column: bool = False, **constants):  # noqa: ANN202
    """Start a kernel over one triangle: chunks of tiles beyond the diagonal, then the diagonal."""
    sums = torch.zeros(rows, dtype=torch.float64, device=like.device)
    squares = torch.zeros(SLOTS, dtype=torch.float64, device=like.device)
    blocks = rows // (shape.columns if by_column else shape.rows)
    settings = {"ROWS": shape.rows, "COLUMNS": shape.columns, "SPAN": SPAN, "CHUNK": shape.chunk, "SLOTS": SLOTS}
    with place(like):
        for diagonal, chunks in ((False, -(-rows // shape.chunk)), (True, 1)):
            kernel[blocks, chunks](
                *inputs[0], sums, squares, rows, *inputs[1], DIAGONAL=diagonal, **settings, **constants, **shape.options
            )
    return sums, 2 * squares.sum()


def feature_moments(
    x: torch.Tensor, r: torch.Tensor, lengthscale: float, gaussian: bool, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sums of ``h`` over ``j != i`` of each row, and of ``h^2`` over ``i != j``, in double precision."""
    labels, unit = labels_of(x, r), factor(lengthscale, gaussian)
    if labels is not None and len(x) >= OFTEN * SPAN * x.shape[1] and 1e-6 < unit < 1e6:
        return _of_classes(x, labels, unit, gaussian, dtype)
    d, q = step_of(x.shape[1]), step_of(r.shape[1])
    a, b = upright(scaled(x, lengthscale, gaussian, dtype), d), upright(r.to(dtype), q)
    constants = {"D": len(a), "D_STEP": d, "Q": len(b), "Q_STEP": q, "GAUSSIAN": gaussian, "CLASSES": False}

    def run(shape: Shape, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return triangle(feature_triangle, ((a, b, a), (1.0,)), a.shape[1], a, shape, **constants)

    some = a[:, :SOME].contiguous(), b[:, :SOME].contiguous()
    shape = shape_of("features", f"{len(a)} x {len(b)} {dtype}", a, len(x), lambda shape: run(shape, *some))
    sums, squares = run(shape, a, b)
    return sums[: len(x)], squares


def _of_classes(
    x: torch.Tensor, labels: torch.Tensor, unit: float, gaussian: bool, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows sorted by label; the sums come in squared units of the scaled coordinates."""
    sort, step = by_label(labels, x.shape[1]), step_of(x.shape[1])
    points = (x.double() * unit).to(dtype)
    half = sort.laid((points.double() ** 2).sum(dim=1, keepdim=True).to(dtype) / 2)[:, 0].contiguous()
    a = upright(far_apart(points, sort), step)
    constants = {"D": len(a), "D_STEP": step, "Q": 1, "Q_STEP": 1, "GAUSSIAN": gaussian, "CLASSES": True}

    def run(shape: Shape, a: torch.Tensor, half: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return triangle(feature_triangle, ((a, half, sort.labels), (unit,)), a.shape[1], a, shape, **constants)

    some = a[:, :SOME].contiguous(), half[:SOME].contiguous()
    shape = shape_of("classes", f"{len(a)} {dtype}", a, len(x), lambda shape: run(shape, *some))
    sums, squares = run(shape, a, half)
    return sums[sort.place] / unit**2, squares / unit**4


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
            kernel_product[grid](
                a, values, out, a.shape[1], values.shape[1], **constants, **sizes, **shape.options
            )
        return out

    shape = shape_of("matmul", f"{len(a)} x {width} {dtype}", a, len(x), lambda shape: run(shape, SOME // 8))
    return run(shape, a.shape[1])[: len(v), : v.shape[1]]


def block_sums(
    x: torch.Tensor, r: torch.Tensor, lengthscale: float, gaussian: bool, size: int, dtype: torch.dtype
) -> torch.Tensor:
    """Sums of h over pairs within consecutive blocks of so many rows; an incomplete last block is left out."""
    d, q = step_of(x.shape[1]), step_of(r.shape[1])
    a, b = upright(scaled(x, lengthscale, gaussian, dtype), d), upright(r.to(dtype), q)
    out = torch.empty(a.shape[1], dtype=torch.float64, device=a.device)
    shape = shape_of("blocks", "", a, 0, lambda shape: None)
    constants = {"D": len(a), "D_STEP": d, "Q": len(b), "Q_STEP": q, "GAUSSIAN": gaussian}
    with place(a):
        sums_in_blocks[(a.shape[1] // shape.rows,)](
            a, b, out, a.shape[1], size, ROWS=shape.rows, COLUMNS=shape.columns, **constants, **shape.options
        )
    return out[: len(x) // size * size].reshape(-1, size).sum(dim=1)
