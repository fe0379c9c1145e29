"""Whether the GPU kernels are right on this device: each against plain sums in double precision.

Errors of row sums are relative to the sums of sizes of their terms, so that cancellation hides nothing.
"""

from collections.abc import Callable, Iterator
from functools import partial

import gpu_engine_checks
import gpu_sweep
import numpy as np
import torch
from gpu_data import DEVICE, HALF, WHOLE, dirichlet, normals, on_device, reference, residuals, simplex, size_of

from calibrant._compiled import cuda, cuda_moments, cuda_products, cuda_resamples, cuda_softmax, cuda_torch
from calibrant._compiled import cuda_moments as cuda_normals

ROWS = size_of(3001, 200)
BOUNDS = {HALF: 2e-6, WHOLE: 1e-12}

Moments = Callable[..., tuple[torch.Tensor, torch.Tensor]]
Check = tuple[str, Callable[[], float], float]


def apart(found: tuple[torch.Tensor, torch.Tensor], x: torch.Tensor, r: torch.Tensor, gaussian: bool = False) -> float:
    """The largest error of a row sum relative to the sum of sizes of its terms, or of the sum of squares."""
    sums, sizes, squares = reference(x, r, 0.4, gaussian)
    return max(float(((found[0] - sums).abs() / sizes).max()), abs(float(found[1] / squares) - 1))


def features(d: int, q: int, gaussian: bool, work: Moments) -> float:
    rng = np.random.default_rng(1)
    x, r = on_device(
        rng.dirichlet(np.full(d, 0.3), ROWS) if d > 1 else rng.random((ROWS, 1)), rng.normal(size=(ROWS, q))
    )
    return apart(work(x, r, 0.4, gaussian), x, r, gaussian)


