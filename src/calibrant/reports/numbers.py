"""The numbers of a report: each with its interval, and with what a calibrated model would show."""

from dataclasses import replace
from typing import Literal, NamedTuple, TypeAlias

from calibrant.estimators.base import BaseEstimator
from calibrant.estimators.binned import ECE
from calibrant.inference.intervals import include_null
from calibrant.inference.pool import Pool
from calibrant.reports.model import KeyNumber
from calibrant.reports.problem import Problem
from calibrant.results import Estimate, Interval, TestResult

Unit: TypeAlias = Literal["percent", "number"]


class Measure(NamedTuple):
    """What is measured: its label, what it means, the estimator, the unit, and its name among the redraws."""

    label: str
    meaning: str
    estimator: BaseEstimator
    unit: Unit
    key: str


def number_of(problem: Problem, measure: Measure, pool: Pool | None) -> KeyNumber:
    """The number with its interval, and with its test and band where it was redrawn."""
    estimate = measure.estimator.estimate(problem.targets, problem.predictions, problem.weights)
    interval = normal_interval(estimate)
    if interval is not None and measure.estimator.least >= 0:
        interval = replace(interval, low=max(interval.low, measure.estimator.least))
    band, pvalue = None, None
    if pool is not None and measure.key in pool.values:
        band, pvalue = pool.null_band(measure.key), pool.pvalue(measure.key)
    if measure.estimator == problem.error and isinstance(measure.estimator, ECE) and problem.kind != "multi-label":
        # averaged errors have none: see decision 5
        found = problem.interval(measure.estimator).confidence_interval()
        test = TestResult(float(estimate), 1.0 if pvalue is None else pvalue, len(problem), measure, estimate)
        interval = include_null(found, test)
    resolved = repr(estimate.estimator)
    return KeyNumber(measure.label, measure.meaning, float(estimate), measure.unit, interval, band, pvalue, resolved)


def normal_interval(estimate: Estimate) -> Interval | None:
    """The interval that the standard error gives, where there is one."""
    return None if estimate.standard_error is None else estimate.confidence_interval()
