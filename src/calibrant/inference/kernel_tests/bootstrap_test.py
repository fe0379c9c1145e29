"""Bootstrap tests of the kernel calibration error: rows drawn again, and wild weights, in blocks for time series."""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from calibrant._clusters import Clusters
from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution
from calibrant.distributions.empirical.quantiles import check_whole
from calibrant.distributions.reading.conversion import Classes, as_clustered_problem
from calibrant.estimators.base import SINGLE, Statistic
from calibrant.estimators.kernel_errors.cluster_pairs import MAX_CLUSTERS, MAX_ROWS
from calibrant.estimators.kernel_errors.kernel_problem import unit_weights
from calibrant.estimators.kernel_errors.skce import SKCE
from calibrant.estimators.signs import pairs_between
from calibrant.inference.exact_tests.cluster_signs import Signs, check_clusters
from calibrant.inference.kernel_tests.kernel_matrix import KernelMatrix, MatrixTest, Outcome, check_large, route_notes
from calibrant.inference.monte_carlo import check_blocks, draw
from calibrant.results import TestResult
from calibrant.typing import Array, ArrayLike, Engine, Seed


@dataclass(frozen=True)
class BootstrapTest(MatrixTest):
    """Test of calibration by the bootstrap of degenerate U-statistics, as published.

    ``t = n/(n-1) U - V`` is ranked among ``T* = (n/(n-1) (c'Hc - c'diag H) - 2 c'H1) / n^2`` with multinomial counts c of n
    rows drawn with replacement. Valid for large n only: at 5 %, calibrated normal predictions were rejected in 14 % of data
    sets of 4 rows in one dimension, and never with 16 rows in ten dimensions; :class:`calibrant.ExactTest` has no such
    distortion. Refused where nothing unlikely is expected to happen.
    O(n^2) per draw, O(n) for two classes with an exponential or Matérn kernel beyond 2,000 rows.
    Arcones & Giné (1992); Widmann, Lindsten & Zachariah (2021).

    >>> y_pred = np.linspace(0.05, 0.95, 60)
    >>> y_true = (np.random.default_rng(3).random(60) < y_pred) * 1
    >>> BootstrapTest(n_resamples=199)(y_true, y_pred).pvalue > 0.05
    True
    """

    n_resamples: int = 999

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self.n_resamples, "n_resamples")

    def outcome(self, matrix: KernelMatrix, rng: Seed, engine: Engine | None) -> Outcome:
        """The statistic among its bootstrap draws."""
        n = len(matrix)
        statistic = n / (n - 1) * matrix.unbiased - matrix.biased
        null = draw(partial(_resampled, matrix), self.n_resamples, width=n, rng=rng, engine=engine)
        return Outcome.ranked(statistic, null)


def _resampled(matrix: KernelMatrix, seed: np.random.SeedSequence, size: int) -> np.ndarray:
    """The statistic of so many sets of rows drawn with replacement."""
    n, moments = len(matrix), matrix.moments
    rows = np.random.default_rng(seed).integers(0, n, (size, n)) + n * np.arange(size)[:, None]
    counts = np.bincount(rows.ravel(), minlength=size * n).reshape(size, n).astype(np.float64)
    squares = np.einsum("mi,im->m", counts, matrix @ counts.T) - counts @ moments.diagonal
    return (n / (n - 1) * squares - 2 * counts @ (moments.row_sums + moments.diagonal)) / n**2


