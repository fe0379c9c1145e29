"""Moments of ``h_ij = k(|x_i - x_j|) <r_i, r_j>`` over all pairs of rows, without storing the ``n x n`` matrix.

A block is ``BLOCK`` rows, one feature after the other, so that every inner loop runs over contiguous columns and
becomes vector instructions. A strip of ``STRIP x BLOCK`` pairs stays in the first-level cache: squared distances, then
the kernel, then inner products, then their reduction. Distances come from direct differences, because
``|a|^2 + |b|^2 - 2 a.b`` loses half the digits of near-identical rows.

The threads are ordinary Python threads over compiled code that releases the interpreter: numba's own parallel loops
abort the process when two threads enter them at once (workqueue) or after a fork (GNU OpenMP). The work is cut into
``GROUPS`` parts that are added in order, so the digits do not depend on the number of threads; ``threads=None`` takes
``NUMBA_NUM_THREADS``, by default all cores.

Arrays are assumed finite, length scales positive; float32 input is computed in float64. O(n^2 (d + q)) time,
O(n (d + q + GROUPS)) memory.

Compiled code that calls other compiled code is in this file, and in :mod:`calibrant._compiled.softmax_sums`, which must be
touched when this one changes: numba's cache on disk looks for changes only where a function is written.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias, TypeVar, cast

import numpy as np
from numba import njit

from calibrant._compiled.choice import threads_for

BLOCK, STRIP, GROUPS = 128, 16, 32
# Reordering would undo the range reduction of the exponential, so only sums allow it.
EXACT, SUMS = {"contract", "nsz"}, {"contract", "nsz", "reassoc"}
ROUNDING = 1.5 * 2.0**52  # adding it leaves the rounded number in the last bits

Law = tuple[
    float, bool, float, int
]  # factor of the distance, Gaussian or exponential; g and dimensions of normals, or 0
F = TypeVar("F", bound=Callable[..., object])


def compiled(fastmath: set[str]) -> Callable[[F], F]:
    """Decorator: compile at the first call, without the interpreter lock, kept on disk where a folder is writable."""

    def compile_with(function: F, cache: bool) -> F:
        # numba's default check for division by zero would keep loops from becoming vector instructions.
        return cast(F, njit(function, fastmath=fastmath, nogil=True, error_model="numpy", cache=cache))

    def decorate(function: F) -> F:
        try:
            return compile_with(function, cache=True)
        except RuntimeError:  # numba finds no place for its cache, as in a read-only container
            return compile_with(function, cache=False)

    return decorate


@compiled(EXACT)
def exp_negative(x: float) -> float:
    """``exp(x)`` for ``x <= 0`` within 1 ulp, and 0 below -708; unlike ``math.exp`` it becomes vector instructions."""
    shifted = x * 1.4426950408889634 + ROUNDING
    power = shifted - ROUNDING
    r = x - power * 0.6931471805598903 - power * 5.497923018708371e-14
    p = 2.5100375832561234e-08 * r + 2.7620075879983367e-07
    p = (p * r + 2.7557268480310024e-06) * r + 2.4801521322368692e-05
    p = (p * r + 0.00019841269863040545) * r + 0.0013888888917196719
    p = (p * r + 0.008333333333330065) * r + 0.041666666666624164
    p = (p * r + 0.16666666666666669) * r + 0.5000000000000001
    p = (p * r + 1.0) * r + 1.0
    scaled = np.int64(np.float64(p).view(np.int64) + (np.float64(shifted).view(np.int64) << 52)).view(np.float64)
    return scaled if x >= -708.0 else 0.0


@compiled(EXACT)
def _add_squares(a: np.ndarray, x: np.ndarray, out: np.ndarray) -> None:
    """Add squared differences of 4 features of 4 rows and a block of columns."""
    b, c, d = a[BLOCK:], a[2 * BLOCK :], a[3 * BLOCK :]
    a0, a1, a2, a3 = a[0], a[1], a[2], a[3]
    b0, b1, b2, b3 = b[0], b[1], b[2], b[3]
    c0, c1, c2, c3 = c[0], c[1], c[2], c[3]
    d0, d1, d2, d3 = d[0], d[1], d[2], d[3]
    for j in range(BLOCK):
        u, v, w, z = x[j], x[j + BLOCK], x[j + 2 * BLOCK], x[j + 3 * BLOCK]
        out[j] = out[j] + (u - a0) ** 2 + (v - b0) ** 2 + (w - c0) ** 2 + (z - d0) ** 2
        out[j + BLOCK] = out[j + BLOCK] + (u - a1) ** 2 + (v - b1) ** 2 + (w - c1) ** 2 + (z - d1) ** 2
        out[j + 2 * BLOCK] = out[j + 2 * BLOCK] + (u - a2) ** 2 + (v - b2) ** 2 + (w - c2) ** 2 + (z - d2) ** 2
        out[j + 3 * BLOCK] = out[j + 3 * BLOCK] + (u - a3) ** 2 + (v - b3) ** 2 + (w - c3) ** 2 + (z - d3) ** 2


@compiled(EXACT)
def _add_products(a: np.ndarray, x: np.ndarray, out: np.ndarray) -> None:
    """Add products of 4 features of 4 rows and a block of columns."""
    b, c, d = a[BLOCK:], a[2 * BLOCK :], a[3 * BLOCK :]
    a0, a1, a2, a3 = a[0], a[1], a[2], a[3]
    b0, b1, b2, b3 = b[0], b[1], b[2], b[3]
    c0, c1, c2, c3 = c[0], c[1], c[2], c[3]
    d0, d1, d2, d3 = d[0], d[1], d[2], d[3]
    for j in range(BLOCK):
        u, v, w, z = x[j], x[j + BLOCK], x[j + 2 * BLOCK], x[j + 3 * BLOCK]
        out[j] = out[j] + u * a0 + v * b0 + w * c0 + z * d0
        out[j + BLOCK] = out[j + BLOCK] + u * a1 + v * b1 + w * c1 + z * d1
        out[j + 2 * BLOCK] = out[j + 2 * BLOCK] + u * a2 + v * b2 + w * c2 + z * d2
        out[j + 3 * BLOCK] = out[j + 3 * BLOCK] + u * a3 + v * b3 + w * c3 + z * d3


@compiled(EXACT)
def _products(rows: np.ndarray, columns: np.ndarray, out: np.ndarray) -> None:
    """Inner products of a strip of rows and a block of columns."""
    out[:] = 0.0
    for k in range(0, columns.size // BLOCK, 4):
        for i in range(0, STRIP, 4):
            x, o = columns[k * BLOCK : (k + 4) * BLOCK], out[i * BLOCK : (i + 4) * BLOCK]
            _add_products(rows[k * BLOCK + i :], x, o)


@compiled(EXACT)
def _square_distances(rows: np.ndarray, columns: np.ndarray, out: np.ndarray) -> None:
    """Squared distances between a strip of rows and a block of columns."""
    out[:] = 0.0
    for k in range(0, columns.size // BLOCK, 4):
        for i in range(0, STRIP, 4):
            x, o = columns[k * BLOCK : (k + 4) * BLOCK], out[i * BLOCK : (i + 4) * BLOCK]
            _add_squares(rows[k * BLOCK + i :], x, o)


@compiled(SUMS)
def _add_moments(k: np.ndarray, r: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> float:
    """The sum of squares of ``h = k r`` in a strip; row and column sums are added to where they belong."""
    square = 0.0
    for i in range(STRIP):
        a, b = k[i * BLOCK : (i + 1) * BLOCK], r[i * BLOCK : (i + 1) * BLOCK]
        s = t = 0.0
        for j in range(BLOCK):
            h = a[j] * b[j]
            s += h
            t += h * h
            columns[j] += h
        rows[i] += s
        square += t
    return square


@compiled(EXACT)
def _normal_products(rows: np.ndarray, columns: np.ndarray, law: Law, log: np.ndarray, h: np.ndarray) -> None:
    """Kernel times inner product of normals in a strip, from the logarithm of the kernel: 4 exponentials a pair.

    The features are the mean and the target, d each, filled up to multiples of 4, then ``v = 2 g s^2, a = 1 / (1 + v)``
    and ``a^(d/2)``.
    """
    _, _, g, d = law
    width = -(-d // 4) * 4 * BLOCK
    mu, y, rest = columns[:width], columns[width : 2 * width], columns[2 * width :]
    squares = np.empty((4, STRIP * BLOCK))
    _square_distances(rows[width:], y, squares[0])
    _square_distances(rows, y, squares[1])
    _square_distances(rows[width:], mu, squares[2])
    _square_distances(rows, mu, squares[3])
    both, power = np.empty(BLOCK), np.empty(BLOCK)
    for i in range(STRIP):
        v, ga, root = rows[2 * width + i], g * rows[2 * width + BLOCK + i], rows[2 * width + 2 * BLOCK + i]
        for j in range(BLOCK):
            both[j] = 1.0 / (1.0 + v + rest[j])
            power[j] = np.sqrt(both[j]) if d % 2 else 1.0
        for _ in range(d // 2):
            for j in range(BLOCK):
                power[j] *= both[j]
        k, out = log[i * BLOCK : (i + 1) * BLOCK], h[i * BLOCK : (i + 1) * BLOCK]
        q = squares[:, i * BLOCK : (i + 1) * BLOCK]
        for j in range(BLOCK):
            inner = exp_negative(k[j] - g * q[0, j]) - root * exp_negative(k[j] - ga * q[1, j])
            out[j] = inner - rest[j + 2 * BLOCK] * exp_negative(k[j] - g * rest[j + BLOCK] * q[2, j])
        for j in range(BLOCK):
            out[j] += power[j] * exp_negative(k[j] - g * both[j] * q[3, j])


@compiled(EXACT)
def _strip(
    x: np.ndarray, r: np.ndarray, x2: np.ndarray, r2: np.ndarray, law: Law, k: np.ndarray, h: np.ndarray
) -> None:
    """Two factors ``k, h`` of the matrix between a strip of rows and a block of columns."""
    scale, gaussian, _, d = law
    _square_distances(x, x2, k)
    for j in range(STRIP * BLOCK):
        k[j] = scale * (k[j] if gaussian else np.sqrt(k[j]))
    if d > 0:
        _normal_products(r, r2, law, k, h)
        k[:] = 1.0
    else:
        for j in range(STRIP * BLOCK):
            k[j] = exp_negative(k[j])
        _products(r, r2, h)


@compiled(SUMS)
def triangle(x: np.ndarray, r: np.ndarray, law: Law, n: int, group: int, square: np.ndarray, sums: np.ndarray) -> None:
    """Moments above the diagonal in the blocks of rows ``group, group + GROUPS, ...``."""
    k, h = np.empty(STRIP * BLOCK), np.empty(STRIP * BLOCK)
    for p in range(group, len(x), GROUPS):
        part = 0.0
        for t in range(p, len(x)):
            for first in range(0, BLOCK, STRIP):
                _strip(x[p, first:], r[p, first:], x[t], r[t], law, k, h)
                for i in range(STRIP):
                    if p == t:
                        h[i * BLOCK : i * BLOCK + first + i + 1] = 0.0
                    if (t + 1) * BLOCK > n:
                        h[i * BLOCK + n - t * BLOCK : (i + 1) * BLOCK] = 0.0
                part += _add_moments(k, h, sums[p, first:], sums[t])
        square[0] += part


@compiled(SUMS)
def rectangle(
    x: np.ndarray,
    r: np.ndarray,
    x2: np.ndarray,
    r2: np.ndarray,
    law: Law,
    n: int,
    m: int,
    along: np.ndarray,
    down: np.ndarray,
) -> float:
    """The sum of squares over all pairs of n rows and m columns; row and column sums are added to where they belong."""
    k, h = np.empty(STRIP * BLOCK), np.empty(STRIP * BLOCK)
    square = 0.0
    for p in range(len(x)):
        part = 0.0
        for t in range(len(x2)):
            for first in range(0, BLOCK, STRIP):
                _strip(x[p, first:], r[p, first:], x2[t], r2[t], law, k, h)
                for i in range(STRIP):
                    if p * BLOCK + first + i >= n:
                        h[i * BLOCK : (i + 1) * BLOCK] = 0.0
                    elif (t + 1) * BLOCK > m:
                        h[i * BLOCK + m - t * BLOCK : (i + 1) * BLOCK] = 0.0
                part += _add_moments(k, h, along[p, first:], down[t])
        square += part
    return square


Sums: TypeAlias = tuple[np.ndarray, np.ndarray, float]
"""Along rows, down columns, and of squares."""


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
    a, b = _packed(x), _packed(r)
    groups = min(GROUPS, len(a))
    squares, sums = np.zeros((groups, 1)), np.zeros((groups, len(a), BLOCK))
    in_threads(
        lambda group: triangle(a, b, law, len(x), group, squares[group], sums[group]),
        groups,
        threads_for(len(x) ** 2, threads),
    )
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


def in_threads(work: Callable[[int], None], parts: int, threads: int) -> None:
    """Call ``work`` with the number of each part."""
    workers = min(parts, threads)
    if workers <= 1:
        for part in range(parts):
            work(part)
    else:
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(work, range(parts)))
