"""Kernel regression on the simplex with Dirichlet kernels: what happened at predictions like this one."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant._array import as_double, detached, gammaln, is_traced, namespace, on_gpu, to_numpy
from calibrant._pairwise import Pairwise
from calibrant._softmax import Softmax
from calibrant._tasks import UNIT, by_pieces
from calibrant.distributions.base import matched
from calibrant.typing import Array, Engine

FEW = 2000
"""Up to so many rows, loading compiled code takes longer than computing without it."""

PANEL = 256
"""Rows whose weights are held at a time, where they are needed as numbers."""

NEVER = -1e30
"""Stands for the logarithm of zero in products, where ``0 * -inf`` would be NaN."""


@dataclass(frozen=True, eq=False)
class DirichletRows:
    """Rows as queries and as keys, whose inner product is the logarithm of the kernel.

    ``log k(z; f) = sum_c (f_c / h) log z_c - sum_c log gamma(f_c / h + 1) + log gamma(sum_c f_c / h + K)``, the density
    at z of the Dirichlet distribution with parameters ``f / h + 1``; with two classes the Beta distribution. With
    ``0 log 0 = 0``, and ``k = 0`` where ``z_c = 0 < f_c``: a point on a face of the simplex sees only points of that
    face. The rows of f need not sum to one exactly. Weights of rows multiply the kernel. ``may_vanish`` says whether the
    kernel can be zero.

    >>> rows = DirichletRows.of(np.array([[0.5, 0.5], [1.0, 0.0]]), 1.0)
    >>> np.exp(log_kernel(rows, rows)).round(4).tolist()  # Beta(1.5, 1.5) and Beta(2, 1), at 1/2 and at 1
    [[1.2732, 1.0], [0.0, 2.0]]
    """

    queries: Array
    keys: Array
    may_vanish: bool

    @classmethod
    def of(cls, points: Array, bandwidth: float, weights: np.ndarray | None = None) -> Self:
        """Rows of points ``(n, K)`` of the simplex, in double precision: logarithms of narrow kernels are large."""
        f = as_double(points)
        xp = namespace(f)
        is_zero = f == 0
        alpha = f / bandwidth
        bias = gammaln(xp.sum(alpha, axis=1) + f.shape[1]) - xp.sum(gammaln(alpha + 1), axis=1)
        if weights is not None:
            logs = np.log(weights, where=weights > 0, out=np.full(len(weights), NEVER))
            bias = bias + xp.astype(matched(logs, bias), bias.dtype)
        queries = [xp.log(xp.where(is_zero, xp.ones_like(f), f)), xp.ones_like(f[:, :1])]
        keys = [alpha, bias[:, None]]
        has_zeros = is_traced(f) or bool(xp.any(detached(is_zero)))
        if has_zeros:
            queries.append(NEVER * xp.astype(is_zero, f.dtype))
            keys.append(xp.astype(~is_zero, f.dtype))
        may_vanish = has_zeros or (weights is not None and not weights.all())
        return cls(xp.concat(queries, axis=1), xp.concat(keys, axis=1), may_vanish)

    def __len__(self) -> int:
        return int(self.queries.shape[0])

    def __getitem__(self, rows: slice) -> Self:
        return type(self)(self.queries[rows, :], self.keys[rows, :], self.may_vanish)


def log_kernel(rows: DirichletRows, columns: DirichletRows) -> Array:
    """``log k(f_j; f_i)`` of rows j and columns i, ``(n, m)``."""
    xp = namespace(rows.queries)
    values = rows.queries @ xp.permute_dims(columns.keys, (1, 0))
    if not (rows.may_vanish or columns.may_vanish):
        return values
    return xp.where(values < NEVER / 10, xp.full_like(values, -xp.inf), values)


def regression(rows: DirichletRows, labels: Array, n_classes: int, engine: Engine | None = None) -> Softmax:
    """Frequencies of the labels ``(n,)`` around each row but without it; ``-inf`` for rows that see no other.

    O(n^2 K) time, O(n K) memory, also of gradients; compiled for many rows of NumPy arrays, and on a GPU. An engine does
    what is compiled, some rows a task.
    """
    if isinstance(rows.queries, np.ndarray) and len(rows) > FEW:
        return _compiled(rows, labels, n_classes, engine)
    if on_gpu(detached(rows.queries)) and len(rows) > FEW:
        averages = _on_gpu(rows, labels, n_classes)
        if averages is not NotImplemented:
            return averages
    xp = namespace(rows.queries)
    classes = namespace(labels).arange(n_classes, dtype=labels.dtype, device=getattr(labels, "device", None))
    happened = labels[:, None] == classes[None, :]
    v = xp.astype(matched(happened, rows.queries), rows.queries.dtype)
    return Pairwise(log_kernel, rows).logmatmul(v, diagonal=False)


def _compiled(rows: DirichletRows, labels: np.ndarray, n_classes: int, engine: Engine | None) -> Softmax:
    own = np.arange(len(rows))
    top, sums, squares = by_pieces(_class_sums, (rows.queries, own), (rows.keys, labels, n_classes), engine)
    total = np.where(np.isinf(top), 1.0, sums.sum(axis=1))
    weighed, twice = sums / total[:, None], squares / total[:, None] ** 2
    return Softmax(top + np.log(total), weighed, twice.sum(axis=1), twice)


def _on_gpu(rows: DirichletRows, labels: Array, n_classes: int) -> Any:
    """With gradients; not where there are too many classes for the registers of a GPU, or too many rows for its memory."""
    from calibrant._fused.cuda import class_averages
    from calibrant._fused.room import NoRoomError

    try:
        averages = class_averages(rows.queries, rows.keys, matched(labels, rows.queries), n_classes)
    except NoRoomError:
        warnings.warn(f"the GPU has no room for {len(rows):,} rows at once: in tiles now", RuntimeWarning, stacklevel=4)
        return NotImplemented
    return NotImplemented if averages is NotImplemented else Softmax(*averages)


def smoothed(
    rows: DirichletRows, values: Array, spread: Array, chosen: np.ndarray | None = None, engine: Engine | None = None
) -> Softmax:
    """Averages of values ``(n, q)`` around each row but without it; ``mean_of_squares`` is of ``spread``, ``(n, 1)``.

    ``chosen`` rows of NumPy arrays, or all. O(n^2 (K + q)) time, O(n (K + q)) memory. Engines are as for :func:`regression`.
    """
    if isinstance(rows.queries, np.ndarray) and (chosen is not None or len(rows) > FEW):
        own = np.arange(len(rows)) if chosen is None else chosen
        shared = rows.keys, values, spread[:, 0]
        top, sums, squares = by_pieces(_value_sums, (rows.queries[own], own), shared, engine)
        total = np.where(np.isinf(top), 1.0, sums[:, -1])[:, None]
        squares = squares / total**2
        return Softmax(top + np.log(total[:, 0]), sums[:, :-1] / total, squares[:, 1], squares[:, :1])
    local = Pairwise(log_kernel, rows).logmatmul(namespace(values).concat([values, spread], axis=1), diagonal=False)
    return Softmax(local.log_sum, local.mean[:, :-1], local.squares, local.mean_of_squares[:, -1:])


def log_sums(rows: DirichletRows, chosen: np.ndarray) -> np.ndarray:
    """Logarithms of the sums of kernels around some rows, without themselves, ``(chosen,)``; tensors stay on their device."""
    if not isinstance(rows.queries, np.ndarray):
        return to_numpy(_log_sums_of_tensors(rows, matched(chosen, rows.queries)))
    if len(rows) <= FEW:
        return np.concatenate([top + np.log(total) for _, _, top, total in _panels(rows, chosen)])
    from calibrant._fused.softmax import class_sums

    one = np.zeros(len(rows), dtype=np.int64)
    top, sums, _ = class_sums(rows.queries[chosen], rows.keys, one, 1, chosen)
    return top + np.log(np.where(np.isinf(top), 1.0, sums[:, 0]))


def _log_sums_of_tensors(rows: DirichletRows, chosen: Array) -> Array:
    xp = namespace(rows.queries)

    def around(own: Array) -> Array:
        top, values = _relative(rows, own)
        return top[:, 0] + xp.log(xp.sum(xp.exp(values), axis=1))

    return xp.concat([around(chosen[start : start + PANEL]) for start in range(0, len(chosen), PANEL)])


def weights_of_tensors(rows: DirichletRows, chosen: Array) -> Array:
    """Weights of all rows around some, ``(chosen, n)``, which sum to 1, or to 0 for a row that sees no other; tensors."""
    xp = namespace(rows.queries)
    _, values = _relative(rows, chosen)
    weights = xp.exp(values)
    total = xp.sum(weights, axis=1, keepdims=True)
    return weights / xp.where(total > 0, total, 1.0)


def _relative(rows: DirichletRows, own: Array) -> tuple[Array, Array]:
    """The largest logarithm of the kernel around some rows, without themselves, and all of them less that."""
    xp = namespace(rows.queries)
    every = xp.arange(len(rows), device=rows.queries.device)
    values = log_kernel(DirichletRows(rows.queries[own, :], rows.keys[own, :], rows.may_vanish), rows)
    values = xp.where(every[None, :] == own[:, None], -xp.inf, values)
    top = xp.max(values, axis=1, keepdims=True)
    top = xp.where(xp.isinf(top), 0.0, top)
    return top, values - top


def influences(
    rows: DirichletRows, local: Softmax, values: np.ndarray, labels: np.ndarray, engine: Engine | None = None
) -> np.ndarray:
    """``sum_j w_ji values[j, label_i]`` for each i, ``(n,)``: what row i adds to the rows around it; NumPy arrays.

    ``w_ji`` is the weight of i in the regression at j, ``values`` are ``(n, classes)``. O(n^2 K) time, O(n K) memory. Engines
    are as for :func:`regression`.
    """
    if len(rows) <= FEW:
        sums = sum(values[index].T @ weights for index, weights in weight_panels(rows))
        return np.take_along_axis(sums, labels[None, :], axis=0)[0]
    shift = np.where(local.is_empty, NEVER, -local.log_sum)
    shared = np.column_stack([rows.queries, shift]), values
    return by_pieces(_picked_sums, (rows.keys, labels, np.arange(len(rows))), shared, engine)[0]


def _class_sums(queries: Array, own: Array, keys: Array, labels: Array, n_classes: int, **threads: int) -> Any:
    from calibrant._fused.softmax import class_sums

    return class_sums(queries, keys, labels, n_classes, own, **threads)


def _value_sums(queries: Array, own: Array, keys: Array, values: Array, spread: Array, **threads: int) -> Any:
    from calibrant._fused.softmax import value_sums

    return value_sums(queries, keys, values, spread, own, **threads)


def _picked_sums(queries: Array, labels: Array, own: Array, keys: Array, values: Array, **threads: int) -> Any:
    from calibrant._fused.softmax import picked_sums

    return (picked_sums(queries, keys, values, labels, before=int(own[0]) // UNIT, **threads),)


def weight_panels(rows: DirichletRows, chosen: np.ndarray | None = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Panels of chosen rows, or all, and their weights of all rows, which sum to 1, or to 0 for a row that sees no other."""
    for index, weights, _, total in _panels(rows, np.arange(len(rows)) if chosen is None else chosen):
        yield index, weights / total[:, None]


def _panels(rows: DirichletRows, chosen: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Some rows at a time: which, their weights relative to the largest, its logarithm, and the sum of weights (or 1)."""
    for start in range(0, len(chosen), PANEL):
        index = chosen[start : start + PANEL]
        values = rows.queries[index] @ rows.keys.T
        values[np.arange(len(index)), index] = NEVER
        top = values.max(axis=1)
        top = np.where(top < NEVER / 10, -np.inf, top)
        weights = np.exp(np.minimum(values - np.where(np.isinf(top), 0.0, top)[:, None], 0.0))
        yield index, weights, top, np.where(np.isinf(top), 1.0, weights.sum(axis=1))
