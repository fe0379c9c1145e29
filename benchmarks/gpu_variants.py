"""Other ways to the same sums on a GPU, to see that those in the library are the fastest that are right."""

from collections.abc import Iterator
from typing import Any

import torch
import triton
import triton.language as tl

from calibrant._fused.cuda_launch import Shape
from calibrant._fused.cuda_layout import filled, in_three, scaled, upright
from calibrant._fused.cuda_moments import triangle
from calibrant._fused.cuda_pairs import columns_of, feature_triangle, inner_products, kernel_of
from calibrant._fused.cuda_products import product_triangle

SHAPES = (Shape(32, 128, 4), Shape(64, 64, 2), Shape(64, 128, 4))


@triton.jit
def inner_triangle(
    x_ptr, y_ptr, norms_ptr, r_ptr, sums_ptr, squares_ptr, n,
    D: tl.constexpr, DIAGONAL: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, SPAN: tl.constexpr,
    CHUNK: tl.constexpr, SLOTS: tl.constexpr,
):  # fmt: skip
    """Distances from inner products in registers: half the instructions of differences, and half the digits."""
    block = tl.program_id(0)
    low, high = columns_of(n, block, tl.program_id(1), ROWS, SPAN, CHUNK, DIAGONAL)
    if low >= high:
        return
    rows = block * ROWS + tl.arange(0, ROWS)
    along = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    squares = tl.zeros((COLUMNS,), dtype=tl.float32)
    for start in range(low, high, COLUMNS):
        columns = start + tl.arange(0, COLUMNS)
        distances = tl.load(norms_ptr + rows)[:, None] + tl.load(norms_ptr + columns)[None, :]
        left, right = x_ptr + rows, y_ptr + columns
        for _ in tl.static_range(D):
            distances += tl.load(left)[:, None] * tl.load(right)[None, :]
            left += n
            right += n
        h = kernel_of(tl.maximum(distances, 0.0), False) * inner_products(r_ptr, n, rows, columns, D, D)
        if DIAGONAL:
            h = tl.where(rows[:, None] < columns[None, :], h, 0.0)
        along += h
        squares += tl.sum(h * h, axis=0)
        tl.atomic_add(sums_ptr + columns, tl.sum(h, axis=0).to(tl.float64), sem="relaxed")
    tl.atomic_add(sums_ptr + rows, tl.sum(along, axis=1).to(tl.float64), sem="relaxed")
    tl.atomic_add(squares_ptr + block % SLOTS, tl.sum(squares.to(tl.float64), axis=0), sem="relaxed")


def variants(x: torch.Tensor, r: torch.Tensor, lengthscale: float) -> Iterator[tuple[str, Any]]:
    """Names and functions that give moments with the exponential kernel; x and r have 10 columns."""
    points, values = scaled(x, lengthscale, False, torch.float32), r.float()
    norms = filled((points.double() ** 2).sum(dim=1, keepdim=True).float())[:, 0].contiguous()
    a, b, n, d = upright(points), upright(values), len(norms), x.shape[1]
    differences = {"D": d, "D_STEP": d, "Q": d, "Q_STEP": d, "GAUSSIAN": False, "CLASSES": False}
    for shape in SHAPES:
        yield (
            f"differences, two products, {shape}",
            lambda shape=shape: triangle(feature_triangle, ((a, b, a), (1.0,)), n, shape, differences),
        )
        yield (
            f"inner products in registers, {shape}",
            lambda shape=shape: triangle(inner_triangle, ((-2 * a, a, norms, b), ()), n, shape, {"D": d}),
        )
    wide = filled(points, 16), filled(values, 16)
    dots = {"D": 16, "D_STEP": 16, "Q": 16, "Q_STEP": 16, "GAUSSIAN": False}
    for precision in ("ieee", "tf32x3", "tf32"):
        for shape in (Shape(64, 64, 4), Shape(128, 64, 8)):
            inputs = (-2 * wide[0], wide[0], norms, wide[1], wide[1])
            yield (
                f"dot {precision}, {shape}",
                lambda inputs=inputs, shape=shape, precision=precision: triangle(
                    product_triangle, (inputs, ()), n, shape, dots | {"PRECISION": precision}, by_column=True
                ),
            )
    c, e = in_three(points)
    three = (-2 * c, e, norms, *in_three(values))
    thrice = {"D": 32, "D_STEP": 32, "Q": 32, "Q_STEP": 32, "GAUSSIAN": False, "PRECISION": "tf32"}
    for shape in (Shape(64, 64, 4, 32768), Shape(64, 64, 4, stages=3), Shape(64, 128, 8), Shape(128, 128, 8)):
        yield (
            f"dot in three, {shape}",
            lambda shape=shape: triangle(product_triangle, (three, ()), n, shape, thrice, by_column=True),
        )
