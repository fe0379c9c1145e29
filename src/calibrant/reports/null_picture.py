"""The picture of redrawn errors: what a calibrated model would show, and where this one lies."""

from dataclasses import replace

import numpy as np

from calibrant.estimators.base import BaseEstimator
from calibrant.inference.pool import Pool
from calibrant.plots.null_histogram import NullDisplay
from calibrant.reports.model import Picture
from calibrant.reports.problem import Problem
from calibrant.results import TestResult, percent


def null_of(problem: Problem, pool: Pool, estimator: BaseEstimator, key: str, label: str) -> Picture:
    """The null distribution of an error in the pool, with the error of the data."""
    estimate = replace(
        estimator.estimate(problem.targets, problem.predictions, problem.weights), name=label.capitalize()
    )
    null, pvalue = pool.null(key), pool.pvalue(key)
    test = TestResult(float(estimate), pvalue, len(problem), estimator, estimate, null)
    above = float(np.mean(null >= float(estimate)))
    band = pool.null_band(key)
    return Picture(
        "null",
        "What chance alone would show",
        f"The {label} of {len(null):,} sets of outcomes drawn anew from the predictions, which are calibrated by construction. "
        "The line is this model; far to the right of the bars, chance does not explain it.",
        f"Histogram of the {label} if calibrated, from {percent(band.low)} to {percent(band.high)} in 95 % of redraws; this "
        f"model shows {percent(float(estimate))}, and {percent(above)} of redraws as much or more.",
        NullDisplay.from_result(test).tables,
    )
