"""Statements of uncertainty, and what it takes for each to hold."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.stats import binom

from calibrant import Bootstrap
from calibrant._validate import InputError
from calibrant.results import Estimate, TestResult
from studies.coverage.truths import truth_of
from studies.coverage.worlds import DataSet, Setting

Statement: TypeAlias = Literal["interval", "bound", "standard error", "p-value", "band", "verdict", "limit"]

LEVEL = 0.95
"""What is promised."""

CHANCE = 0.001
"""The share of true statements that may seem false."""

MIN_SETS = 100
"""Data sets in which something must be stated for a cell to count."""

ROUNDING = 1e-9
"""A limit that misses the truth by less of its size does not miss it."""


@dataclass(frozen=True)
class Finding:
    """What came of one statement in one world: in how many data sets it was made, and held.

    ``part`` is the share of misses in what 99.9 % of studies would show if the statement were true: above 1 it is not. Of a
    standard error it is how many times the spread of the estimates exceeds it, allowing for chance.
    """

    statement: Statement
    data_sets: int
    stated: int
    share: float
    part: float

    @property
    def is_red(self) -> bool:
        """Whether it was made, and was false more often than chance allows."""
        return self.stated >= MIN_SETS and self.part > 1


def share_held(statement: Statement, held: np.ndarray, level: float = LEVEL) -> Finding:
    """From data sets in which a statement held (1), did not (0) or was not made (NaN).

    >>> share_held("interval", np.array([1.0] * 380 + [0.0] * 20 + [np.nan] * 100)).part < 1
    True
    """
    made = held[~np.isnan(held)]
    if len(made) == 0:
        return Finding(statement, len(held), 0, np.nan, np.nan)
    misses, allowed = float((made == 0).sum()), float(binom.ppf(1 - CHANCE, len(made), 1 - level))
    return Finding(statement, len(held), len(made), float(made.mean()), misses / max(allowed, 1.0))


def size_of_error(values: np.ndarray, errors: np.ndarray) -> Finding:
    """How the standard errors that were stated compare with the spread of the estimates.

    Errors that are too large by up to a half are no fault; what counts is that they are not too small.
    """
    made = np.isfinite(errors) & np.isfinite(values)
    if made.sum() < 2 or np.ptp(values[made]) == 0:
        return Finding("standard error", len(values), 0, np.nan, np.nan)
    value, predicted = values[made], float(np.sqrt(np.mean(errors[made] ** 2)))
    away = (value - value.mean()) ** 2
    spread = float(np.sqrt(away.sum() / (len(value) - 1)))
    # the relative error of a variance, from the fourth moment; half of it is that of the spread
    doubt = 0.5 * float(np.std(away) / away.mean()) / np.sqrt(len(value))
    ratio = spread / predicted if predicted > 0 else np.inf
    return Finding("standard error", len(values), int(made.sum()), 1 / ratio, ratio / (1 + 3.3 * doubt))


@dataclass(frozen=True, eq=False)
class Claim(ABC):
    """Something that the library states of data sets of a kind."""

    name: str
    suits: Callable[[Setting], bool]
    costly: bool = field(default=False, kw_only=True)

    @abstractmethod
    def found(self, data: DataSet, seed: int) -> Sequence[float]:
        """The numbers of one data set."""

    @abstractmethod
    def findings(self, setting: Setting, values: np.ndarray) -> list[Finding]:
        """What came of it, from the numbers of all data sets ``(sets, numbers)``."""

    def applies(self, setting: Setting) -> bool:
        """Whether it can be made."""
        return self.suits(setting)

    def is_stated(self, values: np.ndarray) -> bool:
        """Whether anything is stated by the numbers of some data sets."""
        return not bool(np.isnan(values).all())


@dataclass(frozen=True, eq=False)
class Estimated(Claim):
    """An estimate with its interval and standard error."""

    estimator: Any

    def found(self, data: DataSet, seed: int) -> Sequence[float]:
        """Value, standard error, and the ends of the interval; NaN for what is withheld."""
        options = {"rng": seed} if isinstance(self.estimator, Bootstrap) else {}
        try:
            estimate = self.estimator(data.targets, data.predictions, sample_weight=data.weights, **options)
        except InputError:
            return [np.nan] * 4
        return stated(estimate)

    def is_stated(self, values: np.ndarray) -> bool:
        """Whether there is more than the estimate."""
        return super().is_stated(values[:, 1:])

    def findings(self, setting: Setting, values: np.ndarray) -> list[Finding]:
        """Whether intervals hold the truth, and standard errors are not too small; nothing where no truth is known."""
        truth = self._truth(setting)
        if truth is None:
            return []
        value, error, low, high = values.T
        is_bound = bool(np.isinf(high).any())
        interval = share_held("bound" if is_bound else "interval", holds(low, truth, high))
        return [interval, size_of_error(value, error)]

    def _truth(self, setting: Setting) -> float | None:
        estimator = self.estimator
        return truth_of(setting, estimator.estimator if isinstance(estimator, Bootstrap) else estimator)


def stated(estimate: Estimate) -> Sequence[float]:
    """Value, standard error and the ends of the 95 % interval."""
    error = np.nan if estimate.standard_error is None else estimate.standard_error
    ends = estimate.confidence_interval(LEVEL) if estimate.has_interval else (np.nan, np.nan)
    return [float(estimate), error, *ends]


def holds(low: np.ndarray, truth: float | np.ndarray, high: np.ndarray) -> np.ndarray:
    """Whether the truth lies between the ends; NaN where there are none."""
    slack = ROUNDING * np.maximum(np.abs(truth), 1e-3)
    held = np.where((low <= truth + slack) & (truth - slack <= high), 1.0, 0.0)
    return np.where(np.isnan(low) | np.isnan(high), np.nan, held)


@dataclass(frozen=True, eq=False)
class Rejected(Claim):
    """A p-value, and the band of the statistic where the test has one: true where calibrated models are rarely rejected."""

    test: Any

    def applies(self, setting: Setting) -> bool:
        """Calibrated worlds."""
        return self.suits(setting) and setting.is_calibrated

    def found(self, data: DataSet, seed: int) -> Sequence[float]:
        """Whether the p-value exceeds 5 %, and whether the band holds the statistic; NaN where the test is refused."""
        weights = {} if data.weights is None else {"sample_weight": data.weights}
        try:
            result: TestResult = self.test(data.targets, data.predictions, rng=seed, **weights)
        except InputError:
            return [np.nan, np.nan]
        if np.isnan(result.pvalue):
            return [0.0, np.nan]
        if not result.has_band:
            return [float(result.pvalue > 1 - LEVEL), np.nan]
        low, high = result.null_band(LEVEL)
        slack = ROUNDING * max(abs(low), abs(high))
        return [float(result.pvalue > 1 - LEVEL), float(low - slack <= result.statistic <= high + slack)]

    def findings(self, setting: Setting, values: np.ndarray) -> list[Finding]:
        """The level, and the coverage of the band."""
        return [share_held("p-value", values[:, 0]), share_held("band", values[:, 1])]


@dataclass(frozen=True, eq=False)
class Judged(Claim):
    """Statements of one kind or several that hold or do not, data set by data set."""

    statements: tuple[Statement, ...]
    judge: Callable[[DataSet, int], Sequence[float]]
    calibrated_only: bool = False

    def applies(self, setting: Setting) -> bool:
        """Everywhere, or in calibrated worlds."""
        return self.suits(setting) and (setting.is_calibrated or not self.calibrated_only)

    def found(self, data: DataSet, seed: int) -> Sequence[float]:
        """1 where it held, 0 where not, NaN where it was not made."""
        try:
            return self.judge(data, seed)
        except InputError:
            return [np.nan] * len(self.statements)

    def findings(self, setting: Setting, values: np.ndarray) -> list[Finding]:
        """One per statement."""
        return [share_held(statement, column) for statement, column in zip(self.statements, values.T, strict=True)]
