"""A test for time series: levels of outcomes are handed to other rows, in blocks."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution, needed
from calibrant.distributions.conversion import as_weighted_problem
from calibrant.distributions.quantiles import check_whole
from calibrant.estimators.base import Statistic, as_estimate
from calibrant.estimators.pit import PIT
from calibrant.inference.blocks import check_blocks, shuffled_rows
from calibrant.inference.draws import draw
from calibrant.inference.exact import statistic_of
from calibrant.inference.ranks import at_least
from calibrant.results import TestResult
from calibrant.typing import ArrayLike, Engine, Estimator, Seed

BLIND = "levels that are uneven in all rows alike are not seen by this test: look at PITHistogram as well"


@dataclass(frozen=True)
class ShuffleTest:
    """Test that how outcomes lie in their forecasts has nothing to do with what was forecast, for rows in the order of time.

    The levels ``F_i(y_i)`` of ``block`` rows after each other are kept together and handed to other rows, at random; each
    outcome is then the quantile of its new forecast at that level, and the statistic is ranked among those of
    ``n_resamples`` such series. If blocks of levels are exchangeable and independent of the forecasts, as those of a calibrated
    forecast are when errors depend on errors up to a block before, the level holds exactly at every n, for every
    statistic. Tests for independent rows, :class:`ExactTest` among them, reject such series far too often.

    What all rows have in common is not seen: forecasts that are too narrow everywhere keep their levels. With ``block=1`` it
    is a permutation test. Levels of counts are randomised. For forecasts of numbers; O(n) quantiles a redraw.

    >>> from calibrant import SKCE, Normal
    >>> rng = np.random.default_rng(0)
    >>> loc = rng.normal(size=200)
    >>> errors = np.repeat(rng.normal(size=40), 5)  # for five days the same
    >>> ShuffleTest(SKCE(), block=10, n_resamples=99)(loc + errors, Normal(loc, 1.0)).pvalue > 0.05
    True
    >>> ShuffleTest(SKCE(), block=10, n_resamples=99)(errors - loc, Normal(loc, 1.0)).pvalue
    0.01
    """

    estimator: Estimator
    block: int
    n_resamples: int = 999
    seed: int = 0

    def __post_init__(self) -> None:
        if not callable(self.estimator):
            raise InputError(f"estimator must be an estimator such as SKCE(); got {self.estimator!r}")
        check_count(self.block, "block")
        check_count(self.n_resamples, "n_resamples")
        check_count(self.seed, "seed", least=0)

    def __call__(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> TestResult:
        """Hand levels around, compare and count."""
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight)
        check_whole(predictions, self)
        check_blocks(self.block, len(predictions))
        needed(predictions[:1].quantile(np.array([0.5])), "quantiles", predictions, self)
        levels = PIT(seed=self.seed).of(to_numpy(targets), predictions)
        estimate = as_estimate(self.estimator, targets, predictions, weights)
        statistic = statistic_of(self.estimator, predictions, weights)
        observed = float(statistic(to_numpy(targets)[None])[0])
        redraw = partial(_handed, statistic, predictions, levels, self.block)
        null = draw(redraw, self.n_resamples, width=len(predictions), rng=rng, engine=engine)
        pvalue = float(at_least(np.append(null, observed))[-1] / (len(null) + 1))
        return TestResult(float(estimate), pvalue, len(predictions), self, estimate, null, (BLIND,))


def _handed(
    statistic: Statistic,
    predictions: Distribution,
    levels: np.ndarray,
    block: int,
    seed: np.random.SeedSequence,
    size: int,
) -> np.ndarray:
    """The statistic of outcomes at levels of other rows, ``(size,)``."""
    rng, n = np.random.default_rng(seed), len(levels)
    others = np.stack([levels[shuffled_rows(n, block, rng)] for _ in range(size)])
    rows = [to_numpy(predictions[i : i + 1].quantile(others[:, i]))[0] for i in range(n)]
    return statistic(np.stack(rows, axis=1))
