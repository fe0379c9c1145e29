"""The numbers of a report: each with its interval, and with what a calibrated model would show."""

from typing import Literal, NamedTuple, TypeAlias

from calibrant.estimators.base import BaseEstimator
from calibrant.inference.intervals import include_null
from calibrant.inference.pool import Pool
from calibrant.reports.model import KeyNumber
from calibrant.reports.problem import Problem
from calibrant.results import TestResult

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
    interval = estimate.confidence_interval() if estimate.has_interval else None
    band, pvalue = None, None
    if pool is not None and measure.key in pool.values:
        band, pvalue = pool.null_band(measure.key), pool.pvalue(measure.key)
    if measure.estimator == problem.error and interval is not None and pvalue is not None:
        interval = include_null(interval, TestResult(float(estimate), pvalue, len(problem), measure, estimate))
    return KeyNumber(
        label=measure.label,
        meaning=measure.meaning,
        value=float(estimate),
        unit=measure.unit,
        interval=interval,
        null_band=band,
        pvalue=pvalue,
        estimator=repr(estimate.estimator),
        withheld=estimate.withheld if interval is None else None,
    )
