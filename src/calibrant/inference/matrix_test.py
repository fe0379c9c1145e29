"""What tests of the kernel matrix share: the checked call."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant._validate import InputError
from calibrant.distributions.conversion import as_weighted_problem
from calibrant.distributions.quantiles import check_whole
from calibrant.estimators.skce import SKCE
from calibrant.inference.kernel_matrix import KernelMatrix
from calibrant.inference.large_samples import check_large, route_notes
from calibrant.inference.ranks import at_least
from calibrant.results import TestResult
from calibrant.typing import ArrayLike, Engine, Seed


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
class MatrixTest(ABC):
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
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> TestResult:
        """The matrix, its statistic and its p-value."""
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight)
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
        )

    @abstractmethod
    def outcome(self, matrix: KernelMatrix, rng: Seed, engine: Engine | None) -> Outcome:
        """Statistic and p-value."""
