"""Kernel regression on the simplex with Dirichlet kernels, and the choice of their bandwidth."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.spatial.distance import pdist

from calibrant._array import as_double, detached, gammaln, is_traced, matched, namespace, on_gpu, to_numpy
from calibrant._compiled.choice import BY_ENGINE, NOT_COMPILED, ON_GPU, PLAIN, compiled_loop, is_long, tell
from calibrant._pairwise import Pairwise
from calibrant._softmax import Softmax
from calibrant._tasks import UNIT, by_pieces, elsewhere
from calibrant.kernels.metrics import thinned, where_they_are
from calibrant.typing import Array, Engine

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
    what is compiled, some rows per task.
    """
    if isinstance(rows.queries, np.ndarray) and is_long(len(rows)):
        tell(BY_ENGINE if elsewhere(engine) else compiled_loop(rows.queries))
        return _compiled(rows, labels, n_classes, engine)
    if on_gpu(detached(rows.queries)) and is_long(len(rows)):
        averages = _on_gpu(rows, labels, n_classes)
        if averages is not NotImplemented:
            tell(ON_GPU)
            return averages
    tell(NOT_COMPILED if is_long(len(rows)) else PLAIN)
    xp = namespace(rows.queries)
    classes = namespace(labels).arange(n_classes, dtype=labels.dtype, device=getattr(labels, "device", None))
    observed = labels[:, None] == classes[None, :]
    v = xp.astype(matched(observed, rows.queries), rows.queries.dtype)
    return Pairwise(log_kernel, rows).logmatmul(v, diagonal=False)


def _compiled(rows: DirichletRows, labels: np.ndarray, n_classes: int, engine: Engine | None) -> Softmax:
    own = np.arange(len(rows))
    top, sums, squares = by_pieces(_class_sums, (rows.queries, own), (rows.keys, labels, n_classes), engine)
    total = np.where(np.isinf(top), 1.0, sums.sum(axis=1))
    weighed, twice = sums / total[:, None], squares / total[:, None] ** 2
    return Softmax(top + np.log(total), weighed, twice.sum(axis=1), twice)


def _on_gpu(rows: DirichletRows, labels: Array, n_classes: int) -> Any:
    """With gradients; not where there are too many classes for the registers of a GPU, or too many rows for its memory."""
    from calibrant._compiled.cuda import class_averages
    from calibrant._compiled.cuda_memory import GPUMemoryError

    try:
        averages = class_averages(rows.queries, rows.keys, matched(labels, rows.queries), n_classes)
    except GPUMemoryError:
        warnings.warn(
            f"the GPU has no memory for {len(rows):,} rows at once: in tiles now", RuntimeWarning, stacklevel=4
        )
        return NotImplemented
    return NotImplemented if averages is NotImplemented else Softmax(*averages)


def smoothed(
    rows: DirichletRows, values: Array, spread: Array, chosen: np.ndarray | None = None, engine: Engine | None = None
) -> Softmax:
    """Averages of values ``(n, q)`` around each row but without it; ``mean_of_squares`` is of ``spread``, ``(n, 1)``.

    ``chosen`` rows of NumPy arrays, or all. O(n^2 (K + q)) time, O(n (K + q)) memory. Engines are as for :func:`regression`.
    """
    if isinstance(rows.queries, np.ndarray) and (chosen is not None or is_long(len(rows))):
        if chosen is None:
            tell(BY_ENGINE if elsewhere(engine) else compiled_loop(rows.queries))
        own = np.arange(len(rows)) if chosen is None else chosen
        shared = rows.keys, values, spread[:, 0]
        top, sums, squares = by_pieces(_value_sums, (rows.queries[own], own), shared, engine)
        total = np.where(np.isinf(top), 1.0, sums[:, -1])[:, None]
        squares = squares / total**2
        return Softmax(top + np.log(total[:, 0]), sums[:, :-1] / total, squares[:, 1], squares[:, :1])
    tell(NOT_COMPILED if is_long(len(rows)) else PLAIN)
    local = Pairwise(log_kernel, rows).logmatmul(namespace(values).concat([values, spread], axis=1), diagonal=False)
    return Softmax(local.log_sum, local.mean[:, :-1], local.squares, local.mean_of_squares[:, -1:])


