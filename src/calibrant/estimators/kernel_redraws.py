"""The kernel error under redrawn targets: what depends on the predictions alone is made once for many redraws."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from calibrant._array import to_numpy
from calibrant._pairwise import CALL, Pairwise
from calibrant.distributions.base import Distribution, matched
from calibrant.distributions.categorical import Categorical
from calibrant.distributions.ensemble import Ensemble
from calibrant.estimators.kernel_problem import KernelForm, KernelRows, coordinates, resolve_problem, unit_weights
from calibrant.estimators.kernel_sums import all_pairs
from calibrant.expectation import expectation
from calibrant.kernels import Identity, Kernel, LabelMatrix
from calibrant.kernels.base import as_points
from calibrant.residuals import Route, quantile_nodes, residuals
from calibrant.spectral import wave_features
from calibrant.typing import Array

SORTED = 500
"""More rows than this on a line are worth sorting."""

ON_A_LINE = 16
"""Redraws that share one pass over sorted points."""

STORED = 4096
"""Up to so many rows the kernel matrix is kept; beyond, its tiles are made again for every batch of redraws."""

BATCH = 64
"""Redraws that share a kernel tile."""

ROOM = 20_000_000
"""Numbers that the residuals of one batch may take."""

FEW_OF_MANY = 100
"""Up to so many rows, tiles are as fast as compiled code even where it is loaded once for many redraws."""


@dataclass(frozen=True, eq=False)
class LabelRedraws:
    """``sum_{i != j} k_ij <r_i, r_j>``, normalised, for stacks of redrawn labels: a matrix product a batch."""

    kernel: Kernel
    on_targets: Identity | LabelMatrix
    predictions: Categorical
    weights: np.ndarray | None
    unbiased: bool

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """The statistic of each redraw, ``(m,)``."""
        points = to_numpy(coordinates(self.predictions, self.kernel, self.on_targets)).astype(np.float64)
        if (
            points.shape[1] == 1
            and len(points) > SORTED
            and isinstance(self.on_targets, Identity)
            and self.kernel.has_product
        ):
            return self._on_a_line(targets, points[:, 0])
        multiply, diagonal = _multiplication(self.kernel, points), self.kernel.diagonal(points)
        size = min(BATCH, max(1, ROOM // (len(points) * self.predictions.n_classes)))
        batches = [targets[i : i + size] for i in range(0, len(targets), size)]
        return np.concatenate([self._batch(batch, multiply, diagonal) for batch in batches])

    def _on_a_line(self, targets: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Two classes: residuals are numbers, kept in the order of the points."""
        n = len(x)
        order = np.argsort(x)
        x, p = x[order], to_numpy(self.predictions.probability(1)).astype(np.float64)[order, None]
        w = unit_weights(self.weights, n)[order, None]
        diagonal, sums, squares = self.kernel.diagonal(x[:, None]), [], []
        for start in range(0, len(targets), ON_A_LINE):
            error = 2**0.5 * w * (targets[start : start + ON_A_LINE, order].T - p)  # (-e, e) has the length sqrt2 |e|
            sums.append(2 * self.kernel.pair_sums(x, error))
            squares.append(np.einsum("n,nm,nm->m", diagonal, error, error))
        if not self.unbiased:
            return (np.concatenate(sums) + np.concatenate(squares)) / n**2
        return np.concatenate(sums) / (n**2 - (w**2).sum())

    def _batch(
        self, targets: np.ndarray, multiply: Callable[[np.ndarray], np.ndarray], diagonal: np.ndarray
    ) -> np.ndarray:
        n = len(diagonal)
        made = [residuals(self.on_targets, y, self.predictions).features for y in targets]
        return _statistics(made, unit_weights(self.weights, n), multiply, diagonal if self.unbiased else None)


def _statistics(
    made: list[Array], w: np.ndarray, multiply: Callable[[np.ndarray], np.ndarray], diagonal: np.ndarray | None
) -> np.ndarray:
    """The statistic of each of m redraws, from the features ``(n, q)`` of its residuals; unbiased without the diagonal."""
    n = len(w)
    features = np.stack([to_numpy(f).astype(np.float64) for f in made], axis=1) * w[:, None, None]  # (n, m, q)
    product = multiply(features.reshape(n, -1)).reshape(features.shape)
    sums = np.einsum("nmq,nmq->m", product, features)
    if diagonal is None:
        return sums / n**2
    return (sums - np.einsum("n,nmq,nmq->m", diagonal, features, features)) / (n**2 - (w**2).sum())


