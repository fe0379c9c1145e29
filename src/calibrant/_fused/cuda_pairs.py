"""Triton: kernels between blocks of rows and columns in registers, and their sums over one triangle of all pairs.

Distances come from direct differences. In the triangle a block of rows stays and columns pass by; sums along rows are
kept for a chunk of columns, sums along columns are added up in double precision at once. Of two panels of rows, one after
the other, the same kernel passes over the columns of the first.

Columns are loaded as a matrix with one row: so the compiler keeps a few rows by four neighbouring columns of a tile in each
thread, and loads them four at a time, without going through shared memory.
"""

import triton
import triton.language as tl


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
