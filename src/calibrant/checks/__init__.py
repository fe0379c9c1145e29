"""Conformance checks, for our own suite and for anyone who adds a kernel, a family, an estimator, a recalibrator.

Each function raises ``AssertionError`` with words where something does not hold. What draws can tell is held to five
standard errors; what can be integrated is held to digits.
"""

from calibrant.checks.distribution import check_distribution
from calibrant.checks.engine import check_engine
from calibrant.checks.estimator import check_estimator
from calibrant.checks.expectation import check_expectation
from calibrant.checks.kernel import check_kernel
from calibrant.checks.recalibrator import check_recalibrator

__all__ = [
    "check_distribution",
    "check_engine",
    "check_estimator",
    "check_expectation",
    "check_kernel",
    "check_recalibrator",
]
