"""The problem of a report on forecasts of numbers, counts or vectors, and the levels its tests look at."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from calibrant._array import to_numpy
from calibrant.distributions.base import Distribution
from calibrant.distributions.cells import is_whole
from calibrant.distributions.coordinates import dimensions
from calibrant.distributions.ensemble import Ensemble
from calibrant.distributions.quantiles import Quantiles, fan_of
from calibrant.distributions.uniform import Uniform
from calibrant.estimators.base import BaseEstimator
from calibrant.estimators.levels_within import LevelsWithin
from calibrant.estimators.pit import PIT, usual_prerank
from calibrant.estimators.pit_error import PITError
from calibrant.estimators.quantile_cells import CellRedraws, ShareBetween
from calibrant.inference.exact import ExactTest
from calibrant.inference.pool import Pool
from calibrant.reports.level_redraws import LevelRedraws, redraws_of_levels
from calibrant.reports.problem import Problem
from calibrant.results import TestResult

CENTRAL = 0.9
"""The level of the intervals that words speak of."""

WIDTH = 128
"""Multiplications that a pair of forecasts costs the kernel error: so many waves stand for a residual."""


@dataclass(frozen=True, eq=False)
class LevelProblem(Problem):
    """Levels of targets as outcomes of uniform predictions.

    Under the hypothesis the levels of any family are uniform, those of its ensembles too, whose members and target are then
    equally likely to be the target: members are not taken for the whole distribution, as redraws from them would. Where single
    values have a probability, levels are so only over all random shares; given those, they are ``redrawn_from`` the forecasts.
    Quantile forecasts are kept as they are: their errors look at nothing but between which quantiles a target lies, and that is
    what is redrawn.
    """

    redrawn_from: LevelRedraws | None = None

    @property
    def kind(self) -> str:
        """What is predicted."""
        return "levels"

    def rows(self, index: np.ndarray) -> Self:
        """Levels of these rows alone, and what they are redrawn from."""
        return replace(
            super().rows(index), redrawn_from=None if self.redrawn_from is None else self.redrawn_from.rows(index)
        )

    def test(self, estimator: Any, *, two_sided: bool = False, least_resamples: int = 1) -> TestResult:
        """The exact test of an estimator, against levels that calibrated forecasts would show."""
        if self.redrawn_from is None:
            return super().test(estimator, two_sided=two_sided, least_resamples=least_resamples)
        draws = max(self.n_resamples, least_resamples)
        pool = Pool.draw(
            {"": estimator.given(self.predictions, self.weights)},
            self.targets,
            self.redrawn_from,
            draws,
            two_sided=[""] if two_sided else [],
            rng=self.fresh_seeds,
            engine=self.engine,
        )
        estimate = estimator.estimate(self.targets, self.predictions, self.weights)
        how = ExactTest(estimator, draws, "two-sided" if two_sided else "greater")
        return TestResult(float(estimate), pool.pvalue(""), len(self), how, estimate, pool.null(""))

    @property
    def error(self) -> PITError:
        """Of level and of spread."""
        return PITError("kuiper")

    @property
    def within(self) -> BaseEstimator:
        """The share of rows in the part that is looked at: the central one, or between the outer quantiles."""
        return LevelsWithin(CENTRAL) if fan_of(self.predictions) is None else ShareBetween()

    def means(self) -> tuple[float, float]:
        """The part that is looked at, and the share of rows in it."""
        if (fan := fan_of(self.predictions)) is not None:
            share = self.within.estimate(self.targets, fan, self.weights)
            return float(fan.levels[-1] - fan.levels[0]), float(share)
        within = LevelsWithin(CENTRAL).losses(self.targets, self.predictions)
        return CENTRAL, float(np.average(within, weights=self.weights))

    @property
    def kernel_error(self) -> None:
        """None: levels are compared with even ones, whatever was forecast."""
        return None

    @property
    def kernel_width(self) -> int:
        """Never asked for."""
        return 0


@dataclass(frozen=True, eq=False)
class ForecastProblem(Problem):
    """Forecasts of numbers, counts or vectors."""

    @property
    def kind(self) -> str:
        """What is predicted, and how."""
        if dimensions(self.predictions):
            return f"vectors of {dimensions(self.predictions)}"
        return "counts" if is_whole(self.predictions) else "numbers"

    @property
    def is_ensemble(self) -> bool:
        """Whether members stand for the distribution they were drawn from."""
        return isinstance(self.predictions, Ensemble)

    @property
    def fan(self) -> Quantiles | None:
        """The quantiles, where nothing else was forecast."""
        return fan_of(self.predictions)

    @property
    def can_redraw(self) -> bool:
        """Whether whole distributions were forecast, from which outcomes can be redrawn."""
        return not self.is_ensemble and self.fan is None

    @property
    def error(self) -> PITError:
        """That of the levels."""
        return self.levels.error

    def means(self) -> tuple[float, float]:
        """Those of the levels."""
        return self.levels.means()

    @property
    def kernel_width(self) -> int:
        """As many as there are waves."""
        return WIDTH

    @cached_property
    def levels(self) -> LevelProblem:
        """The levels of targets; of vectors, one in all."""
        targets, fan = to_numpy(self.targets), self.fan
        if fan is not None:
            settings = (self.weights, self.n_resamples, self.seeds, self.engine)
            return LevelProblem(targets.astype(np.float64), fan, *settings, CellRedraws.of(fan))
        return self.at(levels_of_targets(targets, self.predictions), redraws_of_levels(targets, self.predictions))

    def at(self, levels: np.ndarray, redrawn_from: LevelRedraws | None) -> LevelProblem:
        """Levels with the settings of this problem."""
        n = len(self)
        uniform = Uniform(np.zeros(n), np.ones(n))
        settings = (self.weights, self.n_resamples, self.seeds, self.engine)
        return LevelProblem(levels, uniform, *settings, redrawn_from)

    def rows(self, index: np.ndarray) -> Self:
        """The problem of these rows alone, their levels as they are."""
        part = super().rows(index)
        object.__setattr__(part, "levels", self.levels.rows(index))
        return part


def levels_of_targets(targets: np.ndarray, predictions: Distribution) -> np.ndarray:
    """One level a row, of vectors too."""
    return PIT(prerank=usual_prerank(predictions)).of(targets, predictions)


def spread_of(problem: ForecastProblem) -> np.ndarray | None:
    """The predicted standard deviation of each row, where there is one and it differs; quantiles alone have none."""
    if problem.fan is not None:
        return None
    std = problem.predictions.std
    if std is NotImplemented:
        return None
    spread = to_numpy(std).astype(np.float64)
    spread = spread if spread.ndim == 1 else spread.mean(axis=1)
    return spread if np.isfinite(spread).all() and spread.min() < spread.max() else None


def coordinate_levels(problem: ForecastProblem) -> list[LevelProblem]:
    """The levels of each coordinate of vectors."""
    levels = PIT().of(to_numpy(problem.targets), problem.predictions)
    return [replace(problem.levels, targets=column) for column in levels.T]
