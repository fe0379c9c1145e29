"""The problem of a report on forecasts, and the PIT values that calibrated forecasts would show."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np

from calibrant._array import to_numpy
from calibrant.distributions.base import Distribution
from calibrant.distributions.continuous.finite_interval import Uniform
from calibrant.distributions.empirical.ensemble import Ensemble
from calibrant.distributions.empirical.quantiles import Quantiles, fan_of
from calibrant.distributions.multivariate import dimensions
from calibrant.distributions.quadrature import is_whole
from calibrant.estimators.base import BaseEstimator
from calibrant.estimators.cluster_skewness import correlation_within
from calibrant.estimators.forecast_errors.pit import PIT, pit_of, shares_of, usual_prerank
from calibrant.estimators.forecast_errors.pit_error import CentralCoverage, PITError
from calibrant.estimators.forecast_errors.quantile_cells import CellResamples, ShareBetween
from calibrant.estimators.forecast_errors.spread import without_noise
from calibrant.inference.exact_tests.aggregated import Pool
from calibrant.inference.exact_tests.exact_test import ExactTest
from calibrant.reports.core.problem import ReportProblem
from calibrant.results import TestResult


class PITSource(Protocol):
    """What PIT values are resampled from where uniform numbers would be wrong."""

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """PIT values ``(size, n)``."""
        ...

    def rows(self, index: np.ndarray) -> Self:
        """Those of some rows, with the shares that these have."""
        ...


@dataclass(frozen=True, eq=False)
class ResampledPIT:
    """PIT values of outcomes resampled from forecasts in which single values have a probability of their own.

    The random ``shares`` that make PIT values of them are drawn once. Given these they are not uniform: of 200 counts of
    mean 0.3 a test against uniform PIT values rejects calibrated forecasts in 2 to 17 % of data sets, by the shares.
    """

    predictions: Distribution
    shares: np.ndarray

    @classmethod
    def of(cls, predictions: Distribution, seed: int = 0) -> Self:
        """With the shares of this seed."""
        return cls(predictions, shares_of(len(predictions), seed))

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """PIT values ``(size, n)``."""
        low, high = pit_of(self.predictions, self)(self.predictions.sample(rng, size))
        return low + self.shares * (high - low)

    def rows(self, index: np.ndarray) -> Self:
        """Of these forecasts."""
        return type(self)(self.predictions[index], self.shares[index])


@dataclass(frozen=True, eq=False)
class SwappedPIT:
    """PIT values of outcomes that change places with members of their ensembles, each with the same chance.

    ``pit``, ``(n, m + 1)``, are those that each of the m members and the outcome would have, in place of the outcome.
    """

    pit: np.ndarray

    @classmethod
    def of(cls, targets: np.ndarray, members: np.ndarray, seed: int = 0) -> Self:
        """From outcomes ``(n,)`` and members ``(n, m)``, ties or not.

        >>> SwappedPIT.of(np.array([2.5]), np.array([[1.0, 2.0, 3.0]])).pit.round(3)
        array([[0.222, 0.472, 0.972, 0.722]])
        """
        from scipy.stats import rankdata

        pool = np.column_stack([members, targets])
        least, most = (rankdata(pool, method, axis=1) for method in ("min", "max"))
        share = shares_of(len(pool), seed)[:, None]
        return cls((least - 1 + share * (most - least + 1)) / pool.shape[1])

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """PIT values ``(size, n)``."""
        n, m = self.pit.shape
        return self.pit[np.arange(n), rng.integers(0, m, (size, n))]

    def rows(self, index: np.ndarray) -> Self:
        """Of these ensembles."""
        return type(self)(self.pit[index])


@dataclass(frozen=True, eq=False)
class PITOfParts:
    """PIT values of rows in parts, each with its own forecasts, as of folds; uniform where a part has nothing else."""

    parts: tuple[tuple[np.ndarray, PITSource | None], ...]
    n: int

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """PIT values ``(size, n)``."""
        pit = np.empty((size, self.n))
        for rows, resamples in self.parts:
            pit[:, rows] = rng.random((size, len(rows))) if resamples is None else resamples.sample(rng, size)
        return pit

    def rows(self, index: np.ndarray) -> Self:
        """Of these rows, wherever they are."""
        found: list[tuple[np.ndarray, PITSource | None]] = []
        for rows, resamples in self.parts:
            place = np.full(self.n, -1)
            place[rows] = np.arange(len(rows))
            here = np.flatnonzero(place[index] >= 0)
            found.append((here, None if resamples is None else resamples.rows(place[index[here]])))
        return type(self)(tuple(found), len(index))


def resamples_of_pit(targets: np.ndarray, predictions: Distribution) -> PITSource | None:
    """What PIT values are resampled from; ``None`` where no single value has a probability, and they are uniform."""
    if dimensions(predictions):
        return None
    if isinstance(predictions, Ensemble):
        return SwappedPIT.of(targets, to_numpy(predictions.members)) if predictions.is_even else None
    return None if type(predictions).below is Distribution.below else ResampledPIT.of(predictions)


CENTRAL = 0.9
"""The level of the intervals that words speak of."""

WIDTH = 128
"""Multiplications that a pair of forecasts costs the kernel error: so many features stand for a residual."""


@dataclass(frozen=True, eq=False)
class PITProblem(ReportProblem):
    """PIT values of targets as outcomes of uniform predictions.

    Under the hypothesis the PIT values of any family are uniform, those of its ensembles too, whose members and target are then
    equally likely to be the target: members are not taken for the whole distribution, as resamples from them would. Where single
    values have a probability, levels are so only over all random shares; given those, they are ``resampled_from`` the forecasts.
    Quantile forecasts are kept as they are: their errors look at nothing but between which quantiles a target lies, and that is
    what is resampled.
    """

    resampled_from: PITSource | None = None

    @property
    def kind(self) -> str:
        """What is predicted."""
        return "PIT values"

    def rows(self, index: np.ndarray) -> Self:
        """PIT values of these rows alone, and what they are resampled from."""
        return replace(
            super().rows(index), resampled_from=None if self.resampled_from is None else self.resampled_from.rows(index)
        )

    def test(self, estimator: Any, *, two_sided: bool = False, least_resamples: int = 1) -> TestResult:
        """The exact test of an estimator, against PIT values that calibrated forecasts would show."""
        if self.resampled_from is None or self.clusters is not None:
            return super().test(estimator, two_sided=two_sided, least_resamples=least_resamples)
        draws = max(self.n_resamples, least_resamples)
        pool = Pool.draw(
            {"": estimator.given(self.predictions, self.weights)},
            self.targets,
            self.resampled_from,
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
        return CentralCoverage(CENTRAL) if fan_of(self.predictions) is None else ShareBetween()

    def means(self) -> tuple[float, float]:
        """The part that is looked at, and the share of rows in it."""
        if (fan := fan_of(self.predictions)) is not None:
            share = self.within.estimate(self.targets, fan, self.weights)
            return float(fan.levels[-1] - fan.levels[0]), float(share)
        within = CentralCoverage(CENTRAL).losses(self.targets, self.predictions)
        return CENTRAL, float(np.average(within, weights=self.weights))

    @cached_property
    def alike(self) -> float:
        """Of the PIT values."""
        assert self.clusters is not None
        u, fan = to_numpy(self.targets), fan_of(self.predictions)
        residuals = (u if fan is None else np.mean(fan.levels_around(u), axis=0)) - 0.5
        w = np.ones(len(u)) if self.weights is None else self.weights
        return correlation_within(w * residuals, w**2 / 12, self.clusters)

    @property
    def kernel_error(self) -> None:
        """None: PIT values are compared with even ones, whatever was forecast."""
        return None

    @property
    def kernel_width(self) -> int:
        """Never asked for."""
        return 0


@dataclass(frozen=True, eq=False)
class ForecastProblem(ReportProblem):
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
    def can_resample(self) -> bool:
        """Whether whole distributions were forecast, from which outcomes can be resampled."""
        return not self.is_ensemble and self.fan is None

    @property
    def error(self) -> PITError:
        """That of the levels."""
        return self.pit.error

    @property
    def judged(self) -> PITProblem:
        """Its PIT values."""
        return self.pit

    def means(self) -> tuple[float, float]:
        """Those of the levels."""
        return self.pit.means()

    @property
    def alike(self) -> float:
        """That of the PIT values."""
        return self.pit.alike

    @property
    def kernel_width(self) -> int:
        """As many as there are features."""
        return WIDTH

    @cached_property
    def pit(self) -> PITProblem:
        """The PIT values of targets; of vectors, one in all."""
        targets, fan = to_numpy(self.targets), self.fan
        if fan is not None:
            settings = (self.weights, self.n_resamples, self.seeds, self.engine)
            values = targets.astype(np.float64)
            return PITProblem(values, fan, *settings, CellResamples.of(fan), clusters=self.clusters)
        return self.at(pit_of_targets(targets, self.predictions), resamples_of_pit(targets, self.predictions))

    def at(self, pit: np.ndarray, resampled_from: PITSource | None) -> PITProblem:
        """PIT values with the settings of this problem."""
        n = len(self)
        uniform = Uniform(np.zeros(n), np.ones(n))
        settings = (self.weights, self.n_resamples, self.seeds, self.engine)
        return PITProblem(pit, uniform, *settings, resampled_from, clusters=self.clusters)

    def rows(self, index: np.ndarray) -> Self:
        """The problem of these rows alone, their PIT values as they are."""
        part = super().rows(index)
        object.__setattr__(part, "pit", self.pit.rows(index))
        return part


def pit_of_targets(targets: np.ndarray, predictions: Distribution) -> np.ndarray:
    """One PIT value per row, of vectors too."""
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
    if not np.isfinite(spread).all():
        return None
    alike = without_noise(spread)
    return spread if alike.min() < alike.max() else None


def coordinate_pit(problem: ForecastProblem) -> list[PITProblem]:
    """The PIT values of each coordinate of vectors."""
    pit = PIT().of(to_numpy(problem.targets), problem.predictions)
    return [replace(problem.pit, targets=column) for column in pit.T]
