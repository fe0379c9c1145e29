"""Running sums over sorted points, compiled: the states behind products with one-dimensional kernels."""

import numpy as np
from numba import njit


def running_sums(x: np.ndarray, v: np.ndarray, order: int) -> np.ndarray:
    """``M_m(j) = sum_{i < j} s^m exp(-s) v_i``, ``s = x_j - x_i``, for m = 0 .. order <= 2; ``(order + 1, n, q)``.

    x ``(n,)`` is sorted; the sums are exact at any range, since each step multiplies by ``exp(-s) <= 1``.

    >>> running_sums(np.array([0.0, np.log(2.0)]), np.ones((2, 1)), 0)[0, :, 0]
    array([0. , 0.5])
    """
    x, v = np.ascontiguousarray(x, dtype=np.float64), np.ascontiguousarray(v, dtype=np.float64)
    return _sums(x, v, order)


@njit(cache=True, nogil=True)
def _sums(x: np.ndarray, v: np.ndarray, order: int) -> np.ndarray:
    n, q = v.shape
    out = np.zeros((order + 1, n, q))
    for j in range(1, n):
        step = x[j] - x[j - 1]
        decay = np.exp(-step)
        for c in range(q):
            whole = out[0, j - 1, c] + v[j - 1, c]
            out[0, j, c] = decay * whole
            if order > 0:
                first = out[1, j - 1, c]
                out[1, j, c] = decay * (first + step * whole)
                if order > 1:
                    out[2, j, c] = decay * (out[2, j - 1, c] + 2 * step * first + step * step * whole)
    return out
