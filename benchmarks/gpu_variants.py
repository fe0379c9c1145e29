"""Other shapes of and other ways to the same sums on a GPU, to see that those in the library are the fastest that are right."""

from collections.abc import Iterator
from typing import Any

import torch
from gpu_data import residuals, simplex

from calibrant._compiled import cuda_moments, cuda_torch
from calibrant._compiled.cuda_launch import Shape
from calibrant._compiled.cuda_memory import filled, in_three, scaled, upright
from calibrant._compiled.cuda_moments import feature_triangle, triangle
from calibrant._compiled.cuda_products import product_triangle


def variants(x: torch.Tensor, r: torch.Tensor, lengthscale: float) -> Iterator[tuple[str, Any]]:
    """Names and functions that give moments with the exponential kernel; x and r have 10 columns."""
    points, values = scaled(x, lengthscale, False, torch.float32), r.float()
    a, b, d = upright(points), upright(values), x.shape[1]
    differences = {"D": d, "D_STEP": d, "Q": d, "Q_STEP": d, "GAUSSIAN": False}
    shapes = (8, 128, 1), (4, 128, 1), (16, 128, 1), (16, 128, 2), (64, 64, 2)
    for shape in (*(Shape(*sizes) for sizes in shapes), Shape(8, 128, 1, chunk=32768), Shape(8, 128, 1, chunk=2048)):
        yield (
            f"differences, {brief(shape)}",
            lambda shape=shape: triangle(feature_triangle, (a, b), a.shape[1], shape, differences),
        )
    norms = filled((points.double() ** 2).sum(dim=1, keepdim=True).float())[:, 0].contiguous()
    c, e = in_three(points)
    three = (-2 * c, e, norms, *in_three(values))
    thrice = {"D": 32, "D_STEP": 32, "Q": 32, "Q_STEP": 32, "GAUSSIAN": False, "PRECISION": "tf32"}
    for shape in (Shape(64, 128, 4, 16384), Shape(64, 128, 4, stages=2), Shape(128, 128, 8)):
        yield (
            f"dot in three, {brief(shape)}",
            lambda shape=shape: triangle(product_triangle, three, len(norms), shape, thrice, by_column=True),
        )


def wide(n: int, columns: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    """Differences in registers next to products of matrices, for many classes."""
    for k in columns:
        p, y = simplex(n, k, confident=True)
        r = residuals(p, y)
        settings = p, r, 0.5, False, torch.float32
        yield f"k={k}, differences", lambda settings=settings: cuda_moments.feature_moments(*settings)
        yield f"k={k}, products", lambda settings=settings: cuda_torch.feature_moments(*settings)


def brief(shape: Shape) -> str:
    """The numbers of a shape."""
    return f"{shape.rows} x {shape.columns}, {shape.warps} warps, chunk {shape.chunk}, {shape.stages} stages"
