"""Moments of ``h_ij = k(|x_i - x_j|) <r_i, r_j>`` over all pairs of rows, without storing the ``n x n`` matrix.

The threads are ordinary Python threads over compiled code that releases the interpreter: numba's own parallel loops
abort the process when two threads enter them at once (workqueue) or after a fork (GNU OpenMP). The work is cut into
``GROUPS`` parts that are added in order, so the digits do not depend on the number of threads; ``threads=None`` takes
``NUMBA_NUM_THREADS``, by default all cores.

Arrays are assumed finite, length scales positive; float32 input is computed in float64. O(n^2 (d + q)) time,
O(n (d + q + GROUPS)) memory.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import numba
import numpy as np

from calibrant._fused.strips import BLOCK, GROUPS, Law, rectangle, triangle

Sums: TypeAlias = tuple[np.ndarray, np.ndarray, float]
"""Along rows, down columns, and of squares."""

ALONE = 3000
"""Fewer rows than this take less time than threads do to start."""


def feature_moments(
    x: np.ndarray, r: np.ndarray, lengthscale: float, gaussian: bool, *, threads: int | None = None
) -> tuple[np.ndarray, float]:
    """Sums of h over ``j != i`` of each row ``(n,)``, and the sum of ``h^2`` over ``i != j``; x ``(n, d)``, r ``(n, q)``.

    ``k(u)`` is ``exp(-u^2 / (2 l^2))`` if Gaussian, else ``exp(-u / l)``.

    >>> feature_moments(np.zeros((3, 1)), np.ones((3, 2)), 1.0, True)
    (array([4., 4., 4.]), 24.0)
    """
    return _moments(x, r, _law(lengthscale, gaussian), threads)


def feature_cross(
    left: tuple[np.ndarray, np.ndarray], right: tuple[np.ndarray, np.ndarray], lengthscale: float, gaussian: bool
) -> Sums:
    """The same over the pairs of two sets of rows ``(x, r)``, in one thread: sums along rows, down columns, of squares.

    >>> feature_cross((np.zeros((2, 1)), np.ones((2, 1))), (np.zeros((3, 1)), np.ones((3, 1))), 1.0, True)
    (array([3., 3.]), array([2., 2., 2.]), 6.0)
    """
    return _cross(left, right, _law(lengthscale, gaussian))


def normal_moments(
    x: np.ndarray, mu: np.ndarray, s: np.ndarray, y: np.ndarray, lengthscale: float, gaussian: bool,
    target_lengthscale: float, *, threads: int | None = None,
) -> tuple[np.ndarray, float]:  # fmt: skip
    """The same for normal predictions with a Gaussian kernel on targets: mu and y ``(n, d)``, one s for all coordinates ``(n,)``.

    ``<r_i, r_j> = L(y_i, y_j, 0) - L(mu_i, y_j, s_i^2) - L(y_i, mu_j, s_j^2) + L(mu_i, mu_j, s_i^2 + s_j^2)`` with
    ``g = 1 / (2 t^2)`` for the target length scale t and ``L(m, m', v) = (1 + 2 g v)^(-d/2) exp(-g |m - m'|^2 / (1 + 2 g v))``.
    """
    law = _law(lengthscale, gaussian, 0.5 / target_lengthscale**2, mu.shape[1])
    return _moments(x, _features_of_normals(mu, s, y, law), law, threads)


def normal_cross(
    left: tuple[np.ndarray, ...],
    right: tuple[np.ndarray, ...],
    lengthscale: float,
    gaussian: bool,
    target_lengthscale: float,
) -> Sums:
    """The same over the pairs of two sets of rows ``(x, mu, s, y)``, in one thread."""
    law = _law(lengthscale, gaussian, 0.5 / target_lengthscale**2, left[1].shape[1])
    a, b = ((x, _features_of_normals(mu, s, y, law)) for x, mu, s, y in (left, right))
    return _cross(a, b, law)


def _features_of_normals(mu: np.ndarray, s: np.ndarray, y: np.ndarray, law: Law) -> np.ndarray:
    """What the compiled code wants to know of each row."""
    v = 2 * law[2] * s.astype(np.float64) ** 2
    a = 1 / (1 + v)
    return np.concatenate([_whole(mu), _whole(y), np.stack([v, a, a ** (law[3] / 2)], axis=1)], axis=1)


def _moments(x: np.ndarray, r: np.ndarray, law: Law, threads: int | None) -> tuple[np.ndarray, float]:
    """Each group adds up on its own; then the groups in order."""
    if threads is None and len(x) < ALONE:
        threads = 1
    a, b = _packed(x), _packed(r)
    groups = min(GROUPS, len(a))
    squares, sums = np.zeros((groups, 1)), np.zeros((groups, len(a), BLOCK))
    _in_threads(lambda group: triangle(a, b, law, len(x), group, squares[group], sums[group]), groups, threads)
    return sums.sum(axis=0).ravel()[: len(x)], 2 * float(squares.sum())


def _cross(left: tuple[np.ndarray, np.ndarray], right: tuple[np.ndarray, np.ndarray], law: Law) -> Sums:
    (x, r), (x2, r2) = left, right
    a, b, a2, b2 = (_packed(part) for part in (x, r, x2, r2))
    along, down = np.zeros((len(a), BLOCK)), np.zeros((len(a2), BLOCK))
    squares = rectangle(a, b, a2, b2, law, len(x), len(x2), along, down)
    return along.ravel()[: len(x)], down.ravel()[: len(x2)], float(squares)


def _packed(x: np.ndarray) -> np.ndarray:
    """Blocks of rows, one feature after the other, ``(blocks, d BLOCK)``; the last block is filled up with zeros."""
    whole = _whole(x)
    filled = np.zeros((-(-len(x) // BLOCK) * BLOCK, whole.shape[1]))
    filled[: len(x)] = whole
    blocks = filled.reshape(-1, BLOCK, whole.shape[1]).transpose(0, 2, 1)
    return np.ascontiguousarray(blocks).reshape(len(blocks), -1)


def _whole(x: np.ndarray) -> np.ndarray:
    """Features in float64, filled up with zeros to a multiple of 4."""
    return np.pad(x.astype(np.float64), ((0, 0), (0, -x.shape[1] % 4)))


def _law(lengthscale: float, gaussian: bool, g: float = 0.0, d: int = 0) -> Law:
    """Factor of the distance or squared distance, kept finite so that equal rows have kernel 1."""
    return -min(0.5 / lengthscale / lengthscale if gaussian else 1.0 / lengthscale, 1e300), gaussian, g, d


def _in_threads(work: Callable[[int], None], parts: int, threads: int | None) -> None:
    """Call ``work`` with the number of each part."""
    workers = min(parts, vars(numba.config)["NUMBA_NUM_THREADS"] if threads is None else threads)
    if workers <= 1:
        for part in range(parts):
            work(part)
    else:
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(work, range(parts)))
