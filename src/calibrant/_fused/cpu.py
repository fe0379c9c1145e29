"""Sums over all pairs of rows of a kernel times an inner product, without storing the ``n x n`` matrix.

The threads are ordinary Python threads over compiled code that releases the interpreter: numba's own parallel loops
abort the process when two threads enter them at once (workqueue) or after a fork (GNU OpenMP). The work is cut into
``GROUPS`` parts that are added in order, so the digits do not depend on the number of threads; ``threads=None`` takes
``NUMBA_NUM_THREADS``, by default all cores.

Arrays are assumed finite, lengthscales positive; float32 input is computed in float64. O(n^2 (d + q)) time,
O(n (d + q)) memory.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np

from calibrant._fused.strips import BLOCK, GROUPS, Law, matmul_block, rectangle, triangle

Moments = tuple[float, float, np.ndarray, float]


def _filled(x: np.ndarray) -> np.ndarray:
    """Rows in float64, filled up with zeros to whole blocks and to a multiple of 4 features, ``(blocks, BLOCK, d)``."""
    n, d = x.shape
    filled = np.zeros((-(-n // BLOCK), BLOCK, -(-d // 4) * 4))
    filled.reshape(-1, filled.shape[2])[:n, :d] = x
    return filled


def _packed(x: np.ndarray) -> np.ndarray:
    """Blocks of rows, one feature after the other, ``(blocks, d BLOCK)``."""
    filled = _filled(x)
    return np.ascontiguousarray(filled.transpose(0, 2, 1)).reshape(len(filled), -1)


def _law(lengthscale: float, gaussian: bool, g: float = 0.0) -> Law:
    """Factor of the distance or squared distance, kept finite so that equal rows have kernel 1."""
    return -min(0.5 / lengthscale / lengthscale if gaussian else 1.0 / lengthscale, 1e300), gaussian, g


def _in_threads(work: Callable[[int], None], parts: int, threads: int | None) -> None:
    """Call ``work`` with the number of each part."""
    workers = min(parts, vars(numba.config)["NUMBA_NUM_THREADS"] if threads is None else threads)
    if workers <= 1:
        for part in range(parts):
            work(part)
    else:
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(work, range(parts)))


def _pairs(
    x: np.ndarray, r: np.ndarray, law: Law, threads: int | None, row_sums: bool
) -> tuple[float, float, np.ndarray]:
    """Sum and sum of squares above the diagonal, and row sums off it; only the first without row sums."""
    a, b = _packed(x), _packed(r)
    groups = min(GROUPS, len(a))
    total, sums = np.zeros((groups, 2)), np.zeros((groups, len(a) if row_sums else 0, BLOCK))
    _in_threads(lambda group: triangle(a, b, law, len(x), group, total[group], sums[group]), groups, threads)
    return float(total[:, 0].sum()), float(total[:, 1].sum()), sums.sum(axis=0).ravel()[: len(x)]


def _normal_features(mu: np.ndarray, s: np.ndarray, y: np.ndarray, g: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Coordinates ``(n, 2)``, features ``(n, 5)`` and the diagonal sum of normal predictions."""
    mu, s, y = (np.asarray(a, dtype=np.float64) for a in (mu, s, y))
    v = 2 * g * s**2
    a = 1 / (1 + v)
    diagonal = 1 - 2 * np.sqrt(a) * np.exp(-g * a * (mu - y) ** 2) + 1 / np.sqrt(1 + 2 * v)
    return np.stack([mu, s], axis=1), np.stack([mu, y, v, a, np.sqrt(a)], axis=1), float(diagonal.sum())


def feature_sum(
    x: np.ndarray, r: np.ndarray, lengthscale: float, gaussian: bool, *, threads: int | None = None
) -> tuple[float, float]:
    """Sum over ``i < j`` and over ``i = j`` of ``k(|x_i - x_j|) r_i . r_j``, for x ``(n, d)`` and r ``(n, q)``.

    ``k(u)`` is ``exp(-u^2 / (2 l^2))`` if Gaussian, else ``exp(-u / l)``.
    """
    return _pairs(x, r, _law(lengthscale, gaussian), threads, False)[0], float(np.square(r, dtype=np.float64).sum())


