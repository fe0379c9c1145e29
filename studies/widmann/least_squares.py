"""A straight line through a bent, unevenly scattered cloud: figures 1, 4 and 5 of Widmann, Lindsten & Zachariah (2021).

Targets are ``sin(pi x) + |1 + x| e`` with normal e of standard deviation 0.15 and even x between -1 and 1. Least squares
predict a normal distribution of the same spread everywhere. Over all rows its quantiles are about right: their curve stays
within the grey band, which holds 95 % of the curves of calibrated models. The predictions are not right, and tests of
calibration say so, the exact one louder than the published bootstrap.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Self

import numpy as np

from calibrant import ExactTest, Normal
from calibrant.inference import BootstrapTest
from studies.widmann.data import Sample, least_squares
from studies.widmann.models import OF_NORMALS

NOISE = 0.15
N_RESAMPLES = 100_000
"""Of the bootstrap, as published."""

N_RESAMPLES = 9_999
"""Of the exact test."""


@dataclass(frozen=True)
class Line:
    """A straight line with one standard deviation for all rows.

    >>> line = Line.fit(Sample(np.array([0.0, 1.0, 2.0]), np.array([1.0, 2.0, 6.0])))
    >>> round(line.intercept, 12), round(line.slope, 12), round(line.sd**2, 12)
    (0.5, 2.5, 0.75)
    """

    intercept: float
    slope: float
    sd: float

    @classmethod
    def fit(cls, sample: Sample) -> Self:
        """Least squares; the deviation is that of the residuals, divided by n - 1."""
        columns = np.stack([np.ones_like(sample.x), sample.x], axis=1)
        intercept, slope = np.linalg.lstsq(columns, sample.y)[0]
        residuals = sample.y - intercept - slope * sample.x
        return cls(float(intercept), float(slope), float(residuals.std(ddof=1)))

    def predict(self, x: np.ndarray) -> Normal:
        """The normal distributions of the targets at x."""
        return Normal(self.intercept + self.slope * x, self.sd)


def truth(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the targets at x."""
    return np.sin(np.pi * x), NOISE * np.abs(1 + x)


def quantile_curve(sample: Sample, line: Line) -> np.ndarray:
    """The predicted probabilities of less than what happened, in order: a share i / n of rows lies below the i-th.

    >>> quantile_curve(Sample(np.zeros(2), np.array([1.0, 0.0])), Line(0.0, 0.0, 1.0)).round(4)
    array([0.5   , 0.8413])
    """
    return np.sort(line.predict(sample.x).cdf(sample.y))


def largest_gap(curve: np.ndarray) -> float:
    """The distance of Kolmogorov between the curve and the diagonal.

    >>> largest_gap(np.array([0.1, 0.5]))
    0.5
    """
    shares = np.arange(len(curve) + 1) / len(curve)
    return float(max(np.max(shares[1:] - curve), np.max(curve - shares[:-1])))


@cache
def band(n: int, level: float = 0.95) -> float:
    """How far the curve of a calibrated model stays from the diagonal with this probability.

    >>> round(band(50), 4)
    0.1884
    """
    from scipy.stats import kstwo

    return float(kstwo.ppf(level, n))


def rows(seed: int) -> list[dict[str, Any]]:
    """What is found, what there is to compare it with, and how much of the allowed difference is used up."""
    from scipy.stats import kstwo

    case = least_squares()
    sample, line = case["validation"], Line.fit(case["train"])
    predictions, gap = line.predict(sample.x), largest_gap(quantile_curve(sample, line))
    bootstrap = BootstrapTest(OF_NORMALS, N_RESAMPLES)(sample.y, predictions, rng=seed)
    found = {
        "intercept": line.intercept,
        "slope": line.slope,
        "standard deviation": line.sd,
        "SKCE (unbiased)": bootstrap.estimate.value,
        "SKCE (biased)": replace(OF_NORMALS, unbiased=False)(sample.y, predictions).value,
        "test statistic": bootstrap.statistic,
        "p-value": bootstrap.pvalue,
        "p-value of the exact test": ExactTest(OF_NORMALS, N_RESAMPLES)(sample.y, predictions, rng=seed).pvalue,
        "largest gap of quantiles": gap,
        "p-value of the gap": float(kstwo.sf(gap, len(sample.y))),
    }
    known = {**case["independent"], **case["published"]}
    return [_row(name, value, known.get(name, np.nan)) for name, value in found.items()]


def _row(name: str, value: float, expected: float) -> dict[str, Any]:
    """Computed numbers may differ by rounding; a p-value by four standard errors of two runs of as many draws."""
    noise = float(np.sqrt(2 * expected * (1 - expected) / N_RESAMPLES)) if name == "p-value" else np.nan
    allowed = 4 * noise if name == "p-value" else 1e-9 * abs(expected)
    return {
        "experiment": "least squares",
        "data": "train" if name in ("intercept", "slope", "standard deviation") else "validation",
        "iteration": np.nan,
        "model": "line",
        "quantity": name,
        "value": value,
        "low": value,
        "high": value,
        "expected": expected,
        "difference": abs(value - expected) / (1 if name == "p-value" else abs(expected)),
        "part": abs(value - expected) / allowed,
    }
