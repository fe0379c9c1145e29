"""Tests of the kernel calibration error by a law for large samples: of blocks, of three cumulants, of eigenvalues."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.optimize import brentq
from scipy.sparse.linalg import LinearOperator, eigsh
from scipy.special import gammaincc, ndtr

from calibrant._array import namespace
from calibrant._clusters import refuse_clusters
from calibrant._pairwise import Pairwise
from calibrant._spellings import Settings
from calibrant._validate import InputError, check_count, check_one_of
from calibrant.distributions.empirical.quantiles import check_whole
from calibrant.distributions.reading.conversion import Classes, as_weighted_problem
from calibrant.estimators.kernel_errors.kernel_problem import KernelForm, KernelRows, form_of, resolve_problem
from calibrant.estimators.kernel_errors.kernel_sums import tile_of
from calibrant.estimators.kernel_errors.skce import SKCE
from calibrant.inference.kernel_tests.kernel_matrix import (
    MIN_SURPRISES_OF_BLOCKS,
    SPECTRUM,
    KernelMatrix,
    MatrixTest,
    Outcome,
    check_large,
    route_notes,
)
from calibrant.inference.monte_carlo import as_seed_sequence
from calibrant.results import TestResult, percent
from calibrant.typing import Array, ArrayLike, Engine, Seed

MIN_BLOCKS = 8
"""With fewer blocks than this the mean is not normal: of two blocks, 12 % of calibrated data sets were rejected at 5 %."""

BLOCK_ROUNDING = 1e-12
"""Standard errors below this share of the mean are rounding: all blocks agree."""


@dataclass(frozen=True)
class BlockTest(Settings):
    """Test of calibration by independent blocks of rows.

    ``z = sqrt(m) mean(eta) / sd(eta)`` over the unbiased estimates ``eta`` of m consecutive blocks, and ``p = Phi(-z)``. Blocks
    have ``block`` rows, else as many as the estimator says, else ``sqrt(n)``. Valid for many blocks (a note says where they
    are few), and refused where nothing unlikely is expected to happen; where all blocks agree p is its limit, 0 for a
    positive mean and else 1.

    ``spread="pairs"`` takes the standard deviation that eta has under the hypothesis, ``sqrt(2 mean(h^2) / (B (B - 1)))`` with
    the mean of ``h_ij^2`` over the pairs within blocks, of which there are more than blocks: remark B.1, the second p-value.
    O(n block). Widmann, Lindsten & Zachariah (2021).

    >>> import numpy as np
    >>> y_pred = np.linspace(0.05, 0.95, 60)
    >>> y_true = (np.random.default_rng(3).random(60) < y_pred) * 1
    >>> BlockTest(block=5)(y_true, y_pred).pvalue > 0.05
    True
    """

    estimator: SKCE = SKCE()  # noqa: RUF009  # frozen
    block: int | None = None
    spread: Literal["blocks", "pairs"] = "blocks"

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, SKCE) or not self.estimator.unbiased:
            raise InputError(f"estimator must be an unbiased SKCE; got {self.estimator!r}")
        if self.block is not None:
            check_count(self.block, "block", least=2)
        check_one_of(self.spread, ("blocks", "pairs"), "spread")

    def __call__(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        clusters: ArrayLike | None = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> TestResult:
        """The mean of the blocks in units of its standard error."""
        refuse_clusters(self, clusters)
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight, Classes(labels, pos_label))
        check_whole(predictions, self)
        n = len(predictions)
        size = self.block or self.estimator.block or max(2, round(n**0.5))
        if n < 2 * size:
            raise InputError(
                f"the block test needs two blocks of {size:,} rows; y_true has {n:,}: use ExactTest(SKCE())"
            )
        estimate = replace(self.estimator, block=size).estimate_by(engine, targets, predictions, weights)
        mean, error, notes = float(estimate), estimate.standard_error, estimate.notes
        assert error is not None
        if self.spread == "pairs":
            kernels = self.estimator.on_predictions, self.estimator.on_targets, self.estimator.route
            on_predictions, _, rows = resolve_problem(*kernels, targets, predictions)
            error = _error_under_hypothesis(form_of(on_predictions, rows), rows, size, engine)
        few = (*check_large(self, predictions, weights, fewest=MIN_SURPRISES_OF_BLOCKS), *route_notes(estimate))
        if n // size < MIN_BLOCKS:
            few = (
                *few,
                f"{n // size} blocks are few for a normal law, and its level is too large: ExactTest(SKCE()) is exact",
            )
        if error > BLOCK_ROUNDING * abs(mean):
            z = mean / error
        else:
            z = float("inf") if mean > 0 else -float("inf")
            notes = (*notes, "all blocks agree: the standard error is zero, and the p-value is its limit")
        return TestResult(z, float(ndtr(-z)), n, self, estimate, notes=(*notes, *few))


@dataclass(frozen=True)
class _Squares:
    """The squares of a tile."""

    form: KernelForm

    def __call__(self, a: KernelRows, b: KernelRows) -> Array:
        return self.form(a, b) ** 2


def _error_under_hypothesis(form: KernelForm, rows: KernelRows, size: int, engine: Engine | None) -> float:
    """The standard error of the mean of blocks where ``h`` has the mean zero, whatever one of its rows is."""
    squares = Pairwise(_Squares(form), rows, min(size, tile_of(rows)), engine).block_sums(size)
    pairs = len(squares) * size * (size - 1)
    return float((2 * namespace(squares).sum(squares)) ** 0.5) / pairs


MAX_SKEWNESS = 8**0.5
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
    shape = 4 / min(skewness, MAX_SKEWNESS) ** 2
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


NODES = 200
"""Points of the trapezoid rule; twice as many give the same digits."""

ANGLE = np.pi / 3
"""How far the path bends to the right: less than 30 degrees, and many small weights would make the integrand grow."""

NEGLIGIBLE = 40.0
"""The path ends where the integrand has fallen by this power of e, below rounding."""

FARTHEST = 1e12
"""Largest weights away from 0 beyond which the tail is 0 in double precision."""


def sf(x: float, weights: np.ndarray, degrees: np.ndarray | None = None) -> float:
    """``P(sum_i w_i Q_i >= x)`` of independent chi-square ``Q_i`` with ``degrees`` of freedom (1 each, or any positive number).

    With ``K(s) = -1/2 sum_i d_i log(1 - 2 w_i s)`` the tail is ``(1 / 2 pi i) int exp(K(s) - s x) / s ds``. Imhof integrates
    along the imaginary axis, where few weights decay slowly and small tails drown in rounding. Here the path is a hyperbola
    through the saddlepoint around the singularities on the right: the integrand falls exponentially from there, and so
    does the error of the trapezoid rule. Weights must not be negative. Relative error below 1e-10, however small the
    tail, for up to a million degrees of freedom; O(number of weights). Imhof (1961), Weideman & Trefethen (2007).

    >>> round(sf(3.841458820694124, np.array([1.0])), 12)
    0.05
    """
    w = np.asarray(weights, dtype=np.float64)
    d = np.ones_like(w) if degrees is None else np.asarray(degrees, dtype=np.float64)
    if np.any(w < 0) or np.any(d < 0):
        raise InputError(f"weights and degrees must not be negative; the least is {min(w.min(), d.min()):g}")
    counted = (w > 0) & (d > 0)
    if x <= 0 or not counted.any():
        return float(x <= 0)
    largest = float(w[counted].max())
    return _inverted(min(x / largest, FARTHEST), w[counted] / largest, d[counted])


def _inverted(x: float, w: np.ndarray, d: np.ndarray) -> float:
    """The integral, for a largest weight of 1."""
    start = _saddlepoint(x, w, d)
    size = (0.5 - start) / (1 - np.cos(ANGLE))  # then the first singularity, at 1/2, is the focus

    def log_integrand(t: np.ndarray) -> np.ndarray:
        s = start + size * (np.cosh(t + 1j * ANGLE) - np.cos(ANGLE))
        return _cumulants(s, w, d) - s * x - np.log(s) + np.log(size * np.sinh(t + 1j * ANGLE))

    top = float(log_integrand(np.zeros(1))[0].real)
    tried = np.geomspace(1e-5, 60, 80)
    end = tried[np.flatnonzero(log_integrand(tried).real > top - NEGLIGIBLE).max(initial=-1) + 1 :].min(initial=60)
    values = np.exp(log_integrand(np.arange(NODES) * (end / NODES)) - top).imag
    tail = np.exp(top) * (values.sum() - values[0] / 2) * (end / NODES) / np.pi
    return abs(float(np.clip(tail if start > 0 else 1 + tail, 0, 1)))  # abs: rounding may leave -0.0


def _cumulants(s: np.ndarray, w: np.ndarray, d: np.ndarray) -> np.ndarray:
    """``K(s)`` in the upper half-plane, ``(m,)``, with the logarithm by parts: exact next to 0 and next to 1, and fast."""
    z = 2 * s[:, None] * w[None, :]
    real, imag = z.real, z.imag
    distance = (1 - real) ** 2 + imag**2
    squared = np.where(distance < 0.5, np.log(distance), np.log1p(np.maximum(real**2 + imag**2 - 2 * real, -0.9)))
    return -0.25 * (squared @ d) - 0.5j * (np.arctan2(-imag, 1 - real) @ d)


def _saddlepoint(x: float, w: np.ndarray, d: np.ndarray) -> float:
    """Where ``exp(K(s) - s x) / |s|`` is least on the real axis: right of the pole for x above the mean, else left of it.

    The pole at 0 has the residue 1: a path on its left gives the tail less 1.
    """

    def slope(s: float) -> float:
        return float(np.sum(d * w / (1 - 2 * s * w))) - x - 1 / s

    near = 1e-9 / (1 + x)
    if x >= d @ w:
        return float(brentq(slope, near, np.nextafter(0.5, 0), xtol=1e-300, rtol=1e-10))
    return float(brentq(slope, -(d.sum() + 2) / x, -near, xtol=1e-300, rtol=1e-10))


EIGENVALUE_ROUNDING = 1e-10
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
        if left <= 0 or left_squares <= EIGENVALUE_ROUNDING * squares:  # there are no others
            return found, degrees, notes
        share = f"eigenvalues beyond the first {len(found)} hold {percent(left_squares / squares)} of the variance"
        others = left_squares / left
        return np.append(found, others), np.append(degrees, left / others), (*notes, f"{share}; they count as equal")


def _without_negative(values: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """Eigenvalues with negative ones set to zero, and a note if those are more than rounding."""
    least = float(values.min())
    if least >= -EIGENVALUE_ROUNDING * float(np.abs(values).max()):
        return np.maximum(values, 0), ()
    return np.maximum(values, 0), (
        f"the kernel matrix is not positive semi-definite: eigenvalues down to {least:.2g} count as zero",
    )