def feature_moments(
    x: np.ndarray, r: np.ndarray, lengthscale: float, gaussian: bool, *, threads: int | None = None
) -> Moments:
    """Sums over ``i < j`` of h and of ``h^2``, sums over ``j != i`` of each row ``(n,)``, and the diagonal sum.

    ``h_ij = k(|x_i - x_j|) r_i . r_j`` as in `feature_sum`. Takes another ``GROUPS n`` numbers of memory.
    """
    total, square, rows = _pairs(x, r, _law(lengthscale, gaussian), threads, True)
    return total, square, rows, float(np.square(r, dtype=np.float64).sum())


def feature_cross_sum(
    x: np.ndarray, r: np.ndarray, x2: np.ndarray, r2: np.ndarray, lengthscale: float, gaussian: bool,
    *, threads: int | None = None,
) -> float:  # fmt: skip
    """Sum of ``k(|x_i - x2_j|) r_i . r2_j`` over all pairs of two sets of rows."""
    a, b, a2, b2 = map(_packed, (x, r, x2, r2))
    groups, law = min(GROUPS, len(a)), _law(lengthscale, gaussian)
    total = np.zeros((groups, 1))
    _in_threads(lambda group: rectangle(a, b, a2, b2, law, group, total[group]), groups, threads)
    return float(total.sum())


def feature_matmul(
    x: np.ndarray, v: np.ndarray, lengthscale: float, gaussian: bool, diagonal: bool, *, threads: int | None = None
) -> np.ndarray:
    """``K @ v`` for v ``(n, q)`` and ``K_ij = k(|x_i - x_j|)``, with its diagonal of ones or with zeros there.

    Both triangles are computed: with one, every group would need its own copy of the result.
    """
    a, filled, law = _packed(x), _filled(v), _law(lengthscale, gaussian)
    q = filled.shape[2]
    rows, out = filled.reshape(len(a), -1), np.zeros((len(a), q * BLOCK))
    _in_threads(lambda block: matmul_block(a, rows, law, diagonal, block, out[block]), len(a), threads)
    return np.ascontiguousarray(out.reshape(len(a), q, BLOCK).transpose(0, 2, 1).reshape(-1, q)[: len(x), : v.shape[1]])


def normal_sum(
    mu: np.ndarray, s: np.ndarray, y: np.ndarray, lengthscale: float, gaussian: bool, target_lengthscale: float,
    *, threads: int | None = None,
) -> tuple[float, float]:  # fmt: skip
    """Sum over ``i < j`` and over ``i = j`` of h for normal predictions ``mu, s`` and targets ``y``, all ``(n,)``.

    ``h_ij = k(|(mu_i, s_i) - (mu_j, s_j)|) (L(y_i, y_j, 0) - L(mu_i, y_j, s_i^2) - L(y_i, mu_j, s_j^2)
    + L(mu_i, mu_j, s_i^2 + s_j^2))`` with k as in `feature_sum`, ``g = 1 / (2 t^2)`` for the target lengthscale t and
    ``L(m, m', v) = (1 + 2 g v)^(-1/2) exp(-g (m - m')^2 / (1 + 2 g v))``.
    """
    g = 0.5 / target_lengthscale**2
    x, r, diagonal = _normal_features(mu, s, y, g)
    return _pairs(x, r, _law(lengthscale, gaussian, g), threads, False)[0], diagonal


def normal_moments(
    mu: np.ndarray, s: np.ndarray, y: np.ndarray, lengthscale: float, gaussian: bool, target_lengthscale: float,
    *, threads: int | None = None,
) -> Moments:  # fmt: skip
    """Sums over ``i < j`` of h and of ``h^2``, row sums off the diagonal and the diagonal sum, h as in `normal_sum`."""
    g = 0.5 / target_lengthscale**2
    x, r, diagonal = _normal_features(mu, s, y, g)
    return *_pairs(x, r, _law(lengthscale, gaussian, g), threads, True), diagonal
