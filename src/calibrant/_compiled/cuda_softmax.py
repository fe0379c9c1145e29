"""Triton: softmax averages of class labels with weights ``2^H_ij``, and their derivatives.

``H_ij = <k_j, q_i - q_j> + H_jj``: differences of queries keep the digits that ``<k_j, q_i>`` alone would lose where
logarithms of narrow kernels are large. Rows are sorted by label, so that a block of columns is of one label, and the
diagonal meets blocks on the diagonal alone. Every pair of a row and a place in a block carries its own largest logarithm.
"""

import math
from typing import Any

import torch
import triton
import triton.language as tl

from calibrant._compiled.cuda_launch import Shape, place, shape_of
from calibrant._compiled.cuda_memory import SPAN, Sorted, by_label, memory_for, step_of, upright

MIN_LOG = tl.constexpr(-1e38)

NEVER = -1e29
"""Logarithms below stand for a weight of zero."""

WIDEST = 64
"""Most columns of queries and keys."""


@triton.jit
def logarithms(q_ptr, k_ptr, own_ptr, n, rows, columns, D: tl.constexpr, STEP: tl.constexpr):
    """``H`` of some rows and columns, ``MIN_LOG`` on the diagonal."""
    query, other, key = q_ptr + rows, q_ptr + columns[None, :], k_ptr + columns[None, :]
    out = (
        tl.zeros((rows.shape[0], columns.shape[0]), dtype=q_ptr.dtype.element_ty) + tl.load(own_ptr + columns)[None, :]
    )
    for _ in range(0, D, STEP):
        for _ in tl.static_range(STEP):
            out += tl.load(key) * (tl.load(query)[:, None] - tl.load(other))
            query += n
            other += n
            key += n
    return out


