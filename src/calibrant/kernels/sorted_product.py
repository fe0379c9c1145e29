"""Products with kernel matrices of sorted one-dimensional points, in O(n) or O(n log n) instead of O(n^2).

With ``s = (x_j - x_i) / l``, kernels that are a polynomial in s times ``exp(-s)`` split into running sums
``M_m(j) = sum_{i < j} s^m exp(-s) v_i``. Moving such a sum from ``x_i`` to ``x_j`` multiplies by ``exp(-s) <= 1``, so nothing
overflows at any range. NumPy arrays take one compiled pass; other libraries add up by doubling, in log n vectorised steps.
"""

import math

import numpy as np

from calibrant._array import namespace
from calibrant.typing import Array


def exponential_product(x: Array, v: Array, lengthscale: float, *, diagonal: bool) -> Array:
    """``K @ v`` for ``exp(-d / l)``; x ``(n,)`` sorted, v ``(n, q)``."""
    (left,), (right,) = _both_sides(x / lengthscale, v, 0)
    return left + right + (v if diagonal else 0)


def matern_product(x: Array, v: Array, lengthscale: float, smoothness: float, *, diagonal: bool) -> Array:
    """``K @ v`` for the Matérn kernels of smoothness 3/2 and 5/2; x ``(n,)`` sorted, v ``(n, q)``."""
    factors = (1.0, 1.0) if smoothness == 1.5 else (1.0, 1.0, 1 / 3)
    left, right = _both_sides(math.sqrt(2 * smoothness) * x / lengthscale, v, len(factors) - 1)
    total = sum(f * (a + b) for f, a, b in zip(factors, left, right, strict=True))
    return total + (v if diagonal else 0)


def energy_product(x: Array, v: Array, *, diagonal: bool) -> Array:
    """``K @ v`` for ``(|x| + |y| - |x - y|) / 2``; x ``(n,)`` sorted, v ``(n, q)``."""
    xp = namespace(x, v)
    x = x[:, None]
    below, moments = xp.cumulative_sum(v, axis=0), xp.cumulative_sum(x * v, axis=0)
    total, moment = below[-1:, :], moments[-1:, :]
    distances = x * (2 * below - total) + moment - 2 * moments
    product = (xp.abs(x) * total + xp.sum(xp.abs(x) * v, axis=0, keepdims=True) - distances) / 2
    return product if diagonal else product - xp.abs(x) * v


def _both_sides(x: Array, v: Array, order: int) -> tuple[list[Array], list[Array]]:
    """Running sums of the points to the left and to the right of each."""
    xp = namespace(x, v)
    if isinstance(v, np.ndarray) and isinstance(x, np.ndarray):
        from calibrant._fused.running_sums import running_sums

        mirrored = running_sums(-x[::-1], v[::-1], order)
        return list(running_sums(x, v, order)), [part[::-1] for part in mirrored]
    right = _doubled(-xp.flip(x), xp.flip(v, axis=0), order)
    return _doubled(x, v, order), [xp.flip(part, axis=0) for part in right]


def _doubled(x: Array, v: Array, order: int) -> list[Array]:
    """``M_0 .. M_order`` of the points strictly to the left, by doubling the stretch that is summed."""
    xp = namespace(x, v)
    n = x.shape[0]
    sums = [v] + [xp.zeros_like(v)] * order
    step = 1
    while step < n:
        moved = _move([part[: n - step, :] for part in sums], (x[step:] - x[: n - step])[:, None])
        sums = [xp.concat([part[:step, :], part[step:, :] + new]) for part, new in zip(sums, moved, strict=True)]
        step *= 2
    moved = _move([part[: n - 1, :] for part in sums], (x[1:] - x[: n - 1])[:, None])
    nothing = xp.zeros_like(v[:1, :])
    return [xp.concat([nothing, part]) for part in moved]


def _move(sums: list[Array], distance: Array) -> list[Array]:
    """Running sums as seen from further right: ``(s + t)^m exp(-(s + t))`` expanded in powers of s."""
    decay = namespace(distance).exp(-distance)
    return [
        decay * sum(math.comb(m, j) * distance ** (m - j) * sums[j] for j in range(m + 1)) for m in range(len(sums))
    ]
