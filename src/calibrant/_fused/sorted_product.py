"""Kernel matrices of sorted numbers times vectors in O(n q), without storing the matrix.

A Matern kernel of half-integer order is a polynomial times an exponential, so the sum over all earlier points is
carried to the next point by a few numbers: ``S_j = (S_{j-1} + v_{j-1}) exp(-(x_j - x_{j-1}) / l)`` for the exponential
kernel. Every factor is between 0 and 1, so nothing overflows, whatever the range of x. Arrays are assumed finite and x
increasing; float32 input is computed in float64.
"""

import math

import numpy as np

from calibrant._fused.strips import EXACT, SUMS, compiled, exp_negative

CHUNK = 512
CUTOFF = 709.0  # in lengthscales: the kernel is 0 from here on, and powers of the step stay finite


@compiled(EXACT)
def _steps(x: np.ndarray, rate: float, start: int, step: np.ndarray, decay: np.ndarray) -> int:
    """Distances to the next point in lengthscales and their exponentials, from ``start`` on; returns how many."""
    here, there = x[start : start + CHUNK], x[start + 1 : start + 1 + CHUNK]
    for i in range(len(there)):
        step[i] = min(abs(there[i] - here[i]) * rate, CUTOFF)
        decay[i] = exp_negative(-step[i])
    return len(there)


@compiled(EXACT)
def _add_earlier(x: np.ndarray, v: np.ndarray, rate: float, order: int, out: np.ndarray) -> None:
    """Add the sum over all earlier points; ``order`` counts the powers of the distance in the kernel."""
    q = v.shape[1]
    zeroth, first, second = np.zeros(q), np.zeros(q), np.zeros(q)
    step, decay = np.empty(CHUNK), np.empty(CHUNK)
    for start in range(0, len(x) - 1, CHUNK):
        for i in range(_steps(x, rate, start, step, decay)):
            h, e = step[i], decay[i]
            before, target = v[start + i], out[start + i + 1]
            for c in range(q):
                s = zeroth[c] + before[c]
                zeroth[c] = s * e
                target[c] += zeroth[c]
                if order >= 1:
                    if order == 2:
                        second[c] = (second[c] + h * (2.0 * first[c] + h * s)) * e
                        target[c] += second[c] / 3.0
                    first[c] = (first[c] + h * s) * e
                    target[c] += first[c]


@compiled(EXACT)
def _pair_sum(x: np.ndarray, v: np.ndarray, rate: float) -> float:
    """One vector: the sum over earlier points is one multiplication and addition a point."""
    step, decay = np.empty(CHUNK), np.empty(CHUNK)
    total = state = 0.0
    for start in range(0, len(x) - 1, CHUNK):
        part = 0.0
        for i in range(_steps(x, rate, start, step, decay)):
            state = state * decay[i] + v[start + i] * decay[i]
            part += state * v[start + i + 1]
        total += part
    return total


@compiled(SUMS)
def _pair_sums(x: np.ndarray, v: np.ndarray, rate: float) -> float:
    """Several vectors."""
    step, decay, state = np.empty(CHUNK), np.empty(CHUNK), np.zeros(v.shape[1])
    total = 0.0
    for start in range(0, len(x) - 1, CHUNK):
        part = 0.0
        for i in range(_steps(x, rate, start, step, decay)):
            before, here = v[start + i], v[start + i + 1]
            for c in range(len(state)):
                state[c] = (state[c] + before[c]) * decay[i]
                part += state[c] * here[c]
        total += part
    return total


def _product(x: np.ndarray, v: np.ndarray, rate: float, order: int, diagonal: bool) -> np.ndarray:
    """Sums over earlier points, then over later ones as earlier ones of the reversed arrays."""
    x, v = np.ascontiguousarray(x, dtype=np.float64), np.ascontiguousarray(v, dtype=np.float64)
    out = v.copy() if diagonal else np.zeros_like(v)
    _add_earlier(x, v, rate, order, out)
    later = np.zeros_like(v)
    _add_earlier(x[::-1].copy(), v[::-1].copy(), rate, order, later)
    return out + later[::-1]


def exponential_product(x: np.ndarray, v: np.ndarray, lengthscale: float, diagonal: bool) -> np.ndarray:
    """``K @ v`` for x ``(n,)`` increasing, v ``(n, q)`` and ``K_ij = exp(-u)``, ``u = |x_i - x_j| / l``."""
    return _product(x, v, 1.0 / lengthscale, 0, diagonal)


def matern32_product(x: np.ndarray, v: np.ndarray, lengthscale: float, diagonal: bool) -> np.ndarray:
    """``K @ v`` for ``K_ij = (1 + u) exp(-u)``, ``u = sqrt(3) |x_i - x_j| / l``."""
    return _product(x, v, math.sqrt(3.0) / lengthscale, 1, diagonal)


def matern52_product(x: np.ndarray, v: np.ndarray, lengthscale: float, diagonal: bool) -> np.ndarray:
    """``K @ v`` for ``K_ij = (1 + u + u^2 / 3) exp(-u)``, ``u = sqrt(5) |x_i - x_j| / l``."""
    return _product(x, v, math.sqrt(5.0) / lengthscale, 2, diagonal)


def _sums_before(v: np.ndarray) -> np.ndarray:
    """Sums over all earlier rows."""
    return np.cumsum(np.concatenate([np.zeros_like(v[:1]), v[:-1]]), axis=0)


def energy_product(x: np.ndarray, v: np.ndarray, diagonal: bool) -> np.ndarray:
    """``K @ v`` for ``K_ij = (|x_i| + |x_j| - |x_i - x_j|) / 2``.

    That is ``min(|x_i|, |x_j|)`` for two numbers of one sign, else 0, so two running sums a sign give it without
    cancellation.
    """
    size, v = np.abs(x).astype(np.float64)[:, None], np.asarray(v, dtype=np.float64)
    split = int(np.searchsorted(x, 0.0))
    out = size * v if diagonal else np.zeros_like(v)
    # Both halves start at the number nearest to 0.
    for a, w, o in ((size[:split][::-1], v[:split][::-1], out[:split][::-1]), (size[split:], v[split:], out[split:])):
        o += _sums_before(a * w) + a * _sums_before(w[::-1])[::-1]
    return out


def exponential_pair_sum(x: np.ndarray, v: np.ndarray, lengthscale: float) -> float:
    """``sum_{i < j} exp(-|x_i - x_j| / l) v_i . v_j`` for x ``(n,)`` increasing and v ``(n,)`` or ``(n, q)``."""
    x, v = np.ascontiguousarray(x, dtype=np.float64), np.ascontiguousarray(v, dtype=np.float64)
    if v.size == len(x):
        return _pair_sum(x, v.ravel(), 1.0 / lengthscale)
    return _pair_sums(x, v, 1.0 / lengthscale)