@triton.jit
def without_diagonal(logs, rows, columns, first, start, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """A row does not see itself."""
    if (start < first + ROWS) & (first < start + COLUMNS):
        logs = tl.where(rows[:, None] == columns[None, :], MIN_LOG, logs)
    return logs


@triton.jit
def class_sums(
    q_ptr, k_ptr, own_ptr, starts_ptr, top_ptr, sums_ptr, squares_ptr, n,
    D: tl.constexpr, STEP: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Of each row and label: the largest H, and the sums of ``2^(H - largest)`` and of its square."""
    first, label = tl.program_id(0) * ROWS, tl.program_id(1)
    rows = first + tl.arange(0, ROWS)
    top = tl.full((ROWS, COLUMNS), MIN_LOG, dtype=q_ptr.dtype.element_ty)
    sums = tl.zeros((ROWS, COLUMNS), dtype=q_ptr.dtype.element_ty)
    squares = tl.zeros((ROWS, COLUMNS), dtype=q_ptr.dtype.element_ty)
    for start in range(tl.load(starts_ptr + label), tl.load(starts_ptr + label + 1), COLUMNS):
        columns = start + tl.arange(0, COLUMNS)
        logs = logarithms(q_ptr, k_ptr, own_ptr, n, rows, columns, D, STEP)
        logs = without_diagonal(logs, rows, columns, first, start, ROWS, COLUMNS)
        largest = tl.maximum(top, logs)
        old, new = tl.exp2(top - largest), tl.exp2(logs - largest)
        sums = sums * old + new
        squares = squares * (old * old) + new * new
        top = largest
    largest = tl.max(top, axis=1)
    share = tl.exp2(top - largest[:, None])
    place = label.to(tl.int64) * n + rows
    tl.store(top_ptr + place, largest)
    tl.store(sums_ptr + place, tl.sum(sums * share, axis=1))
    tl.store(squares_ptr + place, tl.sum(squares * share * share, axis=1))


@triton.jit
def slopes_of_queries(
    q_ptr, k_ptr, own_ptr, labels_ptr, log_sum_ptr, first_ptr, second_ptr, wide_ptr, out_ptr, n,
    D: tl.constexpr, STEP: tl.constexpr, WIDTH: tl.constexpr, SPAN: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """``sum_j g_ij k_j`` of each row i, with the slope ``g_ij = w_ij (u_i + w_ij v_i)`` of H for u and v of j's label."""
    first = tl.program_id(0) * ROWS
    rows, feature = first + tl.arange(0, ROWS), tl.arange(0, WIDTH)
    log_sum = tl.load(log_sum_ptr + rows)
    out = tl.zeros((ROWS, WIDTH), dtype=q_ptr.dtype.element_ty)
    for start in range(0, n, COLUMNS):
        columns = start + tl.arange(0, COLUMNS)
        logs = logarithms(q_ptr, k_ptr, own_ptr, n, rows, columns, D, STEP) - log_sum[:, None]
        weight = tl.exp2(without_diagonal(logs, rows, columns, first, start, ROWS, COLUMNS))
        label = tl.load(labels_ptr + start // SPAN).to(tl.int64) * n
        u, v = tl.load(first_ptr + label + rows), tl.load(second_ptr + label + rows)
        keys = tl.load(wide_ptr + columns.to(tl.int64)[:, None] * WIDTH + feature[None, :])
        slope = weight * (u[:, None] + weight * v[:, None])
        out += tl.dot(slope, keys, input_precision="ieee", out_dtype=q_ptr.dtype.element_ty)
    tl.store(out_ptr + rows.to(tl.int64)[:, None] * WIDTH + feature[None, :], out)


@triton.jit
def slopes_of_keys(
    q_ptr, k_ptr, own_ptr, labels_ptr, log_sum_ptr, first_ptr, second_ptr, wide_ptr, out_ptr, n,
    D: tl.constexpr, STEP: tl.constexpr, WIDTH: tl.constexpr, SPAN: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """``sum_i g_ij q_i`` of each column j."""
    first = tl.program_id(0) * COLUMNS
    columns, feature = first + tl.arange(0, COLUMNS), tl.arange(0, WIDTH)
    label = tl.load(labels_ptr + first // SPAN).to(tl.int64) * n
    out = tl.zeros((COLUMNS, WIDTH), dtype=q_ptr.dtype.element_ty)
    for start in range(0, n, ROWS):
        rows = start + tl.arange(0, ROWS)
        logs = logarithms(q_ptr, k_ptr, own_ptr, n, rows, columns, D, STEP) - tl.load(log_sum_ptr + rows)[:, None]
        weight = tl.exp2(without_diagonal(logs, rows, columns, start, first, ROWS, COLUMNS))
        u, v = tl.load(first_ptr + label + rows), tl.load(second_ptr + label + rows)
        queries = tl.load(wide_ptr + rows.to(tl.int64)[:, None] * WIDTH + feature[None, :])
        slope = weight * (u[:, None] + weight * v[:, None])
        out += tl.dot(tl.trans(slope), queries, input_precision="ieee", out_dtype=q_ptr.dtype.element_ty)
    tl.store(out_ptr + columns.to(tl.int64)[:, None] * WIDTH + feature[None, :], out)


def class_averages(
    queries: torch.Tensor, keys: torch.Tensor, labels: torch.Tensor, n_classes: int, dtype: torch.dtype = torch.float32
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """The fields of :class:`calibrant._softmax.Softmax` for ``H = queries @ keys.T`` off the diagonal and one-hot labels.

    O(n^2 d) time, O(n (d + classes)) memory, also for gradients with respect to queries and keys.
    """
    return _ClassAverages.apply(queries, keys, labels, n_classes, dtype)


class _ClassAverages(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, queries: torch.Tensor, keys: torch.Tensor, labels: torch.Tensor, n_classes: int, dtype: torch.dtype
    ) -> tuple[torch.Tensor, ...]:
        sort = by_label(labels, n_classes)
        laid = _laid(queries, keys, sort, dtype)
        top, sums, squares = (part[:, sort.place].double() for part in _sums(laid, sort, n_classes))
        largest = top.max(dim=0).values
        empty = largest < NEVER
        share = torch.exp2(top - largest)
        sums, squares = sums * share, squares * share**2
        total = torch.where(empty, torch.inf, sums.sum(dim=0))
        log_sum = torch.where(empty, -torch.inf, (largest + torch.log2(total)) * math.log(2))
        mean, twice = (sums / total).T, (squares / total**2).T
        out = log_sum, mean, twice.sum(dim=1), twice
        ctx.save_for_backward(queries, keys, *out)
        ctx.sort, ctx.dtype = sort, dtype
        return tuple(part.to(queries.dtype) for part in out)

    @staticmethod
    def backward(ctx: Any, *slopes: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        with memory_for("gradients of kernel regression", len(ctx.saved_tensors[0])):
            return (*_ClassAverages.slopes(ctx, *slopes), None, None, None)

    @staticmethod
    def slopes(ctx: Any, *slopes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The derivatives with respect to queries and keys."""
        queries, keys, log_sum, mean, squares, twice = ctx.saved_tensors
        of_log, of_mean, of_squares, of_twice = (slope.double() for slope in slopes)
        of_log = torch.where(torch.isinf(log_sum), 0.0, of_log)
        base = of_log - (of_mean * mean).sum(dim=1) - 2 * (of_squares * squares + (of_twice * twice).sum(dim=1))
        first, second = base[:, None] + of_mean, 2 * (of_squares[:, None] + of_twice)
        log_sum = torch.where(torch.isinf(log_sum), -MIN_LOG.value, log_sum / math.log(2))
        sort, dtype = ctx.sort, ctx.dtype
        inputs = [*_laid(queries, keys, sort, dtype), sort.labels]
        inputs += [sort.laid(log_sum[:, None].to(dtype), -MIN_LOG.value)]  # filling rows weigh nothing
        inputs += [sort.laid(part.to(dtype)).T.contiguous() for part in (first, second)]
        of_queries = _slopes("slopes of queries", slopes_of_queries, inputs, keys, sort, dtype)
        of_keys = _slopes("slopes of keys", slopes_of_keys, inputs, queries, sort, dtype)
        return of_queries.to(queries.dtype), of_keys.to(keys.dtype)


def _laid(
    queries: torch.Tensor, keys: torch.Tensor, sort: Sorted, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Queries and keys without columns that are the same in all rows, and ``H_jj``, in the new order; in powers of two."""
    logs = keys.double() * math.log2(math.e)
    own = (queries.double() * logs).sum(dim=1, keepdim=True)
    varies = (queries != queries[:1]).any(dim=0)
    varies[0] |= ~varies.any()
    step = step_of(int(varies.sum()))
    laid = [upright(sort.laid(part[:, varies].to(dtype)), step) for part in (queries, logs)]
    return laid[0], laid[1], sort.laid(own.to(dtype), MIN_LOG.value)[:, 0].contiguous()


def _sums(
    laid: tuple[torch.Tensor, torch.Tensor, torch.Tensor], sort: Sorted, n_classes: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    q, step = laid[0], step_of(len(laid[0]))

    def run(shape: Shape, rows: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        out = [torch.empty((n_classes, sort.rows), dtype=q.dtype, device=q.device) for _ in range(3)]
        sizes = {"ROWS": shape.rows, "COLUMNS": shape.columns, "D": len(q), "STEP": step}
        with place(q):
            class_sums[rows // shape.rows, n_classes](*laid, sort.starts, *out, sort.rows, **sizes, **shape.options)
        return out[0], out[1], out[2]

    some = min(2048, sort.rows)
    return run(shape_of("softmax", f"{len(q)} {q.dtype}", q, sort.rows, lambda shape: run(shape, some)), sort.rows)


def _slopes(
    kind: str, kernel: Any, inputs: list[torch.Tensor], factors: torch.Tensor, sort: Sorted, dtype: torch.dtype
) -> torch.Tensor:
    """Slopes of H times the queries or keys of the other side, in the order of the caller."""
    q, width = inputs[0], max(16, triton.next_power_of_2(factors.shape[1]))
    wide = torch.nn.functional.pad(sort.laid(factors.to(dtype)), (0, width - factors.shape[1])).contiguous()
    sizes = {"D": len(q), "STEP": step_of(len(q)), "WIDTH": width, "SPAN": SPAN}

    def run(shape: Shape, rows: int) -> torch.Tensor:
        out = torch.empty_like(wide)
        grid = (rows // (shape.rows if kernel is slopes_of_queries else shape.columns),)
        with place(q):
            kernel[grid](
                *inputs, wide, out, sort.rows, ROWS=shape.rows, COLUMNS=shape.columns, **sizes, **shape.options
            )
        return out

    some = min(2048, sort.rows)
    shape = shape_of(kind, f"{len(q)} x {width} {dtype}", q, sort.rows, lambda shape: run(shape, some))
    return run(shape, sort.rows)[sort.place, : factors.shape[1]]
