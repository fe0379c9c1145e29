"""Confidence intervals for any estimator, by resampling rows."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from calibrant._validate import InputError, check_count, check_fraction
from calibrant.distributions.base import Distribution
from calibrant.distributions.conversion import as_weighted_problem
from calibrant.estimators.base import as_estimate
from calibrant.inference.blocks import block_rows, check_blocks
from calibrant.inference.draws import draw
from calibrant.results import Estimate, Interval, TestResult
from calibrant.typing import Array, ArrayLike, Engine, Estimator, Seed


@dataclass(frozen=True)
class Bootstrap:
    """An estimate with a bootstrap interval and standard error.

    Rows are drawn with replacement; the interval is the reflected one, ``2 T - quantiles(T*)``, because calibration
    errors are biased upwards and the usual percentile interval doubles that bias: over 150 calibrated data sets of
    1,000 rows it never covered the truth. The interval is widened to hold the estimate and cut at the least value the
    estimator can take. Near perfect calibration no resampling of rows covers well; :func:`include_null` joins the
    interval with the exact test, which does. Efron & Tibshirani (1993).

    ``block=b`` is for rows in the order of time: b rows after each other are drawn together, so that what depends on what
    was shortly before stays with it; the last row is followed by the first. Politis & Romano (1992).

    >>> import numpy as np
    >>> from calibrant import Bootstrap, ECE
    >>> rng = np.random.default_rng(0)
    >>> y_pred = rng.random(400)
    >>> y_true = (rng.random(400) < 0.3 + 0.4 * y_pred) * 1
    >>> low, high = Bootstrap(ECE(), n_resamples=199)(y_true, y_pred).interval
    >>> low < 0.15 < high
    True
    """

    estimator: Estimator
    n_resamples: int = 999
    confidence_level: float = 0.95
    block: int = 1

    def __post_init__(self) -> None:
        if not callable(self.estimator):
            raise InputError(f"estimator must be an estimator such as ECE(); got {self.estimator!r}")
        check_count(self.n_resamples, "n_resamples", least=2)
        check_count(self.block, "block")
        check_fraction(self.confidence_level, "confidence_level")

    def __call__(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> Estimate:
        """The estimate, its standard error and interval."""
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight)
        value = partial(value_of_rows, self.estimator, targets, predictions, weights)
        estimate: Estimate = value(slice(None), engine)
        check_blocks(self.block, len(predictions))
        resample = partial(_resample, value, len(predictions), self.block)
        values = draw(resample, self.n_resamples, width=len(predictions), rng=rng, engine=engine)
        return replace(
            estimate,
            standard_error=float(np.std(values, ddof=1)),
            interval=reflected(
                float(estimate), values, self.confidence_level, getattr(self.estimator, "least", -np.inf)
            ),
        )


def reflected(value: float, values: np.ndarray, level: float, least: float) -> Interval:
    """The reflected interval from resampled values, widened to hold the value and cut at the least one there can be."""
    tail = (1 - level) / 2
    low, high = 2 * value - np.quantile(values, [1 - tail, tail])
    return Interval(max(least, min(float(low), value)), max(float(high), value), level, "reflected bootstrap")


def include_null(interval: Interval, test: TestResult) -> Interval:
    """The interval of a non-negative error, down to zero exactly when the exact test cannot rule zero out.

    >>> import numpy as np
    >>> from calibrant import Bootstrap, ECE, ExactTest
    >>> y_pred = np.linspace(0.05, 0.95, 60)
    >>> y_true = (np.random.default_rng(3).random(60) < y_pred) * 1
    >>> interval = Bootstrap(ECE(), n_resamples=99)(y_true, y_pred).interval
    >>> include_null(interval, ExactTest(ECE())(y_true, y_pred)).low
    0.0
    """
    if test.pvalue <= 1 - interval.level:
        return interval
    return replace(interval, low=min(0.0, interval.low), method=f"{interval.method} with exact test")


def value_of_rows(
    estimator: Callable[..., Any],
    targets: Array,
    predictions: Distribution,
    weights: np.ndarray | None,
    rows: slice | np.ndarray,
    engine: Engine | None = None,
) -> Estimate:
    """The estimate from some rows of a problem, which may repeat."""
    w = None if weights is None else weights[rows]
    return as_estimate(estimator, targets[rows, ...], predictions[rows], w, engine)


def _resample(
    value: Callable[[np.ndarray], Any], n: int, block: int, seed: np.random.SeedSequence, size: int
) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.array([float(value(block_rows(n, block, rng))) for _ in range(size)])
