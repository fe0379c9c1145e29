"""What a reader should know about forecasts before believing the numbers."""

from collections.abc import Sequence

import numpy as np

from calibrant._array import to_numpy
from calibrant.estimators.quantile_cells import judged_at
from calibrant.inference.dependence import Memory
from calibrant.reports.data_notes import duplicated, effective_rows
from calibrant.reports.forecast_problem import ForecastProblem
from calibrant.results import how_many


def forecast_notes(problem: ForecastProblem) -> Sequence[str]:
    """Order, weights, doubles, ends, and what members are taken for."""
    levels, fan = middle_levels(problem), problem.fan
    coords = to_numpy(problem.predictions.coords) if fan is None else fan.quantiles
    found = [] if fan is None else [f"{judged_at(fan).capitalize()}."]
    memory = Memory.of(levels)
    if memory.is_beyond_chance:
        found.append(memory.in_words())
    if problem.is_ensemble:
        found.append(
            "Members are taken as draws from the forecast: under calibration the outcome is one more of them. Scores and "
            "the kernel error are shown without a test."
        )
    if unequal := effective_rows(problem.weights):
        found += [*unequal, "Bands of pictures are those of as many rows of equal weight; p-values are exact."]
    found += duplicated(coords.reshape(len(coords), -1), "forecasts")
    found += _repeated(to_numpy(problem.targets), problem.kind) if fan is None else []
    outside = int(((levels <= 0) | (levels >= 1)).sum())
    if outside:
        found.append(
            f"{how_many(outside, 'outcome lies where its', 'outcomes lie where their')} forecast has no probability at all."
        )
    return found


def middle_levels(problem: ForecastProblem) -> np.ndarray:
    """The level of each outcome; of quantile forecasts, the middle of what is known of it."""
    if problem.fan is None:
        return to_numpy(problem.levels.targets)
    low, high = problem.fan.levels_around(to_numpy(problem.levels.targets))
    return (low + high) / 2


def _repeated(targets: np.ndarray, kind: str) -> list[str]:
    """Whether outcomes of a continuous kind repeat, which rounding or limits of a gauge explain."""
    if kind != "numbers" or targets.ndim != 1:
        return []
    values, counts = np.unique(targets, return_counts=True)
    most = int(np.argmax(counts))
    if counts[most] <= max(2, 0.01 * len(targets)):
        return []
    share = 100 * counts[most] / len(targets)
    return [f"{share:.1f} % of outcomes are {values[most]:g}: a forecast without single values cannot foresee that."]
