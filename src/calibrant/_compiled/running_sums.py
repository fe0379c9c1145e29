"""Running sums over sorted points, compiled: products with kernels that are a polynomial times an exponential."""

import numpy as np

from calibrant._compiled.cpu import compiled, exp_negative, fma

CHUNK = 512
"""Steps whose exponentials are taken together, as vector instructions."""

FARTHEST = 709.0
"""The exponential is 0 from here on, and powers of the distance stay finite."""


def running_sums(x: np.ndarray, v: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """``sum_{i != j} p(s) exp(-s) v_i`` with ``s = |x_j - x_i|`` and ``p(s) = sum_m coefficients[m] s^m``; ``(n, q)``.

    x ``(n,)`` is sorted. The sums ``M_m = sum s^m exp(-s) v_i`` over all points on one side are carried from point to
    point; each step multiplies by ``exp(-s) <= 1``, so that nothing overflows at any range. O(n q).

    >>> running_sums(np.array([0.0, np.log(2.0)]), np.ones((2, 1)), np.ones(1))[:, 0]
    array([0.5, 0.5])
    """
    x, v = np.ascontiguousarray(x, dtype=np.float64), np.ascontiguousarray(v, dtype=np.float64)
    out = np.zeros_like(v)
    _add_earlier(x, v, coefficients, out)
    _add_earlier(x[::-1], v[::-1], coefficients, out[::-1])
    return out


def pair_sums(x: np.ndarray, v: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """``sum_{i < j} p(s) exp(-s) v_i v_j`` of each column, ``(q,)``: one side is enough. O(n q).

    >>> pair_sums(np.array([0.0, np.log(2.0)]), np.array([[2.0], [3.0]]), np.ones(1))
    array([3.])
    """
    x, v = np.ascontiguousarray(x, dtype=np.float64), np.ascontiguousarray(v, dtype=np.float64)
    total = np.zeros(v.shape[1])
    _add_pairs(x, v, coefficients, total)
    return total


@compiled
def _steps(x: np.ndarray, start: int, step: np.ndarray, decay: np.ndarray) -> int:
    """Distances to the next point and their exponentials, from ``start`` on; returns how many."""
    count = min(CHUNK, len(x) - 1 - start)
    for i in range(count):
        step[i] = min(abs(x[start + i + 1] - x[start + i]), FARTHEST)
        decay[i] = exp_negative(-step[i])
    return count


@compiled
def _advance(state: np.ndarray, v: np.ndarray, step: float, decay: float) -> None:
    """Take in the values v of a point, and move all sums to the next."""
    order, q = state.shape[0] - 1, state.shape[1]
    for c in range(q):
        state[0, c] += v[c]
    # (s + t)^m in powers of s, by Pascal's triangle in place: M_m += t M_{m-1}, from the last one down, m times.
    for times in range(order):
        for m in range(order, times, -1):
            for c in range(q):
                state[m, c] = fma(step, state[m - 1, c], state[m, c])
    for m in range(order + 1):
        for c in range(q):
            state[m, c] *= decay


@compiled
def _add_earlier(x: np.ndarray, v: np.ndarray, coefficients: np.ndarray, out: np.ndarray) -> None:
    """Add the sums over all earlier points."""
    state, step, decay = np.zeros((len(coefficients), v.shape[1])), np.empty(CHUNK), np.empty(CHUNK)
    for start in range(0, len(x) - 1, CHUNK):
        for i in range(_steps(x, start, step, decay)):
            _advance(state, v[start + i], step[i], decay[i])
            for m in range(len(coefficients)):
                for c in range(v.shape[1]):
                    out[start + i + 1, c] = fma(coefficients[m], state[m, c], out[start + i + 1, c])


@compiled
def _add_pairs(x: np.ndarray, v: np.ndarray, coefficients: np.ndarray, total: np.ndarray) -> None:
    """Add the products with the sums over all earlier points."""
    state, step, decay = np.zeros((len(coefficients), v.shape[1])), np.empty(CHUNK), np.empty(CHUNK)
    for start in range(0, len(x) - 1, CHUNK):
        for i in range(_steps(x, start, step, decay)):
            _advance(state, v[start + i], step[i], decay[i])
            for m in range(len(coefficients)):
                for c in range(v.shape[1]):
                    total[c] = fma(coefficients[m] * state[m, c], v[start + i + 1, c], total[c])
