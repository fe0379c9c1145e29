"""The block test of the kernel calibration error."""

from dataclasses import dataclass, replace

from scipy.special import ndtr

from calibrant._validate import InputError, check_count
from calibrant.distributions.conversion import as_weighted_problem
from calibrant.distributions.quantiles import check_whole
from calibrant.estimators.skce import SKCE
from calibrant.inference.large_samples import check_large, route_notes
from calibrant.results import TestResult
from calibrant.typing import ArrayLike, Engine, Seed

FEW_BLOCKS = 8
"""With fewer blocks than this the mean is not normal: of two blocks, 12 % of calibrated data sets were rejected at 5 %."""

ROUNDING = 1e-12
"""Standard errors below this share of the mean are rounding: all blocks agree."""


@dataclass(frozen=True)
class BlockTest:
    """Test of calibration by independent blocks of rows.

    ``z = sqrt(m) mean(eta) / sd(eta)`` over the unbiased estimates ``eta`` of m consecutive blocks, and ``p = Phi(-z)``. Blocks
    have ``block`` rows, else as many as the estimator says, else ``sqrt(n)``. Valid for many blocks (a note says where they
    are few), and refused where nothing unlikely is expected to happen; where all blocks agree p is its limit, 0 for a
    positive mean and else 1. O(n block). Widmann, Lindsten & Zachariah (2021).

    >>> import numpy as np
    >>> y_pred = np.linspace(0.05, 0.95, 60)
    >>> y_true = (np.random.default_rng(3).random(60) < y_pred) * 1
    >>> BlockTest(block=5)(y_true, y_pred).pvalue > 0.05
    True
    """

    estimator: SKCE = SKCE()  # noqa: RUF009  # frozen
    block: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, SKCE) or not self.estimator.unbiased:
            raise InputError(f"estimator must be an unbiased SKCE; got {self.estimator!r}")
        if self.block is not None:
            check_count(self.block, "block", least=2)

    def __call__(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> TestResult:
        """The mean of the blocks in units of its standard error."""
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight)
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
        few = (*check_large(self, predictions), *route_notes(estimate))
        if n // size < FEW_BLOCKS:
            few = (
                *few,
                f"{n // size} blocks are few for a normal law, and its level is too large: ExactTest(SKCE()) is exact",
            )
        if error > ROUNDING * abs(mean):
            z = mean / error
        else:
            z = float("inf") if mean > 0 else -float("inf")
            notes = (*notes, "all blocks agree: the standard error is zero, and the p-value is its limit")
        return TestResult(z, float(ndtr(-z)), n, self, estimate, notes=(*notes, *few))
