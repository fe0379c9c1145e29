"""Sums over all pairs of rows of tensors on a GPU: Triton where it is installed, else plain torch in large tiles.

The functions are those of :mod:`calibrant._compiled.cpu`; results stay on the device, in double precision. Pairs are computed
in the precision that :func:`calibrant.engines.precision` chose, single by default, and added up in double precision.
"""

from functools import partial
from typing import Any, TypeAlias

import torch

from calibrant._compiled import cuda_torch
from calibrant._compiled.choice import has_triton, precision_in_force, tell_of_shortening
from calibrant._compiled.cuda_memory import joined, memory_for

WIDE = 512
"""Columns of coordinates and residuals from which on products of matrices are faster than differences in registers."""

OFTEN_NEAR = 0.01
"""Part of pairs near each other from which on they are not."""

PAIRS = "sums over pairs"
"""What there may be no memory for."""

Sums: TypeAlias = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""Along rows, down columns, and of squares."""


def dtype_of_pairs(*inputs: torch.Tensor) -> torch.dtype:
    """The number format of single pairs of rows of these tensors; what is shortened to it is noted."""
    if any(x.dtype is torch.float64 for x in inputs):
        tell_of_shortening()
    return torch.float64 if precision_in_force() == "float64" else torch.float32


def feature_moments(
    x: torch.Tensor, r: torch.Tensor, lengthscale: float, gaussian: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sums of ``h_ij = k(|x_i - x_j|) <r_i, r_j>`` over ``j != i`` of each row, and of ``h^2`` over ``i != j``."""
    with memory_for(PAIRS, len(x)):
        return _features(x, r)(x, r, lengthscale, gaussian)


def feature_cross(
    left: tuple[torch.Tensor, torch.Tensor],
    right: tuple[torch.Tensor, torch.Tensor],
    lengthscale: float,
    gaussian: bool,
) -> Sums:
    """The same over the pairs of two sets of rows ``(x, r)``: sums along rows, down columns, of squares."""
    first = len(left[0])
    with memory_for(PAIRS, first + len(right[0])):
        both = joined(left, right)
        sums, squares = _features(*both)(*both, lengthscale, gaussian, first=first)
    return sums[:first], sums[first:], squares / 2


def _features(x: torch.Tensor, r: torch.Tensor) -> Any:
    """The fastest of those that are right for so many columns in this precision."""
    dtype = dtype_of_pairs(x, r)
    if has_triton() and precision_in_force() == "tf32x3":
        from calibrant._compiled import cuda_products

        return cuda_products.feature_moments
    is_wide = x.shape[1] + r.shape[1] >= WIDE and cuda_torch.near_pairs(x) < OFTEN_NEAR
    if is_wide or not has_triton():
        return partial(cuda_torch.feature_moments, dtype=dtype)
    from calibrant._compiled import cuda_moments

    return partial(cuda_moments.feature_moments, dtype=dtype)


def normal_moments(
    x: torch.Tensor, mu: torch.Tensor, s: torch.Tensor, y: torch.Tensor, lengthscale: float, gaussian: bool,
    target_lengthscale: float,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """The same for normal predictions with a Gaussian kernel on targets: mu and y ``(n, d)``, s ``(n,)``."""
    with memory_for(PAIRS, len(x)):
        return _normals(x, mu, y)(x, mu, s, y, lengthscale, gaussian, target_lengthscale)


def normal_cross(
    left: tuple[torch.Tensor, ...],
    right: tuple[torch.Tensor, ...],
    lengthscale: float,
    gaussian: bool,
    target_lengthscale: float,
) -> Sums:
    """The same over the pairs of two sets of rows ``(x, mu, s, y)``."""
    first = len(left[0])
    with memory_for(PAIRS, first + len(right[0])):
        both = joined(left, right)
        sums, squares = _normals(*both)(*both, lengthscale, gaussian, target_lengthscale, first=first)
    return sums[:first], sums[first:], squares / 2


def _normals(*inputs: torch.Tensor) -> Any:
    dtype = dtype_of_pairs(*inputs)
    if not has_triton():
        return partial(cuda_torch.normal_moments, dtype=dtype)
    from calibrant._compiled import cuda_moments

    return partial(cuda_moments.normal_moments, dtype=dtype)


def matmul(x: torch.Tensor, v: torch.Tensor, lengthscale: float, gaussian: bool) -> torch.Tensor:
    """``K @ v`` for v ``(n, q)``, with the diagonal; by tensor cores in no precision."""
    with memory_for("products with a kernel matrix", len(x)):
        if not has_triton():
            return cuda_torch.matmul(x, v, lengthscale, gaussian, dtype_of_pairs(x, v))
        from calibrant._compiled import cuda_moments

        return cuda_moments.matmul(x, v, lengthscale, gaussian, dtype_of_pairs(x, v))


def block_sums(x: torch.Tensor, r: torch.Tensor, lengthscale: float, gaussian: bool, size: int) -> Any:
    """Sums of h over pairs within consecutive blocks of so many rows; ``NotImplemented`` without Triton."""
    if not has_triton():
        return NotImplemented
    from calibrant._compiled import cuda_moments

    with memory_for("sums over blocks", len(x)):
        return cuda_moments.block_sums(x, r, lengthscale, gaussian, size, dtype_of_pairs(x, r))


def class_averages(queries: torch.Tensor, keys: torch.Tensor, labels: torch.Tensor, n_classes: int) -> Any:
    """Softmax averages of labels, with gradients; ``NotImplemented`` without Triton, or for very many columns."""
    if not has_triton():
        return NotImplemented
    from calibrant._compiled import cuda_softmax

    if queries.shape[1] > cuda_softmax.WIDEST:
        return NotImplemented
    with memory_for("kernel regression", len(queries)):
        return cuda_softmax.class_averages(queries, keys, labels, n_classes, dtype_of_pairs(queries))