@dataclass(frozen=True)
class WildBootstrapTest(MatrixTest):
    """Test of calibration by random signs.

    U is ranked among ``T* = sum_{i != j} w_i w_j h_ij / (n(n-1))`` with independent signs w. Under the hypothesis residuals
    have mean zero given the predictions, so signs keep the variance; the level is exact where they are symmetric (two
    classes at 1/2), and holds for large n otherwise; refused where nothing unlikely is expected to
    happen. Cost as of :class:`BootstrapTest`. Dehling & Mikosch (1994).

    ``clusters`` has one label per row: rows with the same label may depend on each other in any way and share their sign. Pairs
    of rows of the same cluster are left out of U, as these are alike by more than the error. The level is exact where the
    residuals of a cluster are symmetric together, and holds for many clusters otherwise; refused where clusters, or events, are
    too few.

    ``block=b`` is short for clusters of b consecutive rows, for rows in the order of time whose outcomes depend on those shortly
    before. The level then holds for large n if rows further apart than b are as good as independent, and
    there are many blocks. Leucht & Neumann (2013).

    >>> y_pred = np.linspace(0.05, 0.95, 60)
    >>> y_true = (np.random.default_rng(3).random(60) < y_pred) * 1
    >>> WildBootstrapTest(n_resamples=199)(y_true, y_pred).pvalue > 0.05
    True
    >>> WildBootstrapTest(n_resamples=199)(y_true, y_pred, clusters=np.arange(60) % 30).estimate.notes
    ('pairs of rows of the same cluster are left out',)
    """

    n_resamples: int = 999
    block: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self.n_resamples, "n_resamples")
        check_count(self.block, "block")

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
        """The statistic among those with random signs."""
        if clusters is not None and self.block > 1:
            raise InputError(
                f"block={self.block} is short for clusters of consecutive rows: leave out block, or clusters"
            )
        targets, predictions, weights, given = as_clustered_problem(
            y_true, y_pred, sample_weight, clusters, Classes(labels, pos_label)
        )
        told: tuple[str, ...]
        if (given is None and self.block == 1) or (given is not None and given.are_single_rows):
            found = super().__call__(targets, predictions, sample_weight=weights, rng=rng, engine=engine)
            return found if given is None else replace(found, notes=(*found.notes, SINGLE))
        check_whole(predictions, self)
        if given is None:
            check_blocks(self.block, len(predictions))
            given, told = Clusters.of_codes(np.arange(len(predictions)) // self.block), ()
        else:
            _, told = check_clusters(self, (self.estimator,), targets, predictions, weights, given)
        return self._of_clusters(targets, predictions, weights, given, told, rng, engine)

    def _of_clusters(
        self,
        targets: Array,
        predictions: Distribution,
        weights: np.ndarray | None,
        clusters: Clusters,
        told: tuple[str, ...],
        rng: Seed,
        engine: Engine | None,
    ) -> TestResult:
        """Signs of whole clusters; of many from products with the matrix, which is never stored."""
        few = (*check_large(self, predictions, weights), *told)
        estimate = self.estimator.of_clusters(targets, predictions, weights, clusters)
        resolved = estimate.estimator
        assert isinstance(resolved, SKCE)
        statistic: Statistic
        if len(predictions) <= MAX_ROWS and len(clusters) <= MAX_CLUSTERS:
            statistic = resolved.with_signs(targets, predictions, weights, clusters)
        else:
            matrix = KernelMatrix.of(resolved, targets, predictions, weights, engine)
            w = None if weights is None else unit_weights(weights, len(weights))
            statistic = _SignedProducts(matrix, clusters, pairs_between(clusters, w), float(estimate))
        signs = Signs(len(clusters))
        null = draw(
            partial(_signed, statistic, signs), self.n_resamples, width=len(predictions), rng=rng, engine=engine
        )
        found = Outcome.ranked(float(statistic(signs.observed[None])[0]), null)
        notes = tuple(dict.fromkeys((*estimate.notes, *few, *route_notes(estimate))))
        return TestResult(float(estimate), found.pvalue, len(predictions), self, estimate, null, notes, has_band=False)

    def outcome(self, matrix: KernelMatrix, rng: Seed, engine: Engine | None) -> Outcome:
        """The statistic among those with random signs of rows."""
        rows = Clusters(np.arange(len(matrix)), len(matrix))
        statistic = _SignedProducts(matrix, rows, len(matrix) * (len(matrix) - 1), matrix.unbiased)
        null = draw(
            partial(_signed, statistic, Signs(len(matrix))), self.n_resamples, width=len(matrix), rng=rng, engine=engine
        )
        return Outcome.ranked(matrix.unbiased, null)


@dataclass(frozen=True, eq=False)
class _SignedProducts:
    """The statistic by products with the matrix of rows: ``s'Hs`` less what all signs have, the pairs within clusters."""

    matrix: KernelMatrix
    clusters: Clusters
    pairs: float
    observed: float

    def __call__(self, signs: np.ndarray) -> np.ndarray:
        """The value under each set of signs, ``(m,)``."""
        of_rows = signs[:, self.clusters.codes]
        return (np.einsum("mi,im->m", of_rows, self.matrix @ of_rows.T) - self.same) / self.pairs

    @cached_property
    def same(self) -> float:
        """The sum over pairs of rows of the same cluster, and over rows."""
        moments = self.matrix.moments
        return float(moments.total) + float(moments.diagonal.sum()) - self.pairs * self.observed


def _signed(statistic: Statistic, signs: Signs, seed: np.random.SeedSequence, size: int) -> np.ndarray:
    """The statistic under so many sets of random signs."""
    return statistic(signs.sample(np.random.default_rng(seed), size))
