"""Whether the GPU kernels are right on this device: each against plain torch in double precision at a moderate size."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch
from gpu_record import DEVICE, IS_GPU

from calibrant._fused import cuda_moments, cuda_normals, cuda_products, cuda_redraws, cuda_softmax, cuda_torch

ROWS = 3000 if IS_GPU else 200
HALF, WHOLE = torch.float32, torch.float64
BOUNDS = {HALF: 2e-6, WHOLE: 1e-12}


def on_device(*arrays: np.ndarray) -> list[torch.Tensor]:
    return [torch.as_tensor(a, device=DEVICE) for a in arrays]


def simplex(n: int, k: int, *, confident: bool = False, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Predictions of k classes and labels of a model that is not calibrated: in the middle, or close to the corners."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.02 if confident else 1.0), n).clip(1e-12)
    p /= p.sum(axis=1, keepdims=True)
    sharp = np.cumsum(p**1.5, axis=1)
    y = (rng.random((n, 1)) * sharp[:, -1:] > sharp).sum(axis=1)
    return on_device(p, y.astype(np.int64))  # type: ignore[return-value]


def residuals(p: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.one_hot(y, p.shape[1]) - p


def normals(n: int, d: int = 1) -> list[torch.Tensor]:
    """Coordinates, means, standard deviations and targets."""
    rng = np.random.default_rng(0)
    mu, s = rng.normal(size=(n, d)), rng.uniform(0.5, 2, n)
    return on_device(np.column_stack([mu, s]), mu, s, mu + 1.2 * s[:, None] * rng.normal(size=(n, d)))


def kernel(x: torch.Tensor, lengthscale: float, gaussian: bool) -> torch.Tensor:
    distance = torch.cdist(x.double(), x.double(), compute_mode="donot_use_mm_for_euclid_dist") / lengthscale
    return torch.exp(-0.5 * distance**2 if gaussian else -distance)


def features(d: int, q: int, gaussian: bool, work: Callable[..., tuple[torch.Tensor, torch.Tensor]]) -> float:
    rng = np.random.default_rng(1)
    x, r = on_device(
        rng.dirichlet(np.full(d, 0.3), ROWS) if d > 1 else rng.random((ROWS, 1)), rng.normal(size=(ROWS, q))
    )
    return apart(work(x, r, 0.4, gaussian), kernel(x, 0.4, gaussian), r)


def apart(found: tuple[torch.Tensor, torch.Tensor], k: torch.Tensor, r: torch.Tensor) -> float:
    """The largest error of a row sum relative to the sum of sizes of its terms, or of the sum of squares."""
    h = (k * (r @ r.T)).fill_diagonal_(0)
    rows = ((found[0] - h.sum(dim=1)).abs() / h.abs().sum(dim=1)).max()
    return max(float(rows), abs(float(found[1] / (h * h).sum()) - 1))


def classes(k: int, confident: bool, gaussian: bool, work: Callable[..., tuple[torch.Tensor, torch.Tensor]]) -> float:
    p, y = simplex(max(ROWS, 1100 * k) if IS_GPU else ROWS, k, confident=confident)
    r = residuals(p, y)
    return apart(work(p, r, 0.4, gaussian), kernel(p, 0.4, gaussian), r)


def of_normals(d: int, dtype: torch.dtype) -> float:
    data = normals(ROWS, d)
    found = cuda_normals.normal_moments(*data, 0.7, False, 1.3, dtype)
    right = cuda_torch.normal_moments(*data, 0.7, False, 1.3, WHOLE)
    scale = kernel(data[0], 0.7, False).sum(dim=1)
    return max(float(((found[0] - right[0]).abs() / scale).max()), abs(float(found[1] / right[1]) - 1))


def product(dtype: torch.dtype) -> float:
    rng = np.random.default_rng(2)
    x, v = on_device(rng.normal(size=(ROWS, 10)), rng.normal(size=(ROWS, 12)))
    k = kernel(x, 2.0, False)
    return float(((cuda_moments.matmul(x, v, 2.0, False, dtype) - k @ v).abs() / (k @ v.abs())).max())


def blocks(size: int, dtype: torch.dtype) -> float:
    p, y = simplex(ROWS, 10)
    r = residuals(p, y)
    h = (kernel(p, 0.4, False) * (r @ r.T)).fill_diagonal_(0)
    whole = ROWS // size * size
    cut = h[:whole, :whole].reshape(whole // size, size, whole // size, size)
    right, scale = (part.diagonal(dim1=0, dim2=2).sum(dim=(0, 1)) for part in (cut, cut.abs()))
    found = cuda_moments.block_sums(p, r, 0.4, False, size, dtype)
    return float(((found - right).abs() / scale).max())


def regression(bandwidth: float, dtype: torch.dtype) -> float:
    """Averages and gradients of kernel regression; the largest error relative to the largest value."""
    p, y = simplex(ROWS, 10)
    found = []
    for exact in (True, False):
        queries, keys = dirichlet(p, bandwidth)
        queries.requires_grad_(), keys.requires_grad_()
        out = softmax(queries, keys, y) if exact else cuda_softmax.class_averages(queries, keys, y, 10, dtype)
        total = sum(
            (part * torch.cos(torch.arange(part.numel(), device=DEVICE)).reshape(part.shape)).sum() for part in out
        )
        slopes = torch.autograd.grad(total, (queries, keys))
        found.append([*(part.detach() for part in out), *slopes])
    return max(float((a - b).abs().max() / a.abs().max()) for a, b in zip(*found, strict=True))


def dirichlet(p: torch.Tensor, bandwidth: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Queries and keys of points without zeros, as :class:`calibrant.estimators.dirichlet.DirichletRows` has them."""
    alpha = p / bandwidth
    bias = torch.lgamma(alpha.sum(dim=1) + p.shape[1]) - torch.lgamma(alpha + 1).sum(dim=1)
    return torch.cat([p.log(), torch.ones_like(p[:, :1])], dim=1), torch.cat([alpha, bias[:, None]], dim=1)


