"""Sums over all pairs of rows of tensors on a GPU, in registers: what is prepared, and how kernels are started."""

from typing import Any

import torch
import triton

from calibrant._fused.cuda_launch import SHAPES, SOME, Shape, place, shape_of
from calibrant._fused.cuda_layout import SPAN, filled, in_panels, scaled, step_of, upright
from calibrant._fused.cuda_pairs import feature_triangle, kernel_product, sums_in_blocks

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
