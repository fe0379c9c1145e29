"""The matrix ``h_ij`` behind the kernel tests: its sums and its products, never stored beyond a few thousand rows."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from calibrant._array import alike, on_gpu, to_numpy
from calibrant._pairwise import Moments, Pairwise
from calibrant._tasks import elsewhere
from calibrant.distributions.base import Distribution
from calibrant.estimators.accelerated import accelerated_matmul
from calibrant.estimators.kernel_problem import KernelForm, KernelRows, resolve_problem
from calibrant.estimators.kernel_redraws import STORED
from calibrant.estimators.kernel_sums import FEW, moments_of, tile_of
from calibrant.estimators.skce import SKCE
from calibrant.typing import Array, Engine

SPECTRUM = 1024
"""Up to so many rows all eigenvalues and powers of the matrix cost less than a second."""


@dataclass(frozen=True)
class SymmetricForm(KernelForm):
    """The mean of both triangles, for the route by draws, where rows and columns have draws of their own."""

    def __call__(self, a: KernelRows, b: KernelRows) -> Array:
        """All pairs of two sets of rows, ``(n, m)``."""
        return (super().__call__(a, b) + super().__call__(b, a).T) / 2


@dataclass(frozen=True, eq=False)
class KernelMatrix:
    """The matrix ``h_ij = w_i w_j k(P_i, P_j) <r_i, r_j>`` of a problem, in O(n) memory beyond 4,096 rows.

    >>> from calibrant import Categorical
    >>> matrix = KernelMatrix.of(SKCE(), np.array([1, 0]), Categorical([0.5, 0.5]), None)
    >>> round(matrix.unbiased, 12), round(matrix.biased, 12)
    (-0.5, 0.0)
    """

    form: KernelForm
    rows: KernelRows
    moments: Moments
    """Row sums and sum of squares over ``i != j``, and the diagonal, on the host."""

    @classmethod
    def of(
        cls,
        estimator: SKCE,
        targets: Array,
        predictions: Distribution,
        weights: np.ndarray | None,
        engine: Engine | None = None,
    ) -> Self:
        """The matrix of a checked problem; its sums are made by the engine."""
        kernel, _, rows = resolve_problem(
            estimator.on_predictions, estimator.on_targets, estimator.route, targets, predictions, weights
        )
        form = KernelForm(kernel) if rows.residuals.column_spread is None else SymmetricForm(kernel)
        found = moments_of(form, rows, engine=engine)
        return cls(form, rows, Moments(*map(_on_host, (found.row_sums, found.sum_of_squares, found.diagonal))))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def unbiased(self) -> float:
        """The U-statistic, ``sum_{i != j} h_ij / (n (n-1))``."""
        return float(self.moments.total) / (len(self) * (len(self) - 1))

    @property
    def biased(self) -> float:
        """The V-statistic, ``sum_ij h_ij / n^2``."""
        return float(self.moments.total + self.moments.diagonal.sum()) / len(self) ** 2

    @property
    def is_zero(self) -> bool:
        """Whether there is nothing to test: every residual is zero."""
        return not (self.moments.sum_of_squares > 0 or np.any(self.moments.diagonal != 0))

    @cached_property
    def dense(self) -> np.ndarray:
        """All entries, ``(n, n)``."""
        tile, n = tile_of(self.rows), len(self)
        panels = [self.rows[i : min(i + tile, n)] for i in range(0, n, tile)]
        return np.block([[_on_host(self.form(a, b)) for b in panels] for a in panels])

    def __matmul__(self, v: np.ndarray) -> np.ndarray:
        """``H @ v`` for v ``(n, q)``: O(n q) for points on a line, else O(n^2 q)."""
        if self._order is not None:
            return self._sorted_product(v, self._order)
        if len(self) <= STORED:
            return self.dense @ v
        there = alike(v, self.rows.coords)
        product = accelerated_matmul(self.form.on_predictions, self.rows, there)
        if product is NotImplemented:
            product = Pairwise(self.form, self.rows, tile_of(self.rows)).matmul(there)
        return _on_host(product)

    def multiplying(self, engine: Engine | None) -> Callable[[np.ndarray], np.ndarray]:
        """``v -> H @ v`` by an engine, whose tasks are some rows of the product; here where that is quick."""
        is_quick = self._order is not None or len(self) <= STORED or on_gpu(self.rows.coords)
        if is_quick or elsewhere(engine) is None:
            return self.__matmul__
        pairs = Pairwise(self.form, self.rows, tile_of(self.rows), engine)
        return lambda v: _on_host(pairs.matmul(v))

    @cached_property
    def _order(self) -> np.ndarray | None:
        """The order of points on a line, where the kernel has a product for those."""
        coords = self.rows.coords
        if len(self) <= FEW or coords.shape[1] != 1 or self.rows.residuals.features is None:
            return None
        return np.argsort(_on_host(coords[:, 0]), kind="stable") if self.form.on_predictions.has_product else None

    def _sorted_product(self, v: np.ndarray, order: np.ndarray) -> np.ndarray:
        """``sum_a r_a * K (r_a * v)`` over the features a of the residuals."""
        line, features = _on_host(self.rows.coords)[order, 0], self._features[order]
        out = np.empty_like(v)
        out[order] = sum(
            r[:, None] * self.form.on_predictions.product(line, r[:, None] * v[order], diagonal=True)
            for r in features.T
        )
        return out

    @cached_property
    def _features(self) -> np.ndarray:
        features, weights = _on_host(self.rows.residuals.features), self.rows.weights
        return features if weights is None else features * _on_host(weights)[:, None]


def _on_host(x: Array) -> np.ndarray:
    return to_numpy(x).astype(np.float64, copy=False)
