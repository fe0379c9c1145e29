"""Softmax averages of class labels, compiled: ``sum_j [label_j = c] exp(<query_i, key_j>)`` without storing the products.

Columns are sorted by class, so that what is added up for a class is contiguous; a strip of products stays in the
first-level cache. The largest product so far is carried along each row, and the sums are rescaled when it grows, which
happens a few times only. Blocks that are too far below it to count are skipped before their exponentials are taken.
Threads and groups are those of :mod:`calibrant._compiled.cpu`. After a change of :mod:`calibrant._compiled.cpu` this file must
be touched, too: numba's cache on disk looks for changes only where a function is written.
"""

import numpy as np

from calibrant._compiled.choice import threads_for
from calibrant._compiled.compiling import aligned, borrowing, fma
from calibrant._compiled.cpu import BLOCK, GROUPS, LANES, STRIP, _packed, _products, exp_negative, folded, in_threads

NEVER = -1e30
"""Products at or below a tenth of this stand for a weight of zero."""

NEGLIGIBLE = -708.0
"""Differences whose exponential is 0."""


def class_sums(
    queries: np.ndarray, keys: np.ndarray, labels: np.ndarray, n_classes: int, own: np.ndarray,
    *, threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """The largest product of each query ``(m,)``, and sums of weights and of squared weights by class ``(m, classes)``.

    Weights are ``exp(<query, key> - largest)``, for queries ``(m, d)`` and keys ``(n, d)`` with labels ``(n,)``. ``own``
    ``(m,)`` is the key that a query leaves out, or -1. A query without any weight has ``-inf`` and zeros.
    O(m n d) time, O((m + n) (d + classes)) memory.

    >>> top, sums, squares = class_sums(np.zeros((2, 1)), np.zeros((3, 1)), np.array([1, 0, 1]), 2, np.array([0, -1]))
    >>> top.tolist(), sums.tolist(), squares.tolist()
    ([0.0, 0.0], [[1.0, 1.0], [1.0, 2.0]], [[1.0, 1.0], [1.0, 2.0]])
    """
    order = np.argsort(labels, kind="stable")
    offsets = np.searchsorted(labels[order], np.arange(n_classes + 1))
    place = np.empty(len(order) + 1, dtype=np.int64)
    place[order], place[-1] = np.arange(len(order)), -1
    a, b = _packed_pair(queries, keys[order])
    top, sums = np.full(len(queries), -np.inf), np.zeros((2, len(queries), n_classes))
    left_out = place[own]
    groups = min(GROUPS, len(a))
    in_threads(
        lambda group: _rows_of_group(a, b, offsets, left_out, group, top, sums, _space()),
        groups,
        threads_for(len(queries) * len(keys), threads),
    )
    return top, sums[0], sums[1]


def value_sums(
    queries: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    spread: np.ndarray,
    own: np.ndarray,
    *,
    threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The largest product of each query ``(m,)``, sums of weights times values, and of squared weights.

    Weights are as in :func:`class_sums`. The sums ``(m, q + 1)`` are over ``w values`` for values ``(n, q)``, and over w;
    the squares ``(m, 2)`` over ``w^2 spread`` for ``(n,)``, and over ``w^2``.

    >>> top, sums, squares = value_sums(np.zeros((1, 1)), np.zeros((3, 1)), np.eye(3), np.full(3, 5.0), np.array([0]))
    >>> sums.tolist(), squares.tolist()
    ([[0.0, 1.0, 1.0, 2.0]], [[10.0, 2.0]])
    """
    a, b = _packed_pair(queries, keys)
    columns = aligned(values.shape[1] + 2, len(b) * BLOCK)
    columns[:, : len(keys)] = np.column_stack([values, np.ones(len(keys)), spread]).T
    top, sums, squares = (
        np.full(len(queries), -np.inf),
        np.zeros((len(queries), len(columns) - 1)),
        np.zeros((len(queries), 2)),
    )
    groups = min(GROUPS, len(a))
    in_threads(
        lambda group: _values_of_group(a, b, columns, own, group, top, sums, squares, _space()),
        groups,
        threads_for(len(queries) * len(keys), threads),
    )
    return top, sums, squares


def _packed_pair(queries: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both as blocks; one more feature keeps the zeros that fill up the last block from weighing anything."""
    a = _packed(np.column_stack([queries, np.ones(len(queries))]))
    b = _packed(np.column_stack([keys, np.zeros(len(keys))]))
    b.reshape(len(b), -1, BLOCK)[-1, keys.shape[1], len(keys) - (len(b) - 1) * BLOCK :] = NEVER
    return a, b


def picked_sums(
    queries: np.ndarray, keys: np.ndarray, values: np.ndarray, labels: np.ndarray,
    *, before: int = 0, threads: int | None = None,
) -> np.ndarray:  # fmt: skip
    """``sum_{j != i} exp(<query_i, key_j> + shift_j) values[j, label_i]`` of each row i, ``(m,)``.

    The shifts are one more column of the keys; exponents are at most 0. Queries and their labels are those of all keys, or of
    consecutive ones that so many blocks of keys come ``before``. O(m n d) time, O((m + n) (d + classes)) memory.

    >>> picked_sums(np.zeros((3, 1)), np.zeros((3, 2)), np.array([[1.0, 10.0], [2, 20], [3, 30]]), np.array([0, 1, 0]))
    array([ 5., 40.,  3.])
    """
    a = _packed(np.column_stack([queries, np.ones(len(queries))]))
    b = _packed(keys)
    columns = aligned(values.shape[1], len(b) * BLOCK)
    columns[:, : len(keys)] = values.T
    sums = np.zeros(len(queries))
    groups = min(GROUPS, len(a))
    in_threads(
        lambda group: _picked_of_group(a, b, columns, labels, before, group, sums, _space()),
        groups,
        threads_for(len(queries) * len(keys), threads),
    )
    return sums


def _space() -> np.ndarray:
    """Where a group keeps a strip of products, and halves of a block."""
    return aligned(STRIP * BLOCK + BLOCK // 2)


@borrowing
def _largest(values: np.ndarray, scratch: np.ndarray) -> float:
    """The largest of a block, by halving: comparisons of halves become vector instructions, a running maximum does not."""
    half = BLOCK // 2
    for j in range(half):
        scratch[j] = values[j] if values[j] > values[j + half] else values[j + half]
    while half > 1:
        half //= 2
        for j in range(half):
            scratch[j] = scratch[j] if scratch[j] > scratch[j + half] else scratch[j + half]
    return scratch[0]


@borrowing
def _exponentials(values: np.ndarray, top: float) -> None:
    for j in range(BLOCK):
        values[j] = exp_negative(values[j] - top)


@borrowing
def _dot(a: np.ndarray, b: np.ndarray, scratch: np.ndarray) -> float:
    """The inner product of two blocks, always in the same order."""
    for j in range(LANES):
        first = fma(a[j + LANES], b[j + LANES], a[j] * b[j])
        scratch[j] = fma(a[j + 3 * LANES], b[j + 3 * LANES], fma(a[j + 2 * LANES], b[j + 2 * LANES], first))
    return folded(scratch)


@borrowing
def _total(a: np.ndarray, scratch: np.ndarray) -> float:
    """The sum of a block, always in the same order."""
    for j in range(LANES):
        scratch[j] = (a[j] + a[j + LANES]) + (a[j + 2 * LANES] + a[j + 3 * LANES])
    return folded(scratch)


@borrowing
def _add(
    weights: np.ndarray, start: int, offsets: np.ndarray, first: int, sums: np.ndarray, squares: np.ndarray,
    scratch: np.ndarray,
) -> None:  # fmt: skip
    """Add a block of weights, and their squares, to the classes it holds; most blocks hold one class."""
    if offsets[first + 1] >= start + BLOCK:
        sums[first] += _total(weights, scratch)
        squares[first] += _dot(weights, weights, scratch)
        return
    c, low = first, 0
    while low < BLOCK and c < len(sums):
        high = min(offsets[c + 1] - start, BLOCK)
        s = t = 0.0
        for j in range(low, high):
            s += weights[j]
            t = fma(weights[j], weights[j], t)
        sums[c] += s
        squares[c] += t
        c, low = c + 1, max(low, high)


@borrowing
def _rescale(sums: np.ndarray, squares: np.ndarray, factor: float) -> None:
    for c in range(len(sums)):
        sums[c] *= factor
    for c in range(len(squares)):
        squares[c] *= factor * factor


@borrowing
def _weighed(
    values: np.ndarray, own: int, scratch: np.ndarray, i: int, top: np.ndarray, sums: np.ndarray, squares: np.ndarray
) -> bool:
    """Products of query i and a block become weights relative to the largest so far, without the query's own key.

    Where the block holds a larger one, ``top[i]`` and its sums are brought up to it. False where none counts.
    """
    if 0 <= own < BLOCK:
        values[own] = NEVER
    here = _largest(values, scratch)
    if here <= 0.1 * NEVER or here - top[i] < NEGLIGIBLE:
        return False
    if here > top[i]:
        _rescale(sums, squares, exp_negative(max(top[i] - here, NEGLIGIBLE - 1.0)))
        top[i] = here
    _exponentials(values, top[i])
    return True


@borrowing
def _rows_of_group(
    a: np.ndarray, b: np.ndarray, offsets: np.ndarray, own: np.ndarray, group: int, top: np.ndarray, sums: np.ndarray,
    space: np.ndarray,
) -> None:  # fmt: skip
    """The blocks of queries ``group, group + GROUPS, ...`` against all keys."""
    products, scratch = space[: STRIP * BLOCK], space[STRIP * BLOCK :]
    for p in range(group, len(a), GROUPS):
        for first in range(p * BLOCK, min((p + 1) * BLOCK, len(top)), STRIP):
            c = 0
            for t in range(len(b)):
                start = t * BLOCK
                while c + 1 < len(offsets) - 1 and offsets[c + 1] <= start:
                    c += 1
                _products(a[p, first - p * BLOCK :], b[t], products)
                for i in range(first, min(first + STRIP, len(top))):
                    values = products[(i - first) * BLOCK : (i - first + 1) * BLOCK]
                    if _weighed(values, own[i] - start, scratch, i, top, sums[0, i], sums[1, i]):
                        _add(values, start, offsets, c, sums[0, i], sums[1, i], scratch)


@borrowing
def _picked_of_group(
    a: np.ndarray, b: np.ndarray, values: np.ndarray, labels: np.ndarray, before: int, group: int, sums: np.ndarray,
    space: np.ndarray,
) -> None:  # fmt: skip
    """The blocks of queries ``group, group + GROUPS, ...`` against all keys; block p has the keys of block ``before + p``."""
    products, scratch = space[: STRIP * BLOCK], space[STRIP * BLOCK :]
    for p in range(group, len(a), GROUPS):
        for first in range(p * BLOCK, min((p + 1) * BLOCK, len(sums)), STRIP):
            for t in range(len(b)):
                start = t * BLOCK
                _products(a[p, first - p * BLOCK :], b[t], products)
                for i in range(first, min(first + STRIP, len(sums))):
                    logs = products[(i - first) * BLOCK : (i - first + 1) * BLOCK]
                    if t == before + p:
                        logs[i - p * BLOCK] = NEVER
                    _exponentials(logs, 0.0)
                    sums[i] += _dot(logs, values[labels[i], start : start + BLOCK], scratch)


@borrowing
def _values_of_group(
    a: np.ndarray, b: np.ndarray, columns: np.ndarray, own: np.ndarray, group: int,
    top: np.ndarray, sums: np.ndarray, squares: np.ndarray, space: np.ndarray,
) -> None:  # fmt: skip
    """The blocks of queries ``group, group + GROUPS, ...`` against all keys."""
    products, scratch = space[: STRIP * BLOCK], space[STRIP * BLOCK :]
    spread = len(columns) - 1
    for p in range(group, len(a), GROUPS):
        for first in range(p * BLOCK, min((p + 1) * BLOCK, len(top)), STRIP):
            for t in range(len(b)):
                start = t * BLOCK
                _products(a[p, first - p * BLOCK :], b[t], products)
                for i in range(first, min(first + STRIP, len(top))):
                    values = products[(i - first) * BLOCK : (i - first + 1) * BLOCK]
                    if not _weighed(values, own[i] - start, scratch, i, top, sums[i], squares[i]):
                        continue
                    for c in range(spread):
                        sums[i, c] += _dot(values, columns[c, start : start + BLOCK], scratch)
                    for j in range(BLOCK):
                        values[j] *= values[j]
                    squares[i, 0] += _dot(values, columns[spread, start : start + BLOCK], scratch)
                    squares[i, 1] += _dot(values, columns[spread - 1, start : start + BLOCK], scratch)
