"""The test of the kernel calibration error by the eigenvalues of its matrix."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from calibrant._validate import check_count
from calibrant.inference.draws import as_seed_sequence
from calibrant.inference.kernel_matrix import SPECTRUM, KernelMatrix
from calibrant.inference.matrix_test import MatrixTest, Outcome
from calibrant.inference.weighted_chi_square import sf
from calibrant.results import percent
from calibrant.typing import Engine, Seed

ROUNDING = 1e-10
"""Negative eigenvalues up to this share of the largest, and what is left of the variance below it, are rounding."""


@dataclass(frozen=True)
class SpectralTest(MatrixTest):
    """Test of calibration by the limit law of the unbiased estimator.

    ``n U -> sum_i lambda_i (Z_i^2 - 1)`` with the eigenvalues of ``H / n``; its tail comes from numerical inversion, so that
    p-values far below 1/n have a meaning. Up to 1,024 rows all eigenvalues are taken. Beyond, Lanczos finds the
    ``eigenvalues`` largest; all others together become one scaled chi-square variable with their exact trace and sum of
    squares, and the result says how much of the variance that is. Valid for large n: refused where nothing unlikely is expected
    to happen, as it would reject calibrated predictions. O(n^3) up to 1,024 rows, then about
    ``3 * eigenvalues`` products with the matrix. Gretton et al. (2009).

    >>> y_pred = np.linspace(0.05, 0.95, 60)
    >>> y_true = (np.random.default_rng(3).random(60) < y_pred) * 1
    >>> SpectralTest()(y_true, y_pred).pvalue > 0.05
    True
    """

    eigenvalues: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self.eigenvalues, "eigenvalues")

    def outcome(self, matrix: KernelMatrix, rng: Seed, engine: Engine | None) -> Outcome:
        """The tail of the limit law."""
        statistic = len(matrix) * matrix.unbiased
        if matrix.is_zero:
            return Outcome(statistic, 1.0, notes=("all residuals are zero: there is nothing to test",))
        if len(matrix) <= SPECTRUM:
            weights, notes = _without_negative(np.linalg.eigvalsh(matrix.dense) / len(matrix))
            degrees = np.ones_like(weights)
        else:
            weights, degrees, notes = self._largest(matrix, rng, engine)
        return Outcome(statistic, sf(statistic + float(weights @ degrees), weights, degrees), notes=notes)

    def _largest(
        self, matrix: KernelMatrix, rng: Seed, engine: Engine | None = None
    ) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
        """The largest eigenvalues, each with one degree of freedom, and the rest as one weight with many."""
        n, moments = len(matrix), matrix.moments
        times = matrix.multiplying(engine)
        operator = LinearOperator((n, n), matvec=lambda v: times(v.reshape(n, 1))[:, 0] / n, dtype=np.float64)
        start = np.random.default_rng(as_seed_sequence(rng)).standard_normal(n)
        found, notes = _without_negative(
            eigsh(operator, min(self.eigenvalues, n // 2), v0=start, return_eigenvectors=False)
        )
        squares = float(moments.sum_of_squares + moments.diagonal @ moments.diagonal) / n**2
        left, left_squares = float(moments.diagonal.sum()) / n - found.sum(), squares - found @ found
        degrees = np.ones(len(found))
        if left <= 0 or left_squares <= ROUNDING * squares:  # there are no others
            return found, degrees, notes
        share = f"eigenvalues beyond the first {len(found)} hold {percent(left_squares / squares)} of the variance"
        others = left_squares / left
        return np.append(found, others), np.append(degrees, left / others), (*notes, f"{share}; they count as equal")


def _without_negative(values: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """Eigenvalues with negative ones set to zero, and a note if those are more than rounding."""
    least = float(values.min())
    if least >= -ROUNDING * float(np.abs(values).max()):
        return np.maximum(values, 0), ()
    return np.maximum(values, 0), (
        f"the kernel matrix is not positive semi-definite: eigenvalues down to {least:.2g} count as zero",
    )