def log_sums(rows: DirichletRows, chosen: np.ndarray) -> np.ndarray:
    """Logarithms of the sums of kernels around some rows, without themselves, ``(chosen,)``; tensors stay on their device."""
    if not isinstance(rows.queries, np.ndarray):
        return to_numpy(_log_sums_of_tensors(rows, matched(chosen, rows.queries)))
    if not is_long(len(rows)):
        return np.concatenate([top + np.log(total) for _, _, top, total in _panels(rows, chosen)])
    from calibrant._compiled.softmax_sums import class_sums

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
    if not is_long(len(rows)):
        sums = sum(values[index].T @ weights for index, weights in weight_panels(rows))
        return np.take_along_axis(sums, labels[None, :], axis=0)[0]
    shift = np.where(local.is_empty, NEVER, -local.log_sum)
    shared = np.column_stack([rows.queries, shift]), values
    return by_pieces(_picked_sums, (rows.keys, labels, np.arange(len(rows))), shared, engine)[0]


def _class_sums(queries: Array, own: Array, keys: Array, labels: Array, n_classes: int, **threads: int) -> Any:
    from calibrant._compiled.softmax_sums import class_sums

    return class_sums(queries, keys, labels, n_classes, own, **threads)


def _value_sums(queries: Array, own: Array, keys: Array, values: Array, spread: Array, **threads: int) -> Any:
    from calibrant._compiled.softmax_sums import value_sums

    return value_sums(queries, keys, values, spread, own, **threads)


def _picked_sums(queries: Array, labels: Array, own: Array, keys: Array, values: Array, **threads: int) -> Any:
    from calibrant._compiled.softmax_sums import picked_sums

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


MIN_BANDWIDTH, MAX_BANDWIDTH = 1e-5, 1.0
"""Bandwidths that are considered."""

GRID = 16
"""Bandwidths on the first, logarithmic grid."""

PRECISION = 0.01
"""Relative error of the bandwidth found."""

JUDGES = 1000
"""Predictions whose likelihood decides; all others still take part in the density."""

MIN_DIFFERENT = 20
"""Different predictions that are needed to judge."""

BALANCED = 200
"""Predictions at which the smoothing of a calibrated model is compared with its noise."""

WORTHWHILE = 0.95
"""Another bandwidth is taken where it has at most this part of the squared error of the likeliest."""


class Bandwidth(NamedTuple):
    """A bandwidth, and what a reader must know of it."""

    value: float
    note: str | None = None


def likeliest_bandwidth(points: Array, weights: np.ndarray | None = None) -> Bandwidth:
    """The bandwidth that maximises ``sum_j log sum_{i != j} k(f_j; f_i)`` for points ``(n, K)`` of the simplex.

    The best of a grid, refined to one percent. Predictions with copies would be the more likely the narrower the
    kernel, without end: they do not judge, and where all have copies, each is left out with its copies. Predictions of
    fewer than twenty values need no smoothing: the kernel is made too narrow to reach from one to the next. More than a
    thousand judges are thinned. O(n K) for each bandwidth tried, some thirty, on the GPU where the points are. Duin (1976).

    Predictions that are spread evenly are likeliest under the widest kernels, which flatten every regression: a calibrated
    model would then look far from calibrated. Where the frequencies of a calibrated model, ``sum_i w_ji f_i``, would be
    smoothed away from its predictions by more than their noise, ``sum_i w_ji^2 f_i (1 - f_i)`` in squares, the bandwidth is
    the one at which both together are least, and a note says so. It depends on the predictions alone.

    >>> rng = np.random.default_rng(0)
    >>> round(likeliest_bandwidth(rng.dirichlet([8, 3, 2], 500)).value, 3)
    0.015
    """
    there, host = where_they_are(points), to_numpy(points)
    if weights is not None:
        host, weights = host[weights > 0], weights[weights > 0]
    values, which, copies = np.unique(host, axis=0, return_inverse=True, return_counts=True)
    if len(values) < min(MIN_DIFFERENT, len(host)):
        return _few(values)
    mass = np.bincount(which.ravel(), weights)
    singles = np.flatnonzero(copies == 1)
    candidates = singles if len(singles) >= MIN_DIFFERENT else np.arange(len(values))
    judges = candidates[thinned(values[candidates])[:JUDGES]]

    different = matched(values, there)

    def likelihood(bandwidth: float) -> np.ndarray:
        return log_sums(DirichletRows.of(different, bandwidth, mass), judges)

    seen = np.isfinite(likelihood(MAX_BANDWIDTH))  # a prediction alone on its face of the simplex is never likely
    if not seen.any():
        return Bandwidth(MAX_BANDWIDTH, "no prediction shares the zeros of another: none has neighbours")
    value = _maximum(lambda h: float(np.average(likelihood(h)[seen], weights=mass[judges][seen])))
    share = np.bincount(which.ravel(), None if weights is None else weights**2) / mass**2
    balanced = _balanced(different, mass, share, judges[seen][:BALANCED], value)
    notes = (
        [] if balanced is None else [f"the likeliest bandwidth, {value:.2g}, would make a calibrated model look wrong"]
    )
    if tied := len(host) - len(singles):
        part = "do not choose the bandwidth" if len(singles) >= MIN_DIFFERENT else "are left out together with them"
        notes.append(f"{tied:,} rows have copies and {part}")
    return Bandwidth(value if balanced is None else balanced, "; ".join(notes) or None)


