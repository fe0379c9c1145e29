"""What a report on forecasts of numbers, counts and vectors says and shows."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from calibrant._validate import InputError
from calibrant.distributions.coordinates import dimensions
from calibrant.estimators.base import BaseEstimator
from calibrant.estimators.crps import CRPS
from calibrant.estimators.ence import ENCE
from calibrant.estimators.energy_score import EnergyScore
from calibrant.estimators.levels_within import LevelsWithin
from calibrant.estimators.scores import LogLoss, Score
from calibrant.inference.coverage import coverage
from calibrant.inference.dependence import Memory
from calibrant.inference.pit_histogram import histogram_table
from calibrant.reports.forecast_problem import CENTRAL, ForecastProblem, coordinate_levels, spread_of
from calibrant.reports.forecast_verdict import judge_forecasts
from calibrant.reports.model import KeyNumber, Picture, Section
from calibrant.reports.numbers import normal_interval, number_of
from calibrant.reports.outline import Outline, tables_of
from calibrant.reports.slices import by_column, table_of_tests
from calibrant.typing import ArrayLike

BINS = 20
"""Bars of the histogram of levels."""

COVERED = tuple(np.round(np.arange(0.05, 1.0, 0.05), 2).tolist())
"""Levels of the intervals whose coverage is drawn."""

MEANINGS = {
    "levels": "How far the levels of outcomes in their forecasts are from evenly spread, as the largest gap between the "
    "two, up and down.",
    "within": f"Share of outcomes between the {50 - 50 * CENTRAL:g} % and the {50 + 50 * CENTRAL:g} % quantile of their "
    f"forecast; {100 * CENTRAL:g} % if the forecast is as wide as it should be.",
    "kernel": "How far whole forecasts are from what happened, given what was forecast, with no levels to choose. "
    "Unbiased: a calibrated forecast shows values around zero.",
    "crps": "Mean distance of the forecast from what happened, in its unit; smaller is better.",
    "energy": "Mean distance of the forecast from what happened, over all coordinates; smaller is better.",
    "log": "Mean negative log density of what happened, in nats; smaller is better.",
}


def outline_of_forecasts(problem: ForecastProblem, by: Mapping[str, ArrayLike]) -> Outline:
    """The parts of the report."""
    if problem.weights is not None:
        raise InputError(
            "reports on forecasts take no sample_weight so far: leave it out, or use estimators one by one"
        )
    spread, d = spread_of(problem), dimensions(problem.predictions)
    pictures: list[tuple[str, Callable[[], Picture]]] = [("Levels", partial(_levels, problem))]
    if not d:
        pictures.append(("Coverage", partial(_coverage, problem)))
    if spread is not None:
        pictures.append(("Spread", partial(_spread, problem)))
    sections: list[tuple[str, Callable[[], Section]]] = []
    if d:
        sections.append(("Each coordinate", partial(_coordinates, problem)))
    if spread is not None:
        sections.append(("By predicted spread", partial(by_column, problem.levels, "predicted spread", spread)))
    return Outline(
        subject=repr(problem.predictions).strip("<>").partition(":")[0],
        numbers=_numbers(problem),
        pictures=pictures,
        sections=[*sections, *tables_of(problem.levels, by)],
        judge=partial(judge_forecasts, problem),
        notes=_notes(problem),
    )


def _numbers(problem: ForecastProblem) -> list[tuple[str, Callable[[], KeyNumber]]]:
    levels, kernel = problem.levels, problem.kernel_error
    found = [
        ("Error of levels (PIT)", MEANINGS["levels"], levels.error, "percent"),
        (f"Within the central {100 * CENTRAL:g} %", MEANINGS["within"], LevelsWithin(CENTRAL), "percent"),
    ]
    parts: list[tuple[str, Callable[[], KeyNumber]]] = [(m[0], partial(number_of, levels, *m)) for m in found]  # type: ignore[arg-type]
    if kernel is not None:
        label = "Kernel error (SKCE)"
        parts.append((label, partial(_measured, problem, label, MEANINGS["kernel"], kernel)))
    for label, meaning, score in _scores(problem):
        parts.append((label, partial(_measured, problem, label, MEANINGS[meaning], score)))
    return parts


def _scores(problem: ForecastProblem) -> list[tuple[str, str, Score]]:
    """Scores that these predictions have."""
    is_vector = dimensions(problem.predictions) > 0
    first: tuple[str, str, Score] = ("Energy score", "energy", EnergyScore()) if is_vector else ("CRPS", "crps", CRPS())
    try:
        LogLoss().losses(problem.targets[:1], problem.predictions[:1])
    except InputError:  # no density
        return [first]
    return [first, ("Log loss", "log", LogLoss())]


def _measured(problem: ForecastProblem, label: str, meaning: str, estimator: BaseEstimator) -> KeyNumber:
    """With its test; but members of an ensemble are draws, and no distribution to redraw from."""
    if not problem.is_ensemble:
        return number_of(problem, label, meaning, estimator, "number")
    estimate = estimator.estimate(problem.targets, problem.predictions, None)
    interval, resolved = normal_interval(estimate), repr(estimate.estimator)
    return KeyNumber(label, meaning, float(estimate), "number", interval, None, None, resolved)


def _levels(problem: ForecastProblem) -> Picture:
    counts = np.histogram(problem.levels.targets, BINS, (0, 1))[0]
    return Picture(
        "levels",
        "Where outcomes lie in their forecasts",
        "Each bar is the share of outcomes at that level of their forecast. A calibrated forecast has bars of one height, "
        "all within the band in nineteen of twenty data sets. High ends: the forecast is too sure. A hump: too timid. A "
        "slope: too low where it rises, too high where it falls.",
        f"Histogram of the levels of outcomes in their forecasts, in {BINS} bins.",
        {"levels": histogram_table(counts / len(problem), len(problem), 0.95)},
    )


def _coverage(problem: ForecastProblem) -> Picture:
    rows = problem.levels if problem.is_ensemble else problem  # intervals of ensembles end between members
    table = coverage(rows.targets, rows.predictions, levels=COVERED)
    return Picture(
        "coverage",
        "What intervals promise, and what they hold",
        "Share of outcomes in central intervals of every size, with its 95 % confidence interval. Below the dashed line, "
        "intervals are too narrow.",
        "Observed against expected coverage of central intervals.",
        {"coverage": table},
    )


def _spread(problem: ForecastProblem) -> Picture:
    table = ENCE(10).estimate(problem.targets, problem.predictions, None).table
    assert table is not None
    return Picture(
        "spread",
        "How wide forecasts are, and how far off",
        "Root mean squared error of the forecast mean against the predicted standard deviation, in groups of equally many "
        "rows. Above the dashed line, the forecast is surer than it should be.",
        "Observed against predicted spread.",
        {"spread": table},
    )


def _coordinates(problem: ForecastProblem) -> Section:
    parts = coordinate_levels(problem)
    names = [f"coordinate {i}" for i in range(len(parts))]
    table = table_of_tests(names, [len(problem)] * len(parts), parts, hypotheses=len(parts))
    return Section("Each coordinate", "coordinate", "p-values allow for their number (Holm).", table)


def _notes(problem: ForecastProblem) -> list[str]:
    """What a reader should know about the data before believing the numbers."""
    notes = []
    memory = Memory.of(problem.levels.targets)
    if memory.is_beyond_chance:
        notes.append(memory.in_words())
    if problem.is_ensemble:
        notes.append(
            "Members are taken as draws from the forecast: under calibration the outcome is one more of them. Scores and "
            "the kernel error are shown without a test."
        )
    return notes
