"""One checked problem, and how random work on it is done."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, Self, TypeVar

import numpy as np

from calibrant.distributions.bernoulli import Bernoulli
from calibrant.distributions.categorical import Categorical
from calibrant.estimators.binned import ECE
from calibrant.estimators.binning import EqualMass
from calibrant.estimators.skce import SKCE
from calibrant.inference.exact import ExactTest
from calibrant.inference.intervals import Bootstrap
from calibrant.lenses import Lens, TopLabel, default_lens
from calibrant.results import Estimate, TestResult
from calibrant.typing import Array, Engine, Estimator

T = TypeVar("T")

TEST_WORK = 200_000_000
"""Redrawn targets a test may cost before a report makes do with fewer redraws."""

KERNEL_WORK = 60_000_000_000
"""Multiplications a test of the kernel error may cost before a report goes without."""

PAIRS = 4_000_000_000
"""Pairs of rows the kernel error may cost before a report takes it block by block."""

BOOTSTRAP_WORK = 40_000_000
"""Resampled rows an interval may cost before a report makes do with fewer resamples."""


def affordable(wanted: int, size: int, work: int, *, least: int) -> int:
    """How many repetitions over ``size`` numbers stay within the work, between the least and the wanted number.

    >>> [affordable(999, size, TEST_WORK, least=199) for size in (100, 500_000, 10**7)]
    [999, 400, 199]
    """
    return min(wanted, max(least, work // size))


@dataclass(frozen=True, eq=False)
class Problem:
    """Targets and predictions of a report with their weights; redraws, seed and engine of its tests."""

    targets: Array
    predictions: Categorical | Bernoulli
    weights: np.ndarray | None
    n_resamples: int
    seeds: np.random.SeedSequence
    engine: Engine | None

    def __len__(self) -> int:
        return len(self.predictions)

    @property
    def kind(self) -> Literal["binary", "multi-class", "multi-label"]:
        """What is predicted."""
        if isinstance(self.predictions, Bernoulli):
            return "multi-label"
        return "multi-class" if self.predictions.n_classes > 2 else "binary"

    @property
    def lens(self) -> Lens:
        """The events that the report is about."""
        return TopLabel() if self.kind == "multi-class" else default_lens(self.predictions)

    @property
    def error(self) -> ECE:
        """The calibration error that the verdict rests on."""
        return ECE(EqualMass(15), lens=self.lens)

    @property
    def fresh_seeds(self) -> np.random.SeedSequence:
        """The seed as if unused, so that a plain call with the same seed repeats every number of the report."""
        return np.random.SeedSequence(self.seeds.entropy, spawn_key=self.seeds.spawn_key)

    def rows(self, index: np.ndarray) -> Self:
        """The problem of these rows alone."""
        weights = None if self.weights is None else self.weights[index]
        return replace(self, targets=self.targets[index], predictions=self.predictions[index], weights=weights)

    @property
    def kernel_error(self) -> SKCE | None:
        """The kernel error of all classes at once; of blocks of rows where all pairs are too many."""
        n = len(self) if self.weights is None else int((self.weights > 0).sum())
        if not isinstance(self.predictions, Categorical) or n < 2:
            return None
        if self.predictions.n_classes == 2 or n**2 <= PAIRS:
            return SKCE()
        return SKCE(block=PAIRS // n) if self.weights is None and PAIRS // n > 1 else None

    @property
    def kernel_resamples(self) -> int:
        """How many redraws the kernel error may have; two classes take O(n log n), more take O(n^2 k)."""
        assert isinstance(self.predictions, Categorical)
        if self.predictions.n_classes == 2:
            return self.n_resamples
        return min(self.n_resamples, KERNEL_WORK // (len(self) ** 2 * self.predictions.n_classes))

    def test(self, estimator: Estimator, *, two_sided: bool = False, least_resamples: int = 1) -> TestResult:
        """The exact test of an estimator."""
        test = ExactTest(estimator, max(self.n_resamples, least_resamples), "two-sided" if two_sided else "greater")
        return self.run(test)

    def interval(self, estimator: Estimator) -> Estimate:
        """The estimate with its bootstrap interval."""
        return self.run(Bootstrap(estimator, affordable(199, len(self), BOOTSTRAP_WORK, least=99)))

    def run(self, measure: Callable[..., T]) -> T:
        """Any test, interval or curve, on this problem."""
        return measure(
            self.targets, self.predictions, sample_weight=self.weights, rng=self.fresh_seeds, engine=self.engine
        )
