"""Predictions put right, as the problem of a report: what the same errors and curves make of them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from calibrant._array import to_numpy
from calibrant.inference.coverage import coverage
from calibrant.recalibration.held_out import HeldOut, in_order
from calibrant.reports.class_pictures import reliability_of
from calibrant.reports.class_problem import ClassProblem
from calibrant.reports.forecast_pictures import COVERED
from calibrant.reports.forecast_problem import ForecastProblem, levels_of_targets
from calibrant.reports.model import Picture
from calibrant.reports.problem import Problem
from calibrant.results import Table


def problem_after(problem: Problem, parts: Sequence[HeldOut]) -> Problem:
    """The problem with the predictions of all folds; of forecasts, with the levels of targets in them."""
    if isinstance(problem, ClassProblem):
        return replace(problem, predictions=in_order(parts))
    assert isinstance(problem, ForecastProblem)
    levels, targets = np.empty(len(problem)), to_numpy(problem.targets)
    for part in parts:
        levels[part.rows] = levels_of_targets(targets[part.rows], part.predictions)
    return problem.at(levels)


def claims_of(problem: Problem) -> Table:
    """What was claimed, and what happened: the reliability curve of classes, the coverage of central intervals of forecasts."""
    if isinstance(problem, ClassProblem):
        return reliability_of(problem).tables["curve"]
    levels = problem.levels if isinstance(problem, ForecastProblem) else problem
    table = coverage(levels.targets, levels.predictions, levels=COVERED, sample_weight=levels.weights)
    return Table(predicted=table["level"], **{name: table[name] for name in ("observed", "low", "high")})


def picture_of(problem: Problem, parts: Sequence[HeldOut], name: str) -> Picture:
    """Both curves in one picture."""
    what, short = (
        ("A group of rows with similar predictions: how often what was claimed came true", "observed frequencies")
        if isinstance(problem, ClassProblem)
        else ("Share of outcomes in central intervals of every size", "coverage of central intervals")
    )
    return Picture(
        "before_after",
        "Before and after recalibration",
        f"{what}, before and after {name}, on rows the map has not seen. On the dashed line, claims hold.",
        f"{short.capitalize()} against what was claimed, before and after {name}.",
        {"before": claims_of(problem), "after": claims_of(problem_after(problem, parts))},
    )
