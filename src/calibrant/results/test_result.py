"""The outcome of a test."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant.results.base import SCHEMA, Result
from calibrant.results.estimate import Estimate, Interval, check_level
from calibrant.results.words import brief, number


@dataclass(frozen=True, repr=False)
class TestResult(Result):
    """The outcome of a test that the predictions are calibrated.

    ``pvalue`` is small when they are not. ``null_distribution`` holds the statistic under calibrated resamples, so
    ``null_band()`` says what an honest model with these very predictions would show; tests whose law is for large n have none.
    ``notes`` say what a reader must know.
    """

    __test__ = False  # not a test case, whatever the name says to pytest

    statistic: float
    pvalue: float
    n: int
    test: object
    estimate: Estimate
    null_distribution: np.ndarray | None = field(default=None, compare=False)
    notes: tuple[str, ...] = ()
    has_band: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        if self.null_distribution is None:
            object.__setattr__(self, "has_band", False)

    def __float__(self) -> float:
        return self.pvalue

    def null_band(self, level: float = 0.95) -> Interval:
        """The central range of the statistic were the model calibrated."""
        check_level(level)
        if self.null_distribution is None or not self.has_band:
            raise ValueError(f"{self.test!r} has no band of one statistic: ExactTest has one")
        return central_band(self.null_distribution, level)

    def _statistic_lines(self) -> list[tuple[str, str]]:
        """The estimate, and the statistic where it is another number."""
        estimate = float(self.estimate)
        if self.statistic == estimate:
            return [("statistic", f"{self.estimate.name} = {number(estimate)}")]
        return [("statistic", number(self.statistic)), ("estimate", f"{self.estimate.name} = {number(estimate)}")]

    def to_row(self) -> dict[str, float]:
        """The numbers alone, as one row of a table of results."""
        low, high = self.null_band() if self.has_band else (np.nan, np.nan)
        return {"value": self.statistic, "null_low": low, "null_high": high, "pvalue": self.pvalue}

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON; the draws are summarised by their band."""
        return {
            "schema": SCHEMA,
            "kind": "test",
            "statistic": self.statistic,
            "pvalue": self.pvalue,
            "n": self.n,
            "test": repr(self.test),
            "estimate": self.estimate.to_dict(),
            "null_band": self.null_band().to_dict() if self.has_band else None,
            "n_resamples": None if self.null_distribution is None else len(self.null_distribution),
            "notes": list(self.notes),
        }

    def _lines(self) -> list[tuple[str, str]]:
        drawn = () if self.null_distribution is None else self.null_distribution
        return [
            ("p-value", number(self.pvalue)),
            *self._statistic_lines(),
            *([("if calibrated", f"{self.null_band()} (95 % of {len(drawn):,} resamples)")] if self.has_band else []),
            *([("lens", self.estimate.lens)] if self.estimate.lens else []),
            *(("note", note) for note in self.notes),
            ("n", f"{self.n:,}"),
            ("test", brief(self.test)),
        ]


def central_band(resampled: np.ndarray, level: float) -> Interval:
    """The central range of resampled statistics that one more draw lies in with at least this probability.

    Of M resamples it ends at the ``floor((M + 1) tail)``-th from either end, as the new one is as likely in every gap.

    >>> list(central_band(np.arange(1.0, 100.0), 0.95))
    [2.0, 98.0]
    """
    ordered = np.sort(resampled)
    k = max(1, math.floor((len(ordered) + 1) * (1 - level) / 2 + 1e-9))
    return Interval(float(ordered[k - 1]), float(ordered[-k]), level, "calibrated resamples")
