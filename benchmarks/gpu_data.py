"""Data of the GPU benchmarks, and the sums they are compared with."""

from dataclasses import replace

import numpy as np
import torch
from gpu_record import DEVICE, IS_GPU

from calibrant._compiled.cuda_launch import SHAPES

HALF, WHOLE = torch.float32, torch.float64

PANEL = 1 << 28
"""Pairs that are in memory at a time."""


def size_of(on_gpu: int, otherwise: int) -> int:
    """Rows on a GPU, and where the interpreter tries the script."""
    return on_gpu if IS_GPU else otherwise


def coarse_shapes() -> None:
    """Large blocks, for the interpreter: it takes as long for a small one."""
    for kind, (first, *_) in SHAPES.items():
        SHAPES[kind] = (replace(first, rows=max(64, first.rows), columns=max(64, first.columns)),)


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


def dirichlet(p: torch.Tensor, bandwidth: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Queries and keys of points without zeros, as :class:`calibrant.estimators.simplex.dirichlet.DirichletRows` has them."""
    alpha = p / bandwidth
    bias = torch.lgamma(alpha.sum(dim=1) + p.shape[1]) - torch.lgamma(alpha + 1).sum(dim=1)
    return torch.cat([p.log(), torch.ones_like(p[:, :1])], dim=1), torch.cat([alpha, bias[:, None]], dim=1)


def reference(
    x: torch.Tensor, r: torch.Tensor, lengthscale: float, gaussian: bool, rows: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Sums of h over the other rows, of its size, and of its squares over all pairs, in double precision.

    Panels of rows against all columns: no code of the library, no symmetry. Some ``rows``, or all.
    """
    x, r = x.double(), r.double()
    chosen = torch.arange(len(x), device=x.device) if rows is None else rows
    sums, sizes, squares = [], [], torch.zeros((), dtype=WHOLE, device=x.device)
    for part in chosen.split(max(1, PANEL // len(x))):
        distance = square_distances(x[part], x)
        k = torch.exp(-0.5 * distance / lengthscale**2 if gaussian else -distance.sqrt() / lengthscale)
        h = k * (r[part] @ r.T)
        h[torch.arange(len(part), device=x.device), part] = 0
        sums.append(h.sum(dim=1))
        sizes.append(h.abs().sum(dim=1))
        squares += (h * h).sum()
    return torch.cat(sums), torch.cat(sizes), squares


def square_distances(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Coordinate by coordinate; of very many rows and coordinates, by products."""
    if a.shape[1] > 64 and len(b) > 10_000:
        own, other = (a * a).sum(dim=1), (b * b).sum(dim=1)
        return torch.addmm(own[:, None] + other, a, b.T, alpha=-2).clamp_(min=0)
    out = torch.zeros((len(a), len(b)), dtype=a.dtype, device=a.device)
    for c in range(a.shape[1]):
        out += (a[:, c, None] - b[None, :, c]).square_()
    return out