@dataclass(frozen=True, eq=False)
class TargetRedraws:
    """The same for targets of any family: redraws share the kernels and the coordinates of the predictions."""

    kernel: Kernel
    on_targets: Kernel
    predictions: Distribution
    weights: np.ndarray | None
    unbiased: bool
    route: Route | None

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """The statistic of each redraw, ``(m,)``."""
        form, kernels = KernelForm(self.kernel), (self.kernel, self.on_targets)
        _, _, rows = resolve_problem(*kernels, self.route, self._targets(targets[0]), self.predictions, self.weights)
        route = rows.residuals.route
        if len(self.predictions) <= STORED and route is Route.CLOSED:
            return self._term_by_term(targets, rows)
        if rows.residuals.features is not None and route in (Route.SPECTRAL, Route.QUANTILE):
            return self._by_waves(targets, rows)
        if len(self.predictions) <= CALL and route is not Route.SAMPLED:
            return self._side_by_side(targets)
        values = []
        for y in targets:
            drawn = self._targets(y)
            if route is Route.CLOSED:
                rows = replace(rows, residuals=replace(rows.residuals, points=self.predictions.point(drawn)))
            else:
                _, _, rows = resolve_problem(*kernels, self.route, drawn, self.predictions, self.weights)
            values.append(float(all_pairs(form, rows, unbiased=self.unbiased, few=FEW_OF_MANY)[0]))
        return np.array(values)

    def _targets(self, y: np.ndarray) -> Array:
        return self.predictions.as_targets(y)

    def _by_waves(self, targets: np.ndarray, rows: KernelRows) -> np.ndarray:
        """Explicit residuals: what predictions expect is made once, and the kernel on predictions is a matrix product."""
        points, n = to_numpy(rows.coords).astype(np.float64), len(rows)
        multiply, diagonal = _multiplication(self.kernel, points), self.kernel.diagonal(points)
        ends = matched(np.array([targets.min(), targets.max()]), self._targets(targets[0]))
        by_nodes = rows.residuals.route is Route.QUANTILE
        carrier = quantile_nodes(self.predictions, ends) if by_nodes else self.predictions
        features = wave_features(self.on_targets, ends, carrier)
        size = min(BATCH, max(1, ROOM // (n * int(features.expected.shape[1]))))
        w, parts = unit_weights(self.weights, n), []
        for start in range(0, len(targets), size):
            made = [features(self._targets(y)) for y in targets[start : start + size]]
            parts.append(_statistics(made, w, multiply, diagonal if self.unbiased else None))
        return np.concatenate(parts)

    def _term_by_term(self, targets: np.ndarray, rows: KernelRows) -> np.ndarray:
        """What predictions expect of each other is the same for all redraws, the rest is made for many."""
        m, n = targets.shape[:2]
        w = to_numpy(unit_weights(self.weights, n))
        matrix = to_numpy(self.kernel(rows.coords, rows.coords)) * (w[:, None] * w)
        if self.unbiased:
            np.fill_diagonal(matrix, 0.0)
        fixed = float((matrix * self._expected(self.predictions)).sum())
        sums = np.empty(m)
        size = max(1, ROOM // (20 * n * n))
        for start in range(0, m, size):
            some = targets[start : start + size]
            drawn = [as_points(self._targets(y)) for y in some]
            points = self.predictions.point(self._targets(some.reshape(len(some) * n, *some.shape[2:])))
            cross = self._expected(points).reshape(len(some), n, n)
            own = np.stack([to_numpy(self.on_targets(x, x)) for x in drawn])
            sums[start : start + size] = np.einsum("mij,ij->m", own - 2 * cross, matrix)
        return (sums + fixed) / (n**2 - (w**2).sum() if self.unbiased else n**2)

    def _expected(self, p: Distribution) -> np.ndarray:
        """What other predictions expect of these, a few rows at a time, as sums over members take room."""
        size = max(1, ROOM // (4 * len(self.predictions) * _width(p) * _width(self.predictions)))
        parts = [p[i : min(i + size, len(p))] for i in range(0, len(p), size)]
        return np.concatenate([to_numpy(expectation(self.on_targets, part, self.predictions)) for part in parts])

    def _side_by_side(self, targets: np.ndarray) -> np.ndarray:
        """Few rows with explicit residuals: redraws as blocks of one large problem."""
        m, n = targets.shape[:2]
        again = self.predictions[np.tile(np.arange(n), m)]
        weights = None if self.weights is None else np.tile(self.weights, m)
        drawn = again.as_targets(targets.reshape(m * n, *targets.shape[2:]))
        _, _, rows = resolve_problem(self.kernel, self.on_targets, self.route, drawn, again, weights)
        pairs = Pairwise(KernelForm(self.kernel), rows)
        sums = to_numpy(pairs.block_sums(n))
        if not self.unbiased:
            return (sums + to_numpy(pairs.diagonal()).reshape(m, n).sum(axis=1)) / n**2
        return sums / (n**2 - (unit_weights(self.weights, n) ** 2).sum())


def _width(predictions: Distribution) -> int:
    """Terms of a sum over the members of a prediction."""
    return int(predictions.members.shape[1]) if isinstance(predictions, Ensemble) else 1


def work_of_redraw(kernel: Kernel, predictions: Distribution, dimensions: int) -> float:
    """Multiplications that one redraw costs, roughly."""
    n = float(len(predictions))
    if not isinstance(predictions, Categorical):
        is_sum = isinstance(predictions, Ensemble) and predictions.is_vector
        return 50 * n**2 * (4 * _width(predictions) if is_sum else 1)  # exponentials of each pair and term
    if dimensions == 1 and kernel.has_product:
        return 20 * n
    return n**2 * predictions.n_classes


def _multiplication(kernel: Kernel, points: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """``K @ v`` as a function of v ``(n, q)``: by sorting on a line, else with the matrix kept or made again."""
    if points.shape[1] == 1 and len(points) > SORTED and kernel.has_product:
        order = np.argsort(points[:, 0])
        line, inverse = points[order, 0], np.argsort(order)
        return lambda v: kernel.product(line, v[order], diagonal=True)[inverse]
    if len(points) <= STORED:
        return kernel(points, points).__matmul__
    return Pairwise(kernel, points).matmul