def _balanced(values: Array, mass: np.ndarray, share: np.ndarray, chosen: np.ndarray, likeliest: float) -> float | None:
    """The bandwidth of least squared error of calibrated frequencies; ``None`` where the likeliest smooths less than it is noisy.

    ``share`` is the part of a value's variance that is left when its copies are averaged.
    """
    points = as_double(values)
    variance = namespace(points).sum(points * (1 - points), axis=1)
    spread = (matched(share, points) * variance)[:, None]
    own = matched(chosen, points)

    def errors(bandwidth: float) -> tuple[float, float]:
        rows = DirichletRows.of(points, bandwidth, mass)
        mean, noise = _calibrated(rows, points, spread, chosen)
        return float(((mean - points[own]) ** 2).sum()), float(noise.sum())

    smoothing, noise = errors(likeliest)
    if smoothing <= noise:
        return None
    best = min(_maximum(lambda h: -sum(errors(h))), likeliest)
    return best if sum(errors(best)) <= WORTHWHILE * (smoothing + noise) else None


def _calibrated(rows: DirichletRows, points: Array, spread: Array, chosen: np.ndarray) -> tuple[Array, Array]:
    """Frequencies of a calibrated model around some rows, ``(m, K)``, and the sums of their variances, ``(m, 1)``."""
    if not isinstance(points, np.ndarray):
        weights = weights_of_tensors(rows, matched(chosen, points))
        return weights @ points, weights**2 @ spread
    if is_long(len(rows)):
        local = smoothed(rows, points, spread, chosen)
        return local.mean, local.mean_of_squares
    weights = np.concatenate([weights for _, weights in weight_panels(rows, chosen)])
    return weights @ points, weights**2 @ spread


def _few(values: np.ndarray) -> Bandwidth:
    """Kernels, whose standard deviation is at most ``sqrt(h) / 2``, that end before the nearest other value."""
    if len(values) == 1:
        return Bandwidth(MAX_BANDWIDTH)
    gap = float(pdist(values, "chebyshev").min())
    return Bandwidth(
        float(np.clip((gap / 4) ** 2, MIN_BANDWIDTH, MAX_BANDWIDTH)), "the bandwidth keeps the few values apart"
    )


def _maximum(objective: Callable[[float], float]) -> float:
    """The best of the grid, refined between its neighbours, on the logarithmic scale."""
    from scipy.optimize import minimize_scalar  # slow to import

    grid = np.linspace(np.log(MIN_BANDWIDTH), np.log(MAX_BANDWIDTH), GRID)
    values = [objective(np.exp(u)) for u in grid]
    best = int(np.argmax(values))
    around = grid[max(best - 1, 0)], grid[min(best + 1, GRID - 1)]
    finer = minimize_scalar(
        lambda u: -objective(np.exp(u)), bounds=around, method="bounded", options={"xatol": PRECISION}
    )
    chosen = np.exp(finer.x if -finer.fun > values[best] else grid[best])
    return float(np.clip(chosen, MIN_BANDWIDTH, MAX_BANDWIDTH))
