"""The test of the kernel calibration error by three cumulants."""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincc, ndtr

from calibrant._validate import check_count
from calibrant.inference.draws import as_seed_sequence
from calibrant.inference.kernel_matrix import SPECTRUM, KernelMatrix
from calibrant.inference.matrix_test import MatrixTest, Outcome
from calibrant.typing import Engine, Seed

MOST_SKEWED = 8**0.5
"""The skewness of a chi-square variable with one degree of freedom: no weighted sum of such variables has more."""

STRAIGHT = 1e-3
"""Below this skewness the gamma law is normal to four digits, and its shape parameter too large to compute with."""


@dataclass(frozen=True)
class GammaTest(MatrixTest):
    """Test of calibration by a shifted gamma law with the first three cumulants of ``n U``.

    Under the hypothesis n U has mean 0, variance ``2 sum_{i != j} h_ij^2 / (n-1)^2`` (estimated without bias, given the
    predictions) and third cumulant ``8 tr(H0^3) / (n-1)^3`` up to O(1/n), with H0 the matrix without its diagonal. Beyond
    1,024 rows the trace is estimated with ``2 * probes`` random vectors: exactly on the space the first half of them
    points to, by Hutchinson's mean on the rest. Valid for large n: refused where nothing unlikely is
    expected to happen. Five products with the matrix, O(n) memory.
    Gretton et al. (2009); Meyer et al. (2021).

    >>> y_pred = np.linspace(0.05, 0.95, 60)
    >>> y_true = (np.random.default_rng(3).random(60) < y_pred) * 1
    >>> GammaTest()(y_true, y_pred).pvalue > 0.05
    True
    """

    probes: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self.probes, "probes")

    def outcome(self, matrix: KernelMatrix, rng: Seed, engine: Engine | None) -> Outcome:
        """The tail of the gamma law."""
        n = len(matrix)
        statistic, variance = n * matrix.unbiased, 2 * float(matrix.moments.sum_of_squares) / (n - 1) ** 2
        if variance == 0:
            return Outcome(
                statistic, 1.0, notes=("no two rows say anything about each other: there is nothing to test",)
            )
        cube = _cube(matrix) if n <= SPECTRUM else _probed_cube(matrix, self.probes, rng, engine)
        skewness = 8 * cube / (n - 1) ** 3 / variance**1.5
        return Outcome(statistic, pearson_tail(statistic / variance**0.5, skewness))


def pearson_tail(z: float, skewness: float) -> float:
    """``P(Z >= z)`` of a standardised gamma variable with this skewness, kept between 0 (normal) and that of chi-square.

    >>> round(pearson_tail((3.841458820694124 - 1) / 2**0.5, 8**0.5), 12)
    0.05
    """
    if skewness < STRAIGHT:
        return float(ndtr(-z))
    shape = 4 / min(skewness, MOST_SKEWED) ** 2
    return float(gammaincc(shape, max(shape + z * shape**0.5, 0)))


def _cube(matrix: KernelMatrix) -> float:
    """``tr(H0^3)``."""
    bare = matrix.dense - np.diag(matrix.moments.diagonal)
    return float(np.sum(bare @ bare * bare))


def _probed_cube(matrix: KernelMatrix, probes: int, rng: Seed, engine: Engine | None = None) -> float:
    """``tr(H0^3)`` by random vectors."""
    diagonal, product = matrix.moments.diagonal[:, None], matrix.multiplying(engine)

    def times(v: np.ndarray) -> np.ndarray:
        return product(v) - diagonal * v

    def traces(v: np.ndarray) -> float:
        once = times(v)
        return float(np.sum(once * times(once)))

    draws = np.random.default_rng(as_seed_sequence(rng)).integers(0, 2, (2, len(matrix), probes), dtype=np.int8)
    first, second = 2.0 * draws - 1
    space, _ = np.linalg.qr(times(first))
    return traces(space) + traces(second - space @ (space.T @ second)) / probes
