"""Products with kernel matrices of sorted one-dimensional points, in O(n) or O(n log n) instead of O(n^2).

Kernels that are a polynomial in the distance s times ``exp(-s)`` split into running sums
``M_m(j) = sum_{i < j} s^m exp(-s) v_i``. Moving such a sum from ``x_i`` to ``x_j`` multiplies by ``exp(-s) <= 1``, so nothing
overflows at any range. NumPy arrays take one compiled pass a side; other libraries add up by doubling, in log n vectorised
steps.
"""

import math
from collections.abc import Sequence

import numpy as np

from calibrant._array import namespace
from calibrant.typing import Array


def exponential_product(
    x: Array, v: Array, rate: float, coefficients: Sequence[float], *, diagonal: bool, power: int
) -> Array:
    """``K @ v`` for ``K_ij = (p(s) exp(-s))^power``, ``s = rate |x_i - x_j|``, p of the coefficients; v ``(n, q)``."""
    polynomial = np.ones(1)
    for _ in range(power):
        polynomial = np.convolve(polynomial, coefficients)
    scaled = polynomial / float(power) ** np.arange(len(polynomial))  # in powers of power * s
    product = _both_sides(rate * power * (x - x[:1]), v, scaled)
    return product + float(polynomial[0]) * v if diagonal else product


def exponential_pair_sums(x: np.ndarray, v: np.ndarray, rate: float, coefficients: Sequence[float]) -> np.ndarray:
    """``sum_{i < j} p(s) exp(-s) v_i v_j`` of each column of v ``(n, q)``, in one compiled pass."""
    from calibrant._fused.running_sums import pair_sums

    return pair_sums(rate * (x - x[:1]), v, np.asarray(coefficients))


def energy_product(x: Array, v: Array, *, diagonal: bool, power: int) -> Array:
    """``K @ v`` for ``K_ij = ((|x_i| + |x_j| - |x_i - x_j|) / 2)^power``: the smaller of two numbers of one sign, else 0."""
    xp = namespace(x, v)
    x = x[:, None]
    size = xp.abs(x) ** power
    product = _smaller(size, xp.where(x > 0, v, xp.zeros_like(v)))
    mirrored = _smaller(xp.flip(size, axis=0), xp.flip(xp.where(x < 0, v, xp.zeros_like(v)), axis=0))
    product = xp.where(x > 0, product, xp.flip(mirrored, axis=0))
    return product if diagonal else product - size * v


def _smaller(size: Array, v: Array) -> Array:
    """``sum_i min(size_i, size_j) v_i`` of increasing sizes."""
    xp = namespace(size, v)
    below = xp.cumulative_sum(v, axis=0)
    return xp.cumulative_sum(size * v, axis=0) + size * (below[-1:, :] - below)


def _both_sides(x: Array, v: Array, coefficients: np.ndarray) -> Array:
    """Sums over the points to the left and to the right of each."""
    xp = namespace(x, v)
    if isinstance(v, np.ndarray) and isinstance(x, np.ndarray):
        from calibrant._fused.running_sums import running_sums

        return running_sums(x, v, coefficients)
    left = _doubled(x, v, coefficients)
    return left + xp.flip(_doubled(-xp.flip(x), xp.flip(v, axis=0), coefficients), axis=0)


def _doubled(x: Array, v: Array, coefficients: np.ndarray) -> Array:
    """Sums over the points strictly to the left, by doubling the stretch that is summed."""
    xp = namespace(x, v)
    n = x.shape[0]
    sums = [v] + [xp.zeros_like(v)] * (len(coefficients) - 1)
    step = 1
    while step < n:
        moved = _move([part[: n - step, :] for part in sums], (x[step:] - x[: n - step])[:, None])
        sums = [xp.concat([part[:step, :], part[step:, :] + new]) for part, new in zip(sums, moved, strict=True)]
        step *= 2
    moved = _move([part[: n - 1, :] for part in sums], (x[1:] - x[: n - 1])[:, None])
    total = sum(float(c) * part for c, part in zip(coefficients, moved, strict=True))
    return xp.concat([xp.zeros_like(v[:1, :]), total])


def _move(sums: list[Array], distance: Array) -> list[Array]:
    """Running sums as seen from further right: ``(s + t)^m exp(-(s + t))`` expanded in powers of s."""
    decay = namespace(distance).exp(-distance)
    return [
        decay * sum(math.comb(m, j) * distance ** (m - j) * sums[j] for j in range(m + 1)) for m in range(len(sums))
    ]
