"""Moments of ``h_ij = k(|x_i - x_j|) <r_i, r_j>`` over all pairs of rows, without storing the ``n x n`` matrix.

A block is ``BLOCK`` rows, one feature after the other, so that every inner loop runs over contiguous columns and
becomes vector instructions. A strip of ``STRIP x BLOCK`` pairs stays in the first-level cache: squared distances, then
the kernel, then inner products, then their reduction. Distances come from direct differences, because
``|a|^2 + |b|^2 - 2 a.b`` loses half the digits of near-identical rows.

**The digits are those of the source**, whatever compiles it. The compiler may neither reorder sums nor fuse products into
them as it likes: both depend on the processor, and on what of it was in the cache. Sums have ``LANES`` accumulators that
are folded in one order, multiply-adds are written as :func:`fma`, and the exponential is our own; square roots and
divisions are exact to the last bit everywhere. A processor without multiply-adds calls the C library for each: the
digits stay, and the time is six-fold.

The threads are ordinary Python threads over compiled code that releases the interpreter: numba's own parallel loops
abort the process when two threads enter them at once (workqueue) or after a fork (GNU OpenMP). Each panel of rows is the
work of one thread, and what they give is added in order.

Arrays are assumed finite, length scales positive; float32 input is computed in float64. O(n^2 (d + q)) time,
O(n (d + q)) memory.

Compiled code that calls other compiled code is in this file, and in :mod:`calibrant._compiled.softmax_sums`, which must
be touched when this one changes: numba's cache on disk looks for changes only where a function is written.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import numpy as np

from calibrant._compiled.compiling import aligned, borrowing, compiled, fma

BLOCK, STRIP, LANES, GROUPS = 128, 16, 32, 32
ROUNDING = 1.5 * 2.0**52  # adding it leaves the rounded number in the last bits

Law = tuple[
    float, bool, float, int
]  # factor of the distance, Gaussian or exponential; g and dimensions of normals, or 0


@borrowing
def exp_negative(x: float) -> float:
    """``exp(x)`` for ``x <= 0`` within 1 ulp, and 0 below -708; unlike ``math.exp`` it becomes vector instructions."""
    shifted = fma(x, 1.4426950408889634, ROUNDING)
    power = shifted - ROUNDING
    r = fma(power, -5.497923018708371e-14, fma(power, -0.6931471805598903, x))
    p = fma(r, 2.5100375832561234e-08, 2.7620075879983367e-07)
    p = fma(r, fma(r, p, 2.7557268480310024e-06), 2.4801521322368692e-05)
    p = fma(r, fma(r, p, 0.00019841269863040545), 0.0013888888917196719)
    p = fma(r, fma(r, p, 0.008333333333330065), 0.041666666666624164)
    p = fma(r, fma(r, p, 0.16666666666666669), 0.5000000000000001)
    p = fma(r, fma(r, p, 1.0), 1.0)
    scaled = np.int64(np.float64(p).view(np.int64) + (np.float64(shifted).view(np.int64) << 52)).view(np.float64)
    return scaled if x >= -708.0 else 0.0


@borrowing
def _plus_square(x: float, total: float) -> float:
    return fma(x, x, total)


@borrowing
def _add_squares(a: np.ndarray, x: np.ndarray, out: np.ndarray) -> None:
    """Add squared differences of 4 features of 4 rows and a block of columns."""
    b, c, d = a[BLOCK:], a[2 * BLOCK :], a[3 * BLOCK :]
    a0, a1, a2, a3 = a[0], a[1], a[2], a[3]
    b0, b1, b2, b3 = b[0], b[1], b[2], b[3]
    c0, c1, c2, c3 = c[0], c[1], c[2], c[3]
    d0, d1, d2, d3 = d[0], d[1], d[2], d[3]
    for j in range(BLOCK):
        u, v, w, z = x[j], x[j + BLOCK], x[j + 2 * BLOCK], x[j + 3 * BLOCK]
        out[j] = _plus_square(z - d0, _plus_square(w - c0, _plus_square(v - b0, _plus_square(u - a0, out[j]))))
        out[j + BLOCK] = _plus_square(
            z - d1, _plus_square(w - c1, _plus_square(v - b1, _plus_square(u - a1, out[j + BLOCK])))
        )
        out[j + 2 * BLOCK] = _plus_square(
            z - d2, _plus_square(w - c2, _plus_square(v - b2, _plus_square(u - a2, out[j + 2 * BLOCK])))
        )
        out[j + 3 * BLOCK] = _plus_square(
            z - d3, _plus_square(w - c3, _plus_square(v - b3, _plus_square(u - a3, out[j + 3 * BLOCK])))
        )


@borrowing
def _add_products(a: np.ndarray, x: np.ndarray, out: np.ndarray) -> None:
    """Add products of 4 features of 4 rows and a block of columns."""
    b, c, d = a[BLOCK:], a[2 * BLOCK :], a[3 * BLOCK :]
    a0, a1, a2, a3 = a[0], a[1], a[2], a[3]
    b0, b1, b2, b3 = b[0], b[1], b[2], b[3]
    c0, c1, c2, c3 = c[0], c[1], c[2], c[3]
    d0, d1, d2, d3 = d[0], d[1], d[2], d[3]
    for j in range(BLOCK):
        u, v, w, z = x[j], x[j + BLOCK], x[j + 2 * BLOCK], x[j + 3 * BLOCK]
        out[j] = fma(z, d0, fma(w, c0, fma(v, b0, fma(u, a0, out[j]))))
        out[j + BLOCK] = fma(z, d1, fma(w, c1, fma(v, b1, fma(u, a1, out[j + BLOCK]))))
        out[j + 2 * BLOCK] = fma(z, d2, fma(w, c2, fma(v, b2, fma(u, a2, out[j + 2 * BLOCK]))))
        out[j + 3 * BLOCK] = fma(z, d3, fma(w, c3, fma(v, b3, fma(u, a3, out[j + 3 * BLOCK]))))


@borrowing
def _products(rows: np.ndarray, columns: np.ndarray, out: np.ndarray) -> None:
    """Inner products of a strip of rows and a block of columns."""
    out[:] = 0.0
    for k in range(0, columns.size // BLOCK, 4):
        for i in range(0, STRIP, 4):
            x, o = columns[k * BLOCK : (k + 4) * BLOCK], out[i * BLOCK : (i + 4) * BLOCK]
            _add_products(rows[k * BLOCK + i :], x, o)


@borrowing
def _square_distances(rows: np.ndarray, columns: np.ndarray, out: np.ndarray) -> None:
    """Squared distances between a strip of rows and a block of columns."""
    out[:] = 0.0
    for k in range(0, columns.size // BLOCK, 4):
        for i in range(0, STRIP, 4):
            x, o = columns[k * BLOCK : (k + 4) * BLOCK], out[i * BLOCK : (i + 4) * BLOCK]
            _add_squares(rows[k * BLOCK + i :], x, o)


@borrowing
def folded(lanes: np.ndarray) -> float:
    """The sum of ``LANES`` numbers, which are overwritten, by halves: vector instructions without a change of order."""
    for j in range(8):
        lanes[j] = (lanes[j] + lanes[j + 16]) + (lanes[j + 8] + lanes[j + 24])
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]))


@borrowing
def _add_moments(
    k: np.ndarray, r: np.ndarray, rows: np.ndarray, columns: np.ndarray, squares: np.ndarray, lanes: np.ndarray
) -> None:
    """Squares of ``h = k r`` in a strip are added to lanes; row and column sums to where they belong."""
    for i in range(STRIP):
        a, b = k[i * BLOCK : (i + 1) * BLOCK], r[i * BLOCK : (i + 1) * BLOCK]
        for j in range(LANES):
            h0, h1 = a[j] * b[j], a[j + LANES] * b[j + LANES]
            h2, h3 = a[j + 2 * LANES] * b[j + 2 * LANES], a[j + 3 * LANES] * b[j + 3 * LANES]
            columns[j] += h0
            columns[j + LANES] += h1
            columns[j + 2 * LANES] += h2
            columns[j + 3 * LANES] += h3
            lanes[j] = (h0 + h1) + (h2 + h3)
            squares[j] = fma(h3, h3, fma(h2, h2, fma(h1, h1, fma(h0, h0, squares[j]))))
        rows[i] += folded(lanes)


@borrowing
def _normal_products(
    rows: np.ndarray, columns: np.ndarray, law: Law, log: np.ndarray, h: np.ndarray, space: np.ndarray
) -> None:
    """Kernel times inner product of normals in a strip, from the logarithm of the kernel: 4 exponentials per pair.

    The features are the mean and the target, d each, filled up to multiples of 4, then ``v = 2 g s^2, a = 1 / (1 + v)``
    and ``a^(d/2)``.
    """
    _, _, g, d = law
    width = -(-d // 4) * 4 * BLOCK
    mu, y, rest = columns[:width], columns[width : 2 * width], columns[2 * width :]
    both, power = space[4, :BLOCK], space[4, BLOCK : 2 * BLOCK]
    _square_distances(rows[width:], y, space[0])
    _square_distances(rows, y, space[1])
    _square_distances(rows[width:], mu, space[2])
    _square_distances(rows, mu, space[3])
    for i in range(STRIP):
        v, ga, root = rows[2 * width + i], g * rows[2 * width + BLOCK + i], rows[2 * width + 2 * BLOCK + i]
        for j in range(BLOCK):
            both[j] = 1.0 / (1.0 + v + rest[j])
            power[j] = np.sqrt(both[j]) if d % 2 else 1.0
        for _ in range(d // 2):
            for j in range(BLOCK):
                power[j] *= both[j]
        here = slice(i * BLOCK, (i + 1) * BLOCK)
        k, out = log[here], h[here]
        yy, my, ym, mm = space[0, here], space[1, here], space[2, here], space[3, here]
        for j in range(BLOCK):
            inner = fma(-root, exp_negative(fma(-ga, my[j], k[j])), exp_negative(fma(-g, yy[j], k[j])))
            out[j] = fma(-rest[j + 2 * BLOCK], exp_negative(fma(-g * rest[j + BLOCK], ym[j], k[j])), inner)
        for j in range(BLOCK):
            out[j] = fma(power[j], exp_negative(fma(-g * both[j], mm[j], k[j])), out[j])


@borrowing
def _strip(
    x: np.ndarray, r: np.ndarray, x2: np.ndarray, r2: np.ndarray, law: Law, k: np.ndarray, h: np.ndarray,
    space: np.ndarray,
) -> None:  # fmt: skip
    """Two factors ``k, h`` of the matrix between a strip of rows and a block of columns."""
    scale, gaussian, _, d = law
    _square_distances(x, x2, k)
    if d > 0:
        for j in range(STRIP * BLOCK):
            k[j] = scale * (k[j] if gaussian else np.sqrt(k[j]))
        _normal_products(r, r2, law, k, h, space)
        k[:] = 1.0
    else:
        for j in range(STRIP * BLOCK):
            k[j] = exp_negative(scale * (k[j] if gaussian else np.sqrt(k[j])))
        _products(r, r2, h)


@borrowing
def add_pairs(
    x: np.ndarray, r: np.ndarray, x2: np.ndarray, r2: np.ndarray, law: Law, n: int, m: int, is_triangle: bool,
    along: np.ndarray, down: np.ndarray, space: np.ndarray,
) -> float:  # fmt: skip
    """The sum of squares over all pairs of n rows and m columns, or those above the diagonal of a triangle.

    Row and column sums are added to where they belong, which is one place for a triangle. The work needs :func:`_space`.
    """
    k, h, squares, lanes = space[0], space[1], space[2, :LANES], space[2, LANES : 2 * LANES]
    square = 0.0
    for p in range(len(x)):
        squares[:] = 0.0
        for t in range(p if is_triangle else 0, len(x2)):
            for first in range(0, min(BLOCK, n - p * BLOCK), STRIP):
                _strip(x[p, first:], r[p, first:], x2[t], r2[t], law, k, h, space[3:])
                for i in range(STRIP):
                    if p * BLOCK + first + i >= n:
                        h[i * BLOCK : (i + 1) * BLOCK] = 0.0
                    if (t + 1) * BLOCK > m:
                        h[i * BLOCK + m - t * BLOCK : (i + 1) * BLOCK] = 0.0
                    if is_triangle and p == t:
                        h[i * BLOCK : i * BLOCK + first + i + 1] = 0.0
                _add_moments(k, h, along[p, first:], down[t], squares, lanes)
        square += folded(squares)
    return square


def _space(law: Law) -> np.ndarray:
    """Where strips are computed; those of normals need more."""
    return aligned(8 if law[-1] else 3, STRIP * BLOCK)


Sums: TypeAlias = tuple[np.ndarray, np.ndarray, float]
"""Along rows, down columns, and of squares."""


def feature_moments(x: np.ndarray, r: np.ndarray, lengthscale: float, gaussian: bool) -> tuple[np.ndarray, float]:
    """Sums of h over ``j != i`` of each row ``(n,)``, and the sum of ``h^2`` over ``i != j``; x ``(n, d)``, r ``(n, q)``.

    ``k(u)`` is ``exp(-u^2 / (2 l^2))`` if Gaussian, else ``exp(-u / l)``.

    >>> feature_moments(np.zeros((3, 1)), np.ones((3, 2)), 1.0, True)
    (array([4., 4., 4.]), 24.0)
    """
    return _moments(x, r, _law(lengthscale, gaussian))


def feature_cross(
    left: tuple[np.ndarray, np.ndarray], right: tuple[np.ndarray, np.ndarray], lengthscale: float, gaussian: bool
) -> Sums:
    """The same over the pairs of two sets of rows ``(x, r)``: sums along rows, down columns, of squares.

    >>> feature_cross((np.zeros((2, 1)), np.ones((2, 1))), (np.zeros((3, 1)), np.ones((3, 1))), 1.0, True)
    (array([3., 3.]), array([2., 2., 2.]), 6.0)
    """
    return _cross(left, right, _law(lengthscale, gaussian))


def normal_moments(
    x: np.ndarray, mu: np.ndarray, s: np.ndarray, y: np.ndarray, lengthscale: float, gaussian: bool,
    target_lengthscale: float,
) -> tuple[np.ndarray, float]:  # fmt: skip
    """The same for normal predictions with a Gaussian kernel on targets: mu and y ``(n, d)``, one s for all coordinates ``(n,)``.

    ``<r_i, r_j> = L(y_i, y_j, 0) - L(mu_i, y_j, s_i^2) - L(y_i, mu_j, s_j^2) + L(mu_i, mu_j, s_i^2 + s_j^2)`` with
    ``g = 1 / (2 t^2)`` for the target length scale t and ``L(m, m', v) = (1 + 2 g v)^(-d/2) exp(-g |m - m'|^2 / (1 + 2 g v))``.
    """
    law = _law(lengthscale, gaussian, 0.5 / target_lengthscale**2, mu.shape[1])
    return _moments(x, _features_of_normals(mu, s, y, law), law)


def normal_cross(
    left: tuple[np.ndarray, ...],
    right: tuple[np.ndarray, ...],
    lengthscale: float,
    gaussian: bool,
    target_lengthscale: float,
) -> Sums:
    """The same over the pairs of two sets of rows ``(x, mu, s, y)``."""
    law = _law(lengthscale, gaussian, 0.5 / target_lengthscale**2, left[1].shape[1])
    a, b = ((x, _features_of_normals(mu, s, y, law)) for x, mu, s, y in (left, right))
    return _cross(a, b, law)


def _features_of_normals(mu: np.ndarray, s: np.ndarray, y: np.ndarray, law: Law) -> np.ndarray:
    """What the compiled code wants to know of each row."""
    n, d = mu.shape
    features = np.zeros((n, 2 * _filled(d) + 3))
    features[:, :d], features[:, _filled(d) : _filled(d) + d] = mu, y
    v = 2 * law[2] * s.astype(np.float64) ** 2
    a = 1 / (1 + v)
    power = np.sqrt(a) if d % 2 else np.ones(n)
    for _ in range(d // 2):  # other powers have other digits on other processors
        power *= a
    features[:, -3:] = np.stack([v, a, power], axis=1)
    return features


def _moments(x: np.ndarray, r: np.ndarray, law: Law) -> tuple[np.ndarray, float]:
    a, b = _packed(x), _packed(r)
    sums = aligned(len(a), BLOCK)
    squares = add_pairs(a, b, a, b, law, len(x), len(x), True, sums, sums, _space(law))
    return sums.ravel()[: len(x)], 2 * float(squares)


def _cross(left: tuple[np.ndarray, np.ndarray], right: tuple[np.ndarray, np.ndarray], law: Law) -> Sums:
    (x, r), (x2, r2) = left, right
    a, b, a2, b2 = (_packed(part) for part in (x, r, x2, r2))
    along, down = aligned(len(a), BLOCK), aligned(len(a2), BLOCK)
    squares = add_pairs(a, b, a2, b2, law, len(x), len(x2), False, along, down, _space(law))
    return along.ravel()[: len(x)], down.ravel()[: len(x2)], float(squares)


def _packed(x: np.ndarray) -> np.ndarray:
    """Blocks of rows, one feature after the other, in float64 ``(blocks, d BLOCK)``; d and the last block are filled with zeros."""
    n, d = x.shape
    blocks, rest = aligned(-(-n // BLOCK), _filled(d), BLOCK), n % BLOCK
    blocks[: n // BLOCK, :d] = x[: n - rest].reshape(-1, BLOCK, d).transpose(0, 2, 1)
    if rest:
        blocks[-1, :d, :rest] = x[n - rest :].T
    return blocks.reshape(len(blocks), -1)


def _filled(d: int) -> int:
    """As many features, or more up to a multiple of 4."""
    return -(-d // 4) * 4


def _law(lengthscale: float, gaussian: bool, g: float = 0.0, d: int = 0) -> Law:
    """Factor of the distance or squared distance, kept finite so that equal rows have kernel 1."""
    return -min(0.5 / lengthscale / lengthscale if gaussian else 1.0 / lengthscale, 1e300), gaussian, g, d


def in_threads(work: Callable[[int], None], parts: int, threads: int) -> None:
    """Call ``work`` with the number of each part, those of compiled code that keep apart what they write."""
    workers = min(parts, threads)
    if workers <= 1:
        for part in range(parts):
            work(part)
    else:
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(work, range(parts)))


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
    if v.shape[1] == len(coefficients) == 1:
        return np.array([_pairs_of_one(x, v[:, 0], float(coefficients[0]), aligned(2, CHUNK))])
    total = np.zeros(v.shape[1])
    _add_pairs(x, v, coefficients, total)
    return total


@borrowing
def _steps(x: np.ndarray, start: int, step: np.ndarray, decay: np.ndarray) -> int:
    """Distances to the next point and their exponentials, from ``start`` on; returns how many."""
    count = min(CHUNK, len(x) - 1 - start)
    for i in range(count):
        step[i] = min(abs(x[start + i + 1] - x[start + i]), FARTHEST)
        decay[i] = exp_negative(-step[i])
    return count


@borrowing
def _advance(state: np.ndarray, v: np.ndarray, i: int, step: float, decay: float) -> None:
    """Take in the values v of point i, and move all sums to the next."""
    order, q = state.shape[0] - 1, state.shape[1]
    for c in range(q):
        state[0, c] += v[i, c]
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
            _advance(state, v, start + i, step[i], decay[i])
            for m in range(len(coefficients)):
                for c in range(v.shape[1]):
                    out[start + i + 1, c] = fma(coefficients[m], state[m, c], out[start + i + 1, c])


@compiled
def _add_pairs(x: np.ndarray, v: np.ndarray, coefficients: np.ndarray, total: np.ndarray) -> None:
    """Add the products with the sums over all earlier points."""
    state, step, decay = np.zeros((len(coefficients), v.shape[1])), np.empty(CHUNK), np.empty(CHUNK)
    for start in range(0, len(x) - 1, CHUNK):
        for i in range(_steps(x, start, step, decay)):
            _advance(state, v, start + i, step[i], decay[i])
            for m in range(len(coefficients)):
                for c in range(v.shape[1]):
                    total[c] = fma(coefficients[m] * state[m, c], v[start + i + 1, c], total[c])


@borrowing
def _pairs_of_one(x: np.ndarray, v: np.ndarray, coefficient: float, space: np.ndarray) -> float:
    """The same of one column and one coefficient, in registers."""
    step, decay, state, total = space[0], space[1], 0.0, 0.0
    for start in range(0, len(x) - 1, CHUNK):
        for i in range(_steps(x, start, step, decay)):
            state = (state + v[start + i]) * decay[i]
            total = fma(coefficient * state, v[start + i + 1], total)
    return total
