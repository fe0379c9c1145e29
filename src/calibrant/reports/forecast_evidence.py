"""The evidence on forecasts: levels against even ones, and what redrawn outcomes of the forecasts would show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from calibrant._array import to_numpy
from calibrant.distributions.coordinates import dimensions
from calibrant.distributions.ensemble import Ensemble
from calibrant.estimators.base import BaseEstimator
from calibrant.inference.multiplicity import holm
from calibrant.reports.evidence import Evidence, gather
from calibrant.reports.forecast_problem import ForecastProblem, coordinate_levels
from calibrant.reports.slices import Slicing, told_apart
from calibrant.results import TestResult, number

AUTOMATIC = ("predicted spread", "predicted mean", "middle quantile")
"""What quarters of the rows are made by; columns of the caller may be called so, too."""


@dataclass(frozen=True, eq=False)
class ForecastEvidence:
    """Levels, redrawn as those of calibrated forecasts; outcomes, redrawn from their forecasts; and each coordinate of vectors.

    Members of an ensemble, and quantiles, are no distribution to redraw from: then ``outcomes`` is ``None``. The parts
    are put together by Holm's method, which holds however they depend.
    """

    levels: Evidence
    groups: tuple[Slicing, ...]
    outcomes: Evidence | None
    coordinates: tuple[TestResult, ...] = ()

    @property
    def pvalue(self) -> float:
        """Of everything together."""
        return min(1.0, float(holm(self._parts(self.levels.pvalue)).min()))

    @property
    def pvalue_of_all_rows(self) -> float:
        """Without the slices."""
        return min(1.0, float(holm(self._parts(self.levels.pvalue_of_all_rows)).min()))

    def _parts(self, levels: float) -> list[float]:
        outcomes = [] if self.outcomes is None else [self.outcomes.pvalue]
        single = [test.pvalue for test in self.coordinates]
        return [levels, *outcomes, *([min(1.0, len(single) * min(single))] if single else [])]

    def in_words(self, n: int) -> str:
        """How the p-value of all tests was made."""
        count = self.levels.n_statistics + (0 if self.outcomes is None else self.outcomes.n_statistics)
        count += len(self.coordinates)
        more = ", Holm over their kinds" if len(self._parts(0.0)) > 1 else ""
        redraws = f"{self.levels.n_resamples:,} redraws"
        return f"aggregated exact tests of {count} statistics with {redraws}{more}, n = {n:,}"


def gather_forecasts(
    problem: ForecastProblem,
    of_levels: Mapping[str, BaseEstimator],
    of_outcomes: Mapping[str, BaseEstimator],
    slicings: Sequence[Slicing],
) -> ForecastEvidence:
    """Redraw levels, outcomes and coordinates."""
    groups = groups_of(problem)
    found = gather(problem.levels, of_levels, [*groups, *slicings], redrawn_from=problem.levels.redrawn_from)
    levels = Evidence(found.pool, found.single, tuple(group.key for group in groups), tuple(slicings))
    outcomes = gather(problem, of_outcomes, ()) if problem.can_redraw else None
    coordinates: tuple[TestResult, ...] = ()
    if dimensions(problem.predictions):
        coordinates = tuple(part.test(part.error) for part in coordinate_levels(problem))
    return ForecastEvidence(levels, groups, outcomes, coordinates)


def groups_of(problem: ForecastProblem) -> tuple[Slicing, ...]:
    """Quarters of the rows by how wide, and by how high, their forecasts are, where that differs.

    Few members that lie close by chance leave the outcome outside more often. What treats outcome and members alike leaves
    their order to chance; so quarters of ensembles are by members and outcome together, good for a test but not to be shown.
    """
    if len(problem) < 40 or dimensions(problem.predictions):
        return ()
    if (fan := problem.fan) is not None:  # what was forecast, and no moments of what lies between
        q = fan.quantiles
        axes = {AUTOMATIC[0]: _telling(q[:, -1] - q[:, 0]), AUTOMATIC[2]: _telling(q[:, q.shape[1] // 2])}
    else:
        axes = {AUTOMATIC[0]: _axis(problem, "std"), AUTOMATIC[1]: _axis(problem, "mean")}
    return tuple(_quarters(name, axis, problem.weights) for name, axis in axes.items() if axis is not None)


def _axis(problem: ForecastProblem, name: str) -> np.ndarray | None:
    predictions = problem.predictions
    if isinstance(predictions, Ensemble):
        if not predictions.is_even or predictions.is_vector:
            return None
        all_values = np.column_stack([to_numpy(predictions.members), to_numpy(problem.targets)])
        axis = all_values.std(axis=1) if name == "std" else all_values.mean(axis=1)
    else:
        found = getattr(predictions, name, NotImplemented)
        if found is NotImplemented:
            return None
        axis = to_numpy(found).astype(np.float64)
    return _telling(axis)


def _telling(axis: np.ndarray) -> np.ndarray | None:
    """The numbers where there is one a row and they differ."""
    return axis if axis.ndim == 1 and np.isfinite(axis).all() and len(np.unique(axis)) > 3 else None


def _quarters(name: str, axis: np.ndarray, weights: np.ndarray | None) -> Slicing:
    """Those that have a row with weight."""
    cell = np.searchsorted(np.quantile(axis, [0.25, 0.5, 0.75]), axis, side="left")
    used = [np.flatnonzero(cell == i) for i in np.unique(cell)]
    used = [rows for rows in used if weights is None or weights[rows].any()]
    names = [f"{number(float(axis[rows].min()))} to {number(float(axis[rows].max()))}" for rows in used]
    return Slicing(f"quarters by {name}", name, told_apart(names), tuple(used))
