"""Whether what is built of the kernels is right on this device: pairs of two panels."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch
from gpu_data import HALF, WHOLE, normals, on_device, size_of, square_distances

from calibrant._fused import cuda, cuda_torch

ROWS, FIRST = size_of(3001, 200), size_of(1234, 70)

Check = tuple[str, Callable[[], float], float]


def apart(found: tuple[torch.Tensor, ...], h: torch.Tensor) -> float:
    """The largest error of a sum along a row or down a column relative to the sum of sizes, or of the sum of squares."""
    errors = [
        float(((sums - h.sum(dim=side)).abs() / h.abs().sum(dim=side)).max())
        for side, sums in ((1, found[0]), (0, found[1]))
    ]
    return max(*errors, abs(float(found[2] / (h * h).sum()) - 1))


def two_panels(precision: str, d: int) -> float:
    rng = np.random.default_rng(5)
    x, r = on_device(rng.dirichlet(np.ones(d), ROWS), rng.normal(size=(ROWS, d)))
    panels = (x[:FIRST], r[:FIRST]), (x[FIRST:], r[FIRST:])
    with cuda.using(precision):
        found = cuda.feature_cross(*panels, 0.4, False)
    distances = square_distances(panels[0][0], panels[1][0]).sqrt()
    return apart(found, torch.exp(-distances / 0.4) * (panels[0][1] @ panels[1][1].T))


def two_panels_of_normals(dtype: torch.dtype) -> float:
    """Next to tiles of torch in double precision; relative to the kernels on predictions."""
    data, settings = normals(ROWS), (0.7, False, 1.3)
    with cuda.using(str(dtype).removeprefix("torch.")):
        found = cuda.normal_cross(
            *(tuple(a[cut] for a in data) for cut in (slice(FIRST), slice(FIRST, None))), *settings
        )
    sums, squares = cuda_torch.normal_moments(*data, *settings, WHOLE, FIRST)
    sizes = torch.exp(-square_distances(data[0][:FIRST], data[0][FIRST:]).sqrt() / 0.7)
    scale = torch.cat([sizes.sum(dim=1), sizes.sum(dim=0)])
    error = float(((torch.cat(found[:2]) - sums).abs() / scale).max())
    return max(error, abs(float(2 * found[2] / squares) - 1))


def checks() -> Iterator[Check]:
    """Names, what gives the error, and the bound it must not exceed."""
    for precision, bound in (("float32", 2e-6), ("float64", 1e-12), ("tf32x3", 5e-3)):
        yield f"two panels, 10 columns, {precision}", partial(two_panels, precision, 10), bound
    yield "two panels, 1000 columns, dispatched", partial(two_panels, "float32", size_of(1000, 40)), 2e-6
    for dtype, bound in ((HALF, 2e-6), (WHOLE, 1e-12)):
        yield f"two panels of normals, {dtype}", partial(two_panels_of_normals, dtype), bound
