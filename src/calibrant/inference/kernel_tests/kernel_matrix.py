"""The matrix ``h_ij`` behind the kernel tests, never stored beyond some rows, and what the tests of it share."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from calibrant._array import alike, on_gpu, to_numpy
from calibrant._clusters import refuse_clusters
from calibrant._compiled.choice import is_long
from calibrant._pairwise import Moments, Pairwise
from calibrant._spellings import Settings
from calibrant._tasks import elsewhere
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.empirical.quantiles import check_whole
from calibrant.distributions.reading.conversion import Classes, as_weighted_problem
from calibrant.estimators.kernel_errors.kernel_problem import KernelForm, KernelRows, form_of, resolve_problem
from calibrant.estimators.kernel_errors.kernel_resamples import STORED
from calibrant.estimators.kernel_errors.kernel_sums import accelerated_matmul, moments_of, tile_of
from calibrant.estimators.kernel_errors.skce import SKCE, entries
from calibrant.inference.monte_carlo import at_least
from calibrant.residuals.embedding import Route
from calibrant.results import Estimate, TestResult
from calibrant.typing import Array, ArrayLike, Engine, Seed

SPECTRUM = 1024
"""Up to so many rows all eigenvalues and powers of the matrix cost less than a second."""


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
        form = form_of(kernel, rows)
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
        return entries(self.form, self.rows, tile_of(self.rows))

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
        if not is_long(len(self)) or coords.shape[1] != 1 or self.rows.residuals.features is None:
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


MAX_UNEVENTFUL_SHARE = 0.1
"""The chance that nothing unlikely happens in any row above which a law for large n fails.

Residuals then are all small and all lean to one side, which such laws take for an error: at 5 %, calibrated data sets were
rejected in as many cases as nothing happened, 80 % and 35 % for 16 and 100 rows with events of 0.1 to 2 %.
"""

MIN_SURPRISES, MIN_SURPRISES_OF_BLOCKS, DOUBTFUL = 20.0, 50.0, 100.0
"""Events of one rare kind, or their like, below which a law for large n fails (for all tests; for means of blocks) or is in doubt.

With 5 to 15 of them expected, the gamma law and the wild bootstrap rejected 20 to 35 % of calibrated data sets at 5 %, blocks
14 to 17 %; with 20 to 30, 5 % and 14 %.
"""

MIN_ROWS = 16
"""With fewer rows than this the level of other predictions is off, too: up to 15 % instead of 5 at 4 rows."""


APPROXIMATE = (
    "expectations by quantiles are approximate, and this test takes their error for one of the model as n grows: ExactTest, "
    "whose resamples share it, is exact"
)


def route_notes(estimate: Estimate) -> tuple[str, ...]:
    """Whether expectations behind an estimate are approximate: then its mean is not 0 under the hypothesis."""
    return (APPROXIMATE,) if estimate.route == Route.QUANTILE.value else ()


def chance_of_nothing(predictions: Categorical, weights: np.ndarray | None = None) -> float:
    """The chance that every row with weight is of its most likely class, ``prod_i max_k p_ik``.

    >>> chance_of_nothing(Categorical([0.5, 0.2, 1.0]))
    0.4
    """
    favoured = to_numpy(predictions.matrix).astype(np.float64).max(axis=1)
    return float(np.exp(np.sum(np.log(favoured if weights is None else favoured[weights > 0]))))


def effective_surprises(predictions: Categorical, weights: np.ndarray | None = None) -> float:
    """How many rare events would make the number of events as skewed as it is: ``(sum v)^3 / (sum v (1 - 2 p))^2``.

    For events of small p it is the number expected; where p lies on both sides of 1/2 skewness cancels, and it is large. Of two
    classes p is that of the second, of more that of the favoured one, and ``v = p (1 - p)``.

    >>> round(effective_surprises(Categorical(np.full(1_000, 0.001))), 2)
    1.0
    """
    matrix = to_numpy(predictions.matrix).astype(np.float64)
    p = matrix[:, 1] if predictions.n_classes == 2 else matrix.max(axis=1)
    p = p if weights is None else p[weights > 0]
    v = p * (1 - p)
    skewed = float(v @ (1 - 2 * p)) ** 2
    return float(v.sum()) ** 3 / skewed if skewed > 0 else np.inf


def check_large(
    test: object, predictions: Distribution, weights: np.ndarray | None = None, *, fewest: float = MIN_SURPRISES
) -> tuple[str, ...]:
    """A note where the law is doubtful, a refusal where it is known to fail; certain predictions leave nothing to chance."""
    name, n = type(test).__name__, len(predictions)
    if not isinstance(predictions, Categorical):
        few = f"{name} holds its level for large n only, and {n:,} rows are few: ExactTest holds it at every n"
        return (few,) if n < MIN_ROWS else ()
    chance = chance_of_nothing(predictions, weights)
    if MAX_UNEVENTFUL_SHARE < chance < 1:
        raise InputError(
            f"{name} has no level here, as its law is for large n: by y_pred all {n:,} rows are of their most likely class with "
            f"a chance of {chance:.2g}, and it would call that an error: use ExactTest(SKCE()), which is exact"
        )
    count = effective_surprises(predictions, weights)
    if 0 < count < fewest:
        raise InputError(
            f"{name} has no level here, as its law is for large n: y_pred expects {count:.2g} events of a rare kind, and at least "
            f"{fewest:g} are needed: use ExactTest(SKCE()), which is exact"
        )
    few = f"few unlikely events are expected: {name}, whose law is for large n, may reject calibrated predictions two or three"
    return (f"{few} times as often as it says; ExactTest is exact",) if 0 < count < DOUBTFUL else ()


@dataclass(frozen=True)
class Outcome:
    """What a test of the matrix finds."""

    statistic: float
    pvalue: float
    null: np.ndarray | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def ranked(cls, statistic: float, null: np.ndarray) -> Self:
        """``p = (1 + #{T* >= T}) / (M + 1)``; ties, also those of rounding, count against rejection."""
        return cls(statistic, float(at_least(np.append(null, statistic))[-1] / (len(null) + 1)), null)


@dataclass(frozen=True)
class MatrixTest(Settings, ABC):
    """A test whose statistic is a function of the matrix; subclasses are frozen dataclasses that write :meth:`outcome`.

    Weights scale the terms: the matrix is that of the weighted residuals.
    """

    estimator: SKCE = SKCE()  # noqa: RUF009  # frozen

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, SKCE) or not self.estimator.unbiased or self.estimator.block is not None:
            raise InputError(f"estimator must be an unbiased SKCE without blocks; got {self.estimator!r}")

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
        """The matrix, its statistic and its p-value."""
        refuse_clusters(self, clusters)
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight, Classes(labels, pos_label))
        check_whole(predictions, self)
        estimate = self.estimator.estimate_by(engine, targets, predictions, weights)
        few = (*check_large(self, predictions, weights), *route_notes(estimate))
        resolved = estimate.estimator
        assert isinstance(resolved, SKCE)
        matrix = KernelMatrix.of(resolved, targets, predictions, weights, engine)
        found = self.outcome(matrix, rng, engine)
        return TestResult(
            found.statistic,
            found.pvalue,
            len(matrix),
            self,
            estimate,
            found.null,
            (*estimate.notes, *few, *found.notes),
            has_band=False,  # of 100 calibrated rows, the central 95 % of such draws held the statistic in 89 % of data sets
        )

    @abstractmethod
    def outcome(self, matrix: KernelMatrix, rng: Seed, engine: Engine | None) -> Outcome:
        """Statistic and p-value."""
