"""Levels that calibrated forecasts would show, with the same random shares as those of the outcomes."""

from dataclasses import dataclass

import numpy as np

from calibrant._array import to_numpy
from calibrant.distributions.base import Distribution
from calibrant.distributions.ensemble import Ensemble
from calibrant.estimators.pit import FamilyLevels, randomised
from calibrant.inference.pool import Redrawable
from calibrant.reports.forecast_problem import ForecastProblem


@dataclass(frozen=True, eq=False)
class RedrawnLevels:
    """Levels of outcomes redrawn from forecasts in which single values have a probability of their own.

    The random shares that make levels of them are drawn once, with ``seed``. Given these shares levels are not uniform: of 200
    counts of mean 0.3 a test against uniform levels rejects calibrated forecasts in 2 to 17 % of data sets, by the shares.
    """

    predictions: Distribution
    seed: int = 0

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Levels ``(size, n)``."""
        return randomised(FamilyLevels(self.predictions)(self.predictions.sample(rng, size)), self.seed)


@dataclass(frozen=True, eq=False)
class SwappedLevels:
    """Levels of outcomes that change places with members of their ensembles, each with the same chance.

    ``levels``, ``(n, m + 1)``, are those that each of the m members and the outcome would have, in place of the outcome.
    """

    levels: np.ndarray

    @classmethod
    def of(cls, targets: np.ndarray, members: np.ndarray, seed: int = 0) -> "SwappedLevels":
        """From outcomes ``(n,)`` and members ``(n, m)``, ties or not.

        >>> SwappedLevels.of(np.array([2.5]), np.array([[1.0, 2.0, 3.0]])).levels.round(3)
        array([[0.222, 0.472, 0.972, 0.722]])
        """
        from scipy.stats import rankdata

        pool = np.column_stack([members, targets])
        least, most = (rankdata(pool, method, axis=1) for method in ("min", "max"))
        share = np.random.default_rng([seed, 1]).random(len(pool))[:, None]  # as of the outcomes
        return cls((least - 1 + share * (most - least + 1)) / pool.shape[1])

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Levels ``(size, n)``."""
        n, m = self.levels.shape
        return self.levels[np.arange(n), rng.integers(0, m, (size, n))]


def redraws_of_levels(problem: ForecastProblem) -> Redrawable:
    """What levels are redrawn from: uniform numbers where no single value has a probability."""
    predictions = problem.predictions
    if isinstance(predictions, Ensemble):
        if predictions.is_vector or not predictions.is_even:
            return problem.levels.predictions
        return SwappedLevels.of(to_numpy(problem.targets), to_numpy(predictions.members))
    if type(predictions).below is Distribution.below or problem.kind.startswith("vectors"):
        return problem.levels.predictions
    return RedrawnLevels(predictions)
