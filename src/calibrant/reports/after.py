"""Predictions put right, as the problem of a report: what the same errors and pictures make of them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from calibrant._array import to_numpy
from calibrant.distributions.quantiles import Quantiles, forecast_at
from calibrant.recalibration.held_out import HeldOut, in_order
from calibrant.reports.class_pictures import reliability_of
from calibrant.reports.class_problem import ClassProblem
from calibrant.reports.forecast_pictures import histogram_of
from calibrant.reports.forecast_problem import ForecastProblem, LevelProblem, levels_of_targets
from calibrant.reports.level_redraws import LevelsOfParts, redraws_of_levels
from calibrant.reports.model import Picture
from calibrant.reports.problem import Problem


def problem_after(problem: Problem, parts: Sequence[HeldOut]) -> Problem:
    """The problem with the predictions of all folds; of forecasts, with the levels of targets in them."""
    if isinstance(problem, ClassProblem):
        return replace(problem, predictions=in_order(parts).checked())  # targets are columns already
    assert isinstance(problem, ForecastProblem)
    if (fan := problem.fan) is not None:
        return _of_quantiles(problem, fan, parts)
    levels, targets = np.empty(len(problem)), to_numpy(problem.targets)
    redraws = []
    for part in parts:
        own = targets[part.rows]
        levels[part.rows] = levels_of_targets(own, part.predictions)
        redraws.append((part.rows, redraws_of_levels(own, part.predictions)))
    is_uniform = all(one is None for _, one in redraws)
    return problem.at(levels, None if is_uniform else LevelsOfParts(tuple(redraws), len(problem)))


def _of_quantiles(problem: ForecastProblem, fan: Quantiles, parts: Sequence[HeldOut]) -> Problem:
    """The problem with new quantiles at the same levels."""
    values = np.empty((len(problem), len(fan.levels)))
    for part in parts:
        values[part.rows] = forecast_at(part.predictions, fan.levels, "recalibration")
    return replace(problem, predictions=type(fan)(values, fan.levels)).levels


def claims_of(problem: Problem) -> Picture:
    """What was claimed, and what happened: the reliability diagram of classes, the histogram of levels of forecasts."""
    if isinstance(problem, ClassProblem):
        return reliability_of(problem)
    levels = problem.levels if isinstance(problem, ForecastProblem) else problem
    assert isinstance(levels, LevelProblem)
    return histogram_of(levels)


def picture_of(problem: Problem, parts: Sequence[HeldOut], name: str) -> Picture:
    """Both sides in one picture."""
    before, after = claims_of(problem), claims_of(problem_after(problem, parts))
    return Picture(
        "before_after",
        "Before and after recalibration",
        f"The predictions as they are, and what {name} makes of rows that it has not seen. {before.caption}",
        f"Before: {before.description} After {name}: {after.description}",
        {
            f"{side}_{key}": table
            for side, picture in (("before", before), ("after", after))
            for key, table in picture.tables.items()
        },
    )
