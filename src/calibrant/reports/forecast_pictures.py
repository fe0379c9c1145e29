"""The pictures of a report on forecasts, each with how to read it and what is seen."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from calibrant.distributions.coordinates import dimensions
from calibrant.estimators.ence import ENCE
from calibrant.inference.coverage import coverage
from calibrant.inference.pit_histogram import histogram_table
from calibrant.reports.forecast_evidence import ForecastEvidence
from calibrant.reports.forecast_problem import ForecastProblem, LevelProblem, spread_of
from calibrant.reports.model import Picture
from calibrant.reports.problem import Problem

BINS = 20
"""Bars of the histogram of levels."""

COVERED = tuple(np.round(np.arange(0.05, 1.0, 0.05), 2).tolist())
"""Levels of the intervals whose coverage is drawn."""


def forecast_pictures(problem: ForecastProblem) -> Sequence[tuple[str, Callable[[ForecastEvidence], Picture]]]:
    """The pictures by the names of their steps."""
    found = [("Levels", _levels)]
    if not dimensions(problem.predictions):
        found.append(("Coverage", _coverage))
    if spread_of(problem) is not None:
        found.append(("Spread", _spread))
    return [(name, partial(_made, make, problem)) for name, make in found]


def _made(make: Callable[[ForecastProblem], Picture], problem: ForecastProblem, _evidence: ForecastEvidence) -> Picture:
    return make(problem)


def _levels(problem: ForecastProblem) -> Picture:
    return histogram_of(problem.levels)


def _coverage(problem: ForecastProblem) -> Picture:
    return coverage_of(problem.levels if problem.is_ensemble else problem)  # intervals of ensembles end between members


def histogram_of(levels: LevelProblem) -> Picture:
    """The histogram of levels, with the band of even ones."""
    weights = np.ones(len(levels)) if levels.weights is None else levels.weights
    shares = np.histogram(levels.targets, BINS, (0, 1), weights=weights)[0] / weights.sum()
    rows = max(1, round(float(weights.sum() ** 2 / (weights**2).sum())))  # of equal weight, that tell as much
    return Picture(
        "levels",
        "Where outcomes lie in their forecasts",
        "Each bar is the share of outcomes at that level of their forecast. A calibrated forecast has bars of one height, "
        "all within the band in nineteen of twenty data sets. High ends: the forecast is too sure. A hump: too timid. A "
        "slope: too low where it rises, too high where it falls.",
        f"Histogram of the levels of outcomes in their forecasts, in {BINS} bins.",
        {"levels": histogram_table(shares, rows, 0.95)},
    )


def coverage_of(rows: Problem) -> Picture:
    """The coverage of central intervals of every size."""
    table = coverage(rows.targets, rows.predictions, levels=COVERED, sample_weight=rows.weights)
    return Picture(
        "coverage",
        "What intervals promise, and what they hold",
        "Share of outcomes in central intervals of every size, with its 95 % confidence interval. Below the dashed line, "
        "intervals are too narrow.",
        "Observed against expected coverage of central intervals.",
        {"coverage": table},
    )


def _spread(problem: ForecastProblem) -> Picture:
    table = ENCE(10).estimate(problem.targets, problem.predictions, problem.weights).table
    assert table is not None
    return Picture(
        "spread",
        "How wide forecasts are, and how far off",
        "Root mean squared error of the forecast mean against the predicted standard deviation, in groups of equally many "
        "rows. Above the dashed line, the forecast is surer than it should be.",
        "Observed against predicted spread.",
        {"spread": table},
    )