def softmax(queries: torch.Tensor, keys: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    logs = (queries @ keys.T).masked_fill(torch.eye(len(y), dtype=torch.bool, device=y.device), -torch.inf)
    w, v = torch.softmax(logs, dim=1), torch.nn.functional.one_hot(y, 10).to(queries.dtype)
    return torch.logsumexp(logs, dim=1), w @ v, (w * w).sum(dim=1), (w * w) @ v


def redraws(dtype: torch.dtype) -> float:
    p, _ = simplex(ROWS, 10)
    y = torch.as_tensor(np.random.default_rng(3).integers(0, 10, (7, ROWS)), device=DEVICE)
    k = kernel(p, 0.4, False).fill_diagonal_(0)
    found = cuda_redraws.LabelSums(p, p, torch.ones(ROWS, dtype=WHOLE, device=DEVICE), 0.4, False, dtype)(y)
    right = torch.stack([torch.einsum("ij,iq,jq->", k, r, r) for r in (residuals(p, labels) for labels in y)])
    return float((found - right).abs().max() / k.sum())


def checks() -> Iterator[tuple[str, Callable[[], float], float]]:
    """Names, what gives the error, and the bound it must not exceed."""
    for dtype, bound in BOUNDS.items():
        word = str(dtype).removeprefix("torch.")
        work = partial(_in_registers, dtype)
        for d, q in ((2, 2), (10, 10), (33, 20), (1000, 1000)):
            yield f"features {d} x {q}, {word}", partial(features, d, q, False, work), bound
        yield f"normals, 1 dimension, {word}", partial(of_normals, 1, dtype), bound
        yield f"product, {word}", partial(product, dtype), bound
        yield f"blocks of 100, {word}", partial(blocks, 100, dtype), bound
        yield f"redraws, {word}", partial(redraws, dtype), bound
    yield "features 10 x 10, Gaussian, float32", partial(features, 10, 10, True, partial(_in_registers, HALF)), 2e-6
    yield "classes 10, float32", partial(classes, 10, False, False, partial(_in_registers, HALF)), 2e-6
    yield "classes 10, confident, float32", partial(classes, 10, True, False, partial(_in_registers, HALF)), 2e-6
    yield "normals, 3 dimensions, float32", partial(of_normals, 3, HALF), 2e-6
    yield "regression, bandwidth 0.05, float32", partial(regression, 0.05, HALF), 1e-5
    yield "regression, bandwidth 0.005, float32", partial(regression, 0.005, HALF), 1e-5
    yield "regression, bandwidth 0.05, float64", partial(regression, 0.05, WHOLE), 1e-11
    for d in (10, 100, 1000):
        yield f"features {d} x {d}, tf32x3", partial(features, d, d, False, cuda_products.feature_moments), 5e-3
    yield "classes 10, tf32x3", partial(classes, 10, False, False, cuda_products.feature_moments), 5e-3
    yield "classes 10, confident, tf32x3", partial(classes, 10, True, False, cuda_products.feature_moments), 5e-3


def _in_registers(
    dtype: torch.dtype, x: torch.Tensor, r: torch.Tensor, lengthscale: float, gaussian: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    return cuda_moments.feature_moments(x, r, lengthscale, gaussian, dtype)