def classes(n: int, confident: bool, work: Moments, corners: bool = False) -> float:
    """Many rows, every row sum; with exact zeros and ones in half of the rows if so asked."""
    p, y = simplex(n, 10, confident=confident)
    if corners:
        whole = slice(0, n // 2)
        p[whole] = (p[whole] == p[whole].max(dim=1, keepdim=True).values).double()
        y[whole][5:] = p[whole].argmax(dim=1)[5:]  # all but five are right
        y[-1] = 9
    r = residuals(p, y)
    rows = r.norm(dim=1) > 0  # a residual of zero has a sum of zero
    found = work(p, r, 0.4, False)
    assert float(found[0][~rows].abs().sum()) == 0
    sums, sizes, squares = reference(p, r, 0.4, False)
    error = ((found[0] - sums).abs() / sizes)[rows].max()
    return max(float(error), abs(float(found[1] / squares) - 1))


def some_rows_of_many(n: int, work: Moments) -> float:
    """A million rows: the sums of 300 of them, at either end, around the ends of chunks, and anywhere."""
    p, y = simplex(n, 10, confident=True)
    r = residuals(p, y)
    found = work(p, r, 0.4, False)[0]
    ends = [i + j for i in range(0, n, 8192) for j in (-1, 0)][1:150]
    chosen = np.r_[0:20, n - 20 : n, ends, np.random.default_rng(0).integers(0, n, 120)] % n
    at = torch.as_tensor(np.unique(chosen), device=DEVICE)
    sums, sizes, _ = reference(p, r, 0.4, False, at)
    return float(((found[at] - sums).abs() / sizes).max())


def beyond_int32(d: int, work: Moments) -> float:
    """So many coordinates that places in memory do not fit 32 bits."""
    n = size_of(5000, 130)
    torch.manual_seed(0)
    x = torch.rand((n, size_of(d, 40)), device=DEVICE, dtype=HALF)
    r = torch.randn((n, 2), device=DEVICE, dtype=WHOLE)
    found = work(x, r, 100.0, False)
    whole = x.double() - 0.5
    own = (whole * whole).sum(dim=1)
    squares = torch.addmm(own[:, None] + own, whole, whole.T, alpha=-2).clamp_(min=0)
    h = (torch.exp(-squares.sqrt() / 100) * (r @ r.T)).fill_diagonal_(0)
    return float(((found[0] - h.sum(dim=1)).abs() / h.abs().sum(dim=1)).max())


def of_normals(n: int, d: int, dtype: torch.dtype) -> float:
    data = normals(n, d)
    found = cuda_normals.normal_moments(*data, 0.7, False, 1.3, dtype)
    right = cuda_torch.normal_moments(*data, 0.7, False, 1.3, WHOLE)
    ones = torch.ones((n, 1), dtype=WHOLE, device=DEVICE)
    scale = reference(data[0], ones, 0.7, False)[0]
    return max(float(((found[0] - right[0]).abs() / scale).max()), abs(float(found[1] / right[1]) - 1))


def product(dtype: torch.dtype) -> float:
    rng = np.random.default_rng(2)
    x, v = on_device(rng.normal(size=(ROWS, 10)), rng.normal(size=(ROWS, 12)))
    k = torch.exp(-torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist") / 2)
    return float(((cuda_moments.matmul(x, v, 2.0, False, dtype) - k @ v).abs() / (k @ v.abs())).max())


def blocks(size: int, dtype: torch.dtype) -> float:
    p, y = simplex(ROWS, 10)
    r = residuals(p, y)
    found = cuda_moments.block_sums(p, r, 0.4, False, size, dtype)
    errors = []
    for i, sum_of_block in enumerate(found):
        part = slice(i * size, (i + 1) * size)
        sums, sizes, _ = reference(p[part], r[part], 0.4, False)
        errors.append(abs(float(sum_of_block - sums.sum())) / float(sizes.sum()))
    return max(errors)


def regression(bandwidth: float, dtype: torch.dtype) -> float:
    """Averages and gradients of kernel regression; the largest error relative to the largest value."""
    p, y = simplex(ROWS, 10)
    found = []
    for exact in (True, False):
        queries, keys = dirichlet(p, bandwidth)
        queries.requires_grad_(), keys.requires_grad_()
        out = _softmax(queries, keys, y) if exact else cuda_softmax.class_averages(queries, keys, y, 10, dtype)
        total = sum(
            (part * torch.cos(torch.arange(part.numel(), device=DEVICE)).reshape(part.shape)).sum() for part in out
        )
        slopes = torch.autograd.grad(total, (queries, keys))
        found.append([*(part.detach() for part in out), *slopes])
    return max(float((a - b).abs().max() / a.abs().max()) for a, b in zip(*found, strict=True))


def _softmax(queries: torch.Tensor, keys: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    logs = (queries @ keys.T).masked_fill(torch.eye(len(y), dtype=torch.bool, device=y.device), -torch.inf)
    w, v = torch.softmax(logs, dim=1), torch.nn.functional.one_hot(y, 10).to(queries.dtype)
    return torch.logsumexp(logs, dim=1), w @ v, (w * w).sum(dim=1), (w * w) @ v


def resamples(n: int, dtype: torch.dtype) -> float:
    """Relative to the sum of all kernels."""
    p, _ = simplex(n, 10)
    y = torch.as_tensor(np.random.default_rng(3).integers(0, 10, (7, n)), device=DEVICE)
    ones = torch.ones(n, dtype=WHOLE, device=DEVICE)
    found = cuda_resamples.LabelSums(p, p, ones, 0.4, False, dtype)(y)
    right = torch.stack([reference(p, residuals(p, labels), 0.4, False)[0].sum() for labels in y])
    return float((found - right).abs().max() / reference(p, ones[:, None], 0.4, False)[0].sum())


def checks() -> Iterator[Check]:
    """Names, what gives the error, and the bound it must not exceed."""
    many = size_of(100_003, 300)
    for dtype, bound in BOUNDS.items():
        word, work = str(dtype).removeprefix("torch."), partial(_in_registers, dtype)
        for d, q in ((2, 2), (10, 10), (33, 20), 2 * (size_of(1000, 40),)):
            yield f"features {d} x {q}, {word}", partial(features, d, q, False, work), bound
        yield f"normals, 1 dimension, {word}", partial(of_normals, ROWS, 1, dtype), bound
        yield f"product, {word}", partial(product, dtype), bound
        yield f"blocks of 100, {word}", partial(blocks, 100, dtype), bound
        yield f"resamples, {word}", partial(resamples, ROWS, dtype), bound
        yield f"confident classes, {word}", partial(classes, size_of(20_001, 300), True, work), bound
    half = partial(_in_registers, HALF)
    yield "features 10 x 10, Gaussian, float32", partial(features, 10, 10, True, half), 2e-6
    yield "features 1000 x 1000, dispatched", partial(features, 1000, 1000, False, cuda.feature_moments), 2e-6
    yield "classes, 100,003 rows", partial(classes, many, False, half), 2e-6
    yield "confident classes, 100,003 rows", partial(classes, many, True, half), 2e-6
    yield "zeros and ones, 100,003 rows", partial(classes, many, True, half, corners=True), 2e-6
    yield "rows of 1,000,003", partial(some_rows_of_many, size_of(1_000_003, 300), half), 2e-6
    yield "430,000 coordinates", partial(beyond_int32, 430_000, half), 1e-4
    yield "normals, 100,003 rows", partial(of_normals, many, 1, HALF), 2e-6
    yield "normals, 3 dimensions", partial(of_normals, ROWS, 3, HALF), 2e-6
    yield "resamples, 60,001 rows", partial(resamples, size_of(60_001, 300), HALF), 2e-6
    yield "regression, bandwidth 0.05, float32", partial(regression, 0.05, HALF), 1e-5
    yield "regression, bandwidth 0.005, float32", partial(regression, 0.005, HALF), 1e-5
    yield "regression, bandwidth 0.05, float64", partial(regression, 0.05, WHOLE), 1e-11
    yield from _on_tensor_cores(many)
    yield from gpu_engine_checks.checks()
    yield "everything public, next to the host", gpu_sweep.how_many, 0.5


def _on_tensor_cores(many: int) -> Iterator[Check]:
    work = cuda_products.feature_moments
    for d in (10, 100, size_of(1000, 100)):
        yield f"features {d} x {d}, tf32x3", partial(features, d, d, False, work), 5e-3
    yield "classes, 100,003 rows, tf32x3", partial(classes, many, False, work), 5e-3
    yield "confident classes, 100,003 rows, tf32x3", partial(classes, many, True, work), 5e-3
    yield "zeros and ones, 100,003 rows, tf32x3", partial(classes, many, True, work, corners=True), 5e-3
    yield "rows of 1,000,003, tf32x3", partial(some_rows_of_many, size_of(1_000_003, 300), work), 5e-3
    yield "150,000 coordinates, tf32x3", partial(beyond_int32, 150_000, work), 5e-3


def _in_registers(
    dtype: torch.dtype, x: torch.Tensor, r: torch.Tensor, lengthscale: float, gaussian: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    return cuda_moments.feature_moments(x, r, lengthscale, gaussian, dtype)
