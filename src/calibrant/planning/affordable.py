"""Operation counts of tests, intervals and kernel errors, and how many of them a report may spend.

The one place that says what is affordable: reports choose by these numbers, and so does :func:`calibrant.planning.plan`.
"""

import numpy as np

from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.estimators.base import BaseEstimator
from calibrant.estimators.kernel_errors.kernel_problem import resolve_kernels
from calibrant.estimators.kernel_errors.kernel_resamples import work_of_resample
from calibrant.estimators.kernel_errors.random_features import RandomFeatureSKCE, target_features, work_of_features
from calibrant.estimators.kernel_errors.skce import SKCE

TEST_WORK = 40_000_000
"""Resampled targets a report may cost before it makes do with fewer resamples."""

PAIRS = 500_000_000
"""Pairs of rows the kernel error may cost before a report takes it block by block."""

KERNEL_WORK = 4e10
"""Multiplications that all resamples of kernel errors may cost: a few seconds."""

ON_A_LINE = 10
"""How much longer a multiplication takes where rows are summed along a line, one after the other."""


def affordable(wanted: int, size: int, work: int, *, least: int) -> int:
    """How many repetitions over ``size`` numbers stay within the work, between the least and the wanted number.

    >>> [affordable(999, size, TEST_WORK, least=199) for size in (100, 100_000, 10**7)]
    [999, 400, 199]
    """
    return min(wanted, max(least, work // size))


def affordable_resamples(wanted: int, size: int) -> int:
    """How many resamples of so many targets to draw, at least 199; fewer than wanted leave round p-values.

    >>> [affordable_resamples(999, size) for size in (10_000, 50_000, 5_000_000)]
    [999, 799, 199]
    """
    draws = affordable(wanted, size, TEST_WORK, least=199)
    return draws if draws == wanted else (draws + 1) // 100 * 100 - 1


def affordable_kernel(n: int, pairs: int, *, is_line: bool, in_blocks: bool = True) -> SKCE | None:
    """The kernel error of n rows within so many pairs: of all of them, of blocks of rows, or none.

    On a line there are no pairs. Weights have no blocks.

    >>> [affordable_kernel(n, PAIRS, is_line=False).block for n in (10_000, 100_000)]
    [None, 5000]
    """
    if n < 2:
        return None
    if is_line or n**2 <= pairs:
        return SKCE()
    return SKCE(block=pairs // n) if in_blocks and pairs // n > 1 else None


def work_of(estimator: BaseEstimator, predictions: Distribution) -> float:
    """Multiplications that one resample of a kernel error costs, roughly.

    >>> work_of(SKCE(), Categorical(np.full((1000, 3), 1 / 3)))
    3000000.0
    """
    assert isinstance(estimator, SKCE | RandomFeatureSKCE)
    on_predictions, on_targets, coords = resolve_kernels(estimator.on_predictions, estimator.on_targets, predictions)
    if isinstance(estimator, RandomFeatureSKCE):
        features = target_features(on_targets, predictions[:2], np.random.default_rng(0))
        return work_of_features(len(predictions), features.width, estimator.n_features)
    is_line = isinstance(predictions, Categorical) and coords.shape[1] == 1
    return work_of_resample(on_predictions, predictions, coords.shape[1]) * (ON_A_LINE if is_line else 1)
