"""The numbers of a report: each with its interval, and with what a calibrated model would show."""

from dataclasses import replace
from typing import Literal, TypeAlias

from calibrant.estimators.base import BaseEstimator
from calibrant.estimators.binned import ECE
from calibrant.estimators.scores import Score
from calibrant.estimators.skce import SKCE
from calibrant.inference.exact import ExactTest
from calibrant.inference.intervals import include_null
from calibrant.reports.model import KeyNumber
from calibrant.reports.problem import Problem
from calibrant.results import Estimate, Interval

LEAST_REDRAWS = 199
"""Fewer redraws than this say too little about a p-value."""

Unit: TypeAlias = Literal["percent", "number"]
Measure: TypeAlias = tuple[str, str, BaseEstimator, Unit]
"""What is measured: label, meaning, estimator, unit."""


def number_of(problem: Problem, label: str, meaning: str, estimator: BaseEstimator, unit: Unit) -> KeyNumber:
    """The number with its interval, test and band."""
    if isinstance(estimator, SKCE):
        return _kernel_number(problem, label, meaning, estimator, unit)
    # A score is too small when the model is under-confident; an error can only be too large.
    test = problem.test(estimator, two_sided=isinstance(estimator, Score))
    interval: Interval | None = None
    if estimator == problem.error and isinstance(estimator, ECE) and problem.kind != "multi-label":
        # averaged errors have none: see decision 5
        interval = include_null(problem.interval(estimator).confidence_interval(), test)
    elif (interval := normal_interval(test.estimate)) is not None:
        interval = replace(interval, low=max(interval.low, 0.0))
    return KeyNumber(label, meaning, test.statistic, unit, interval, test.null_band(), test.pvalue, repr(estimator))


def _kernel_number(problem: Problem, label: str, meaning: str, estimator: SKCE, unit: Unit) -> KeyNumber:
    """With its test where redraws are affordable."""
    draws = problem.kernel_resamples
    if draws < min(LEAST_REDRAWS, problem.n_resamples) or estimator.block is not None:
        estimate = estimator.estimate(problem.targets, problem.predictions, problem.weights)
        return KeyNumber(
            label, meaning, float(estimate), unit, normal_interval(estimate), None, None, repr(estimate.estimator)
        )
    test = problem.run(ExactTest(estimator, draws))
    resolved = repr(test.estimate.estimator)
    return KeyNumber(
        label, meaning, test.statistic, unit, normal_interval(test.estimate), test.null_band(), test.pvalue, resolved
    )


def normal_interval(estimate: Estimate) -> Interval | None:
    """The interval that the standard error gives, where there is one."""
    return None if estimate.standard_error is None else estimate.confidence_interval()
