"""Triton: sums over one triangle of all pairs of normal predictions, with a Gaussian kernel on targets in closed form.

``<r_i, r_j>`` is that of :func:`calibrant._fused.cpu.normal_moments`. Means and targets are scaled so that exponentials are
powers of two; the logarithm of the kernel on predictions is added to each exponent, which saves a product and underflow.
"""

import math

import torch
import triton
import triton.language as tl

from calibrant._fused.cuda_launch import SOME, Shape, shape_of
from calibrant._fused.cuda_layout import LARGEST, far_apart, in_panels, scaled, step_of, upright
from calibrant._fused.cuda_moments import triangle
from calibrant._fused.cuda_pairs import columns_of, square_distances


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
