"""The kernel error of resampled targets: what depends on the predictions alone is made once."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from calibrant._array import matched, on_gpu, to_numpy
from calibrant._compiled.choice import has_triton
from calibrant._pairwise import Pairwise
from calibrant.distributions.base import Distribution
from calibrant.distributions.characteristic_functions import around, origin_of
from calibrant.distributions.continuous.location_scale import Laplace
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.empirical.ensemble import Ensemble
from calibrant.estimators.kernel_errors.kernel_problem import (
    KernelForm,
    KernelRows,
    coordinates,
    unit_weights,
    weight_of_pairs,
)
from calibrant.estimators.kernel_errors.kernel_sums import (
    accelerated_product,
    all_pairs,
    compiled_law,
    is_compiled,
)
from calibrant.kernels import Identity, Kernel, LabelMatrix
from calibrant.kernels.base import as_points, expectation
from calibrant.residuals.embedding import (
    Route,
    SpectralFeatures,
    label_residuals,
    quantile_nodes,
    residuals,
    spectral_features,
)
from calibrant.typing import Array


def work_of_resample(kernel: Kernel, predictions: Distribution, dimensions: int) -> float:
    """Multiplications that one resample costs, roughly."""
    if isinstance(predictions, Categorical):
        is_line = dimensions == 1 and kernel.has_product
        return work_of_labels(len(predictions), predictions.n_classes, is_line=is_line)
    if isinstance(predictions, Ensemble) and predictions.is_vector:
        return 200.0 * len(predictions) ** 2 * int(predictions.members.shape[1])  # sums over members
    if isinstance(predictions, Laplace):
        return 200.0 * work_of_numbers(len(predictions))  # its closed forms are long
    return work_of_numbers(len(predictions))


def work_of_labels(n: int, n_classes: int, *, is_line: bool) -> float:
    """Multiplications that one resample of n labels costs: on a line none of pairs.

    >>> work_of_labels(1000, 10, is_line=False), work_of_labels(1000, 2, is_line=True)
    (10000000.0, 20000.0)
    """
    return 20.0 * n if is_line else float(n) ** 2 * n_classes


def work_of_numbers(n: int) -> float:
    """Multiplications that one resample of n numbers costs: four exponentials a pair.

    >>> work_of_numbers(1000)
    50000000.0
    """
    return 50.0 * float(n) ** 2


OF_A_GPU = 100.0
"""Pairs of labels that a GPU compares in the time of one multiplication on two cores."""


@dataclass(frozen=True, eq=False)
class GpuLabelResamples:
    """``sum_{i != j} k_ij <r_i, r_j>``, normalised, for stacks of resampled labels of three or more classes.

    The kernel is compared with pairs of equal labels; what depends on the predictions alone is made once. O(n^2) per resample.
    """

    kernel: Kernel
    predictions: Categorical
    weights: np.ndarray | None
    unbiased: bool

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """The statistic of each resample, ``(m,)``."""
        w = unit_weights(self.weights, len(self.predictions))
        labels = matched(targets if targets.dtype == np.uint8 else targets.astype(np.int32), self.predictions.matrix)
        if self.unbiased:
            return self._in_batches(self._sums, labels) / weight_of_pairs((w**2).sum(), len(w))
        sums, squares = (self._in_batches(made, labels) for made in (self._sums, self._sums.diagonal))
        return (sums + squares) / len(w) ** 2

    def _in_batches(self, made: Callable[[Array], Array], labels: Array) -> np.ndarray:
        """What is made of all resamples at once, or of fewer where the GPU has no memory for that."""
        from calibrant._compiled.cuda_memory import in_smaller, memory_for

        def batches(size: int) -> np.ndarray:
            return np.concatenate([to_numpy(made(labels[i : i + size])) for i in range(0, len(labels), size)])

        with memory_for("resamples", len(self.predictions)):
            return in_smaller(batches, len(labels), 1, "{:,} resamples at once")

    @cached_property
    def _sums(self) -> Any:
        from calibrant._compiled.cuda import dtype_of_pairs
        from calibrant._compiled.cuda_resamples import LabelSums

        p, law = self.predictions.matrix, compiled_law(self.kernel)
        assert law is not None
        return LabelSums(p, p, matched(unit_weights(self.weights, len(p)), p), *law, dtype_of_pairs(p))

    def moved_by(self, move: Callable[[Any], Any]) -> Self:
        """The same where predictions are moved to; weights stay on the host."""
        return replace(self, predictions=move(self.predictions))

    def __getstate__(self) -> dict[str, object]:
        return {key: value for key, value in self.__dict__.items() if key != "_sums"}


def resamples_on_gpu(kernel: Kernel, on_targets: Kernel, predictions: Distribution) -> bool:
    """Whether :class:`GpuLabelResamples` can be used."""
    if not isinstance(predictions, Categorical) or not isinstance(on_targets, Identity) or predictions.n_classes < 3:
        return False
    if compiled_law(kernel) is None or not on_gpu(predictions.matrix):
        return False
    return has_triton()


SORTED = 500
"""More rows than this on a line are worth sorting."""

ON_A_LINE = 16
"""Resamples that share one pass over sorted points."""

STORED = 4096
"""Up to so many rows the kernel matrix is kept; beyond, its tiles are made again for every batch of resamples."""

BATCH = 64
"""Resamples that share a kernel tile."""

MAX_NUMBERS = 20_000_000
"""Numbers that the residuals of one batch may take."""

TABLES = 150
"""Up to so many rows, tables of all pairs of many resamples are faster than compiled code, which is called for each."""

CACHED = 50_000
"""Pairs of such a table that are made at a time."""

SPARSE_RATIO = 100
"""Up to so many rows, tiles are as fast as compiled code even where it is loaded once for many resamples."""


@dataclass(frozen=True, eq=False)
class LabelResamples:
    """``sum_{i != j} k_ij <r_i, r_j>``, normalised, for stacks of resampled labels: a matrix product a batch."""

    kernel: Kernel
    on_targets: Identity | LabelMatrix
    predictions: Categorical
    weights: np.ndarray | None
    unbiased: bool

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """The statistic of each resample, ``(m,)``."""
        points = self._points
        if (
            points.shape[1] == 1
            and len(points) > SORTED
            and isinstance(self.on_targets, Identity)
            and self.kernel.has_product
        ):
            return np.concatenate(
                [self._on_a_line(targets[i : i + ON_A_LINE]) for i in range(0, len(targets), ON_A_LINE)]
            )
        multiply, diagonal = _multiplication(self.kernel, points, self._coords), self.kernel.diagonal(points)
        size = min(BATCH, max(1, MAX_NUMBERS // (len(points) * self.predictions.n_classes)))
        batches = [targets[i : i + size] for i in range(0, len(targets), size)]
        return np.concatenate([self._batch(batch, multiply, diagonal) for batch in batches])

    def moved_by(self, move: Callable[[Any], Any]) -> "LabelResamples | GpuLabelResamples":
        """The same where predictions are moved to; weights stay on the host."""
        predictions = move(self.predictions)
        if resamples_on_gpu(self.kernel, self.on_targets, predictions):
            return GpuLabelResamples(self.kernel, predictions, self.weights, self.unbiased)
        return replace(self, predictions=predictions)

    @cached_property
    def _coords(self) -> Array:
        """Points where the predictions are."""
        return coordinates(self.predictions, self.kernel, self.on_targets)

    @cached_property
    def _points(self) -> np.ndarray:
        """The same on the host."""
        return to_numpy(self._coords).astype(np.float64)

    @cached_property
    def _line(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | float, float]:
        """The order of the points; points, probabilities and lengths of a surprise of one in it; the sum of squared weights."""
        order = np.argsort(self._points[:, 0])
        p = to_numpy(self.predictions.probability(1)).astype(np.float64)
        # (-e, e) has the length sqrt2 |e|
        x = self._points[order, 0]
        if self.weights is None:
            return order, x, p[order], 2**0.5, float(len(p))
        w = unit_weights(self.weights, len(p))[order]
        return order, x, p[order], 2**0.5 * w, float((w**2).sum())

    def _on_a_line(self, targets: np.ndarray) -> np.ndarray:
        """Two classes: residuals are numbers, kept in the order of the points."""
        order, x, p, length, squares = self._line
        error = np.empty((len(x), len(targets)))
        np.multiply(length, np.take(targets, order, axis=1, mode="clip") - p, out=error.T)
        sums = 2 * self.kernel.pair_sums(x, error)
        if self.unbiased:
            return sums / weight_of_pairs(squares, len(x))
        return (sums + np.einsum("n,nm,nm->m", self.kernel.diagonal(x[:, None]), error, error)) / len(x) ** 2

    def __getstate__(self) -> dict[str, object]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_coords", "_points", "_line")}

    def _batch(
        self, targets: np.ndarray, multiply: Callable[[np.ndarray], np.ndarray], diagonal: np.ndarray
    ) -> np.ndarray:
        n, w = len(diagonal), unit_weights(self.weights, len(diagonal))
        made = to_numpy(label_residuals(self.on_targets, targets, self.predictions))
        features = np.multiply(np.moveaxis(made, 0, 1), w[:, None, None], dtype=np.float64, order="C")  # (n, m, q)
        product = multiply(features.reshape(n, -1)).reshape(features.shape)
        sums = np.einsum("nmq,nmq->m", product, features)
        if not self.unbiased:
            return sums / n**2
        return (sums - np.einsum("n,nmq,nmq->m", diagonal, features, features)) / weight_of_pairs((w**2).sum(), n)


@dataclass(frozen=True, eq=False)
class TargetResamples:
    """The same for targets of any family: resamples share the kernels, and all that predictions say of themselves."""

    kernel: Kernel
    on_targets: Kernel
    predictions: Distribution
    weights: np.ndarray | None
    unbiased: bool
    route: Route | None

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """The statistic of each resample, ``(m,)``."""
        rows = self._problem(self._targets(targets[0]))
        route = rows.residuals.route
        if rows.residuals.features is not None:
            found = self._spectral(targets, route) if len(rows) <= STORED else NotImplemented
            if found is not NotImplemented:
                return self._by_features(targets, rows, found)
        elif route in (Route.CLOSED, Route.QUANTILE) and self._has_memory(rows):
            return self._term_by_term(targets, rows)
        return np.array([self._alone(self._targets(y), rows) for y in targets])

    def moved_by(self, move: Callable[[Any], Any]) -> Self:
        """The same where predictions are moved to; weights stay on the host."""
        return replace(self, predictions=move(self.predictions))

    def _has_memory(self, rows: KernelRows) -> bool:
        """Whether tables of all pairs can be kept, and there is nothing faster."""
        n = len(rows)
        return n <= TABLES or (n <= STORED and not is_compiled(self.kernel, rows))

    def _spectral(self, targets: np.ndarray, route: Route) -> Any:
        """What predictions, or the quantiles that stand for them, expect of features in the range of all resamples."""
        drawn = self._targets(targets.reshape(-1, *targets.shape[2:]))
        carrier = quantile_nodes(self._moved, drawn) if route is Route.QUANTILE else self._moved
        return spectral_features(self.on_targets, carrier, drawn)

    @cached_property
    def _origin(self) -> Any:
        return origin_of(self.predictions) if self.on_targets.has_free_origin else None

    @cached_property
    def _moved(self) -> Distribution:
        """The predictions as seen from the origin."""
        return around(self._origin, self.predictions)[0]

    @cached_property
    def _coords(self) -> Array:
        return coordinates(self.predictions, self.kernel, self.on_targets)

    def _targets(self, y: np.ndarray) -> Array:
        """Targets as seen from there."""
        return around(self._origin, self.predictions, self.predictions.as_targets(y))[1]

    def _problem(self, drawn: Array) -> KernelRows:
        w = None if self.weights is None else matched(unit_weights(self.weights, len(self.weights)), self._coords)
        return KernelRows(self._coords, residuals(self.on_targets, drawn, self._moved, self.route), w)

    def __getstate__(self) -> dict[str, object]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_origin", "_moved", "_coords")}

    def _alone(self, drawn: Array, rows: KernelRows) -> float:
        """One resample, in tiles."""
        if rows.residuals.route is Route.CLOSED:
            rows = replace(rows, residuals=replace(rows.residuals, points=self._moved.point(drawn)))
        else:
            rows = self._problem(drawn)
        return float(all_pairs(KernelForm(self.kernel), rows, unbiased=self.unbiased, few=SPARSE_RATIO)[0])

    def _pairs(self, rows: KernelRows) -> tuple[np.ndarray, float]:
        """The weight of each pair of rows in the statistic, ``(n, n)``, and what all of them are divided by."""
        n = len(rows)
        w = to_numpy(unit_weights(self.weights, n))
        matrix = to_numpy(self.kernel(rows.coords, rows.coords)) * (w[:, None] * w)
        if not self.unbiased:
            return matrix, float(n**2)
        np.fill_diagonal(matrix, 0.0)
        return matrix, weight_of_pairs((w**2).sum(), n)

    def _by_features(self, targets: np.ndarray, rows: KernelRows, features: SpectralFeatures) -> np.ndarray:
        """What predictions expect is the same for all resamples, and each target meets it once instead of n times."""
        matrix, size = self._pairs(rows)
        expected = to_numpy(features.expected).astype(np.float64)
        met = matrix @ expected
        fixed = float(np.einsum("nq,nq->", met, expected))
        sums = []
        for y in targets:
            drawn = self._targets(y)
            made = to_numpy(features.of_points(drawn))
            own = made @ made.T if drawn.ndim == 2 else to_numpy(self.on_targets(as_points(drawn), as_points(drawn)))
            cross = np.einsum("nq,nq->", made, met)
            sums.append(np.vdot(matrix, own) - 2 * cross + fixed)
        return np.array(sums) / size

    def _term_by_term(self, targets: np.ndarray, rows: KernelRows) -> np.ndarray:
        """Four terms: what predictions expect of each other is the same for all resamples, the rest is made for many."""
        m, n = targets.shape[:2]
        matrix, size = self._pairs(rows)
        spread = rows.residuals.spread
        assert spread is not None
        fixed = float((matrix * self._expected(spread, spread)).sum())
        sums = np.empty(m)
        step = max(1, CACHED // (n * n))
        for start in range(0, m, step):
            some = targets[start : start + step]
            drawn = self._targets(some.reshape(len(some) * n, *some.shape[2:]))
            cross = self._expected(spread.point(drawn), spread).reshape(len(some), n, n)
            points = as_points(drawn).reshape(len(some), n, -1)
            own = np.stack([to_numpy(self.on_targets(x, x)) for x in points])
            sums[start : start + step] = np.einsum("mij,ij->m", own - 2 * cross, matrix)
        return (sums + fixed) / size

    def _expected(self, p: Distribution, q: Distribution) -> np.ndarray:
        """Expected kernels ``(n, m)``, as many rows at a time as their intermediate values leave room for."""
        members = [getattr(x, "members", np.empty((1, 1))).shape[1] for x in (p, q)]
        size = max(1, MAX_NUMBERS // (len(q) * max(20, int(np.prod(members)))))
        cuts = [p[i : min(i + size, len(p))] for i in range(0, len(p), size)]
        return np.concatenate([to_numpy(expectation(self.on_targets, part, q)) for part in cuts])


def _multiplication(kernel: Kernel, points: np.ndarray, coords: Array) -> Callable[[np.ndarray], np.ndarray]:
    """``K @ v`` as a function of v ``(n, q)``: by sorting on a line, else with the matrix kept or made again.

    Points on a GPU, ``coords``, are multiplied there.
    """
    if points.shape[1] == 1 and len(points) > SORTED and kernel.has_product:
        order = np.argsort(points[:, 0])
        line, inverse = points[order, 0], np.argsort(order)
        return lambda v: kernel.product(line, v[order], diagonal=True)[inverse]
    if len(points) <= STORED:
        return kernel(points, points).__matmul__
    product = accelerated_product(kernel, coords)
    if product is not NotImplemented:
        return lambda v: to_numpy(product(matched(v, coords)))
    return Pairwise(kernel, points).matmul
