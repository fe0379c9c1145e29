"""One checked problem, and how random work on it is done."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self, TypeVar

import numpy as np

from calibrant.distributions.base import Distribution
from calibrant.estimators.base import BaseEstimator
from calibrant.estimators.skce import SKCE
from calibrant.inference.exact import ExactTest
from calibrant.planning.work import PAIRS, affordable_kernel
from calibrant.results import TestResult
from calibrant.typing import Array, Engine, Estimator

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Problem(ABC):
    """Targets and predictions of a report with their weights; redraws, seed and engine of its tests.

    Subclasses say what is predicted, which error the verdict rests on, and what the kernel error may cost.
    """

    targets: Array
    predictions: Distribution
    weights: np.ndarray | None
    n_resamples: int
    seeds: np.random.SeedSequence
    engine: Engine | None

    def __len__(self) -> int:
        return len(self.predictions)

    @property
    @abstractmethod
    def kind(self) -> str:
        """What is predicted."""

    @property
    @abstractmethod
    def error(self) -> BaseEstimator:
        """The calibration error that the verdict rests on."""

    @abstractmethod
    def means(self) -> tuple[float, float]:
        """What is claimed on average, and what happened."""

    @property
    @abstractmethod
    def kernel_width(self) -> int:
        """Multiplications that a pair of rows costs the kernel error; 0 where rows lie on a line, and need no pairs."""

    @property
    def fresh_seeds(self) -> np.random.SeedSequence:
        """The seed as if unused, so that a plain call with the same seed repeats every number of the report."""
        return np.random.SeedSequence(self.seeds.entropy, spawn_key=self.seeds.spawn_key)

    def rows(self, index: np.ndarray) -> Self:
        """The problem of these rows alone."""
        weights = None if self.weights is None else self.weights[index]
        return replace(self, targets=self.targets[index], predictions=self.predictions[index], weights=weights)

    @cached_property
    def kernel_error(self) -> SKCE | None:
        """The kernel error of whole predictions, length scales found; of blocks of rows where all pairs are too many."""
        n = len(self) if self.weights is None else int((self.weights > 0).sum())
        found = affordable_kernel(n, PAIRS, is_line=self.kernel_width == 0, in_blocks=self.weights is None)
        return None if found is None else found.resolved(self.predictions)

    def test(self, estimator: Estimator, *, two_sided: bool = False, least_resamples: int = 1) -> TestResult:
        """The exact test of an estimator."""
        test = ExactTest(estimator, max(self.n_resamples, least_resamples), "two-sided" if two_sided else "greater")
        return self.run(test)

    def run(self, measure: Callable[..., T]) -> T:
        """Any test, interval or curve, on this problem."""
        return measure(
            self.targets, self.predictions, sample_weight=self.weights, rng=self.fresh_seeds, engine=self.engine
        )
