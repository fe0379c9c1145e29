"""What estimators share: the checked call, and how a statistic behaves once the predictions are fixed."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from calibrant._clusters import Clusters
from calibrant._compiled.choice import Account, accounted
from calibrant._tasks import mapping
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.empirical.quantiles import Quantiles
from calibrant.distributions.reading.conversion import as_clustered_problem
from calibrant.estimators.signs import BY_BOOTSTRAP, WITHHELD, no_signs, without_limits
from calibrant.results import Estimate
from calibrant.typing import Array, ArrayLike, Engine

Statistic: TypeAlias = Callable[[np.ndarray], np.ndarray]
"""Targets of m resamples, ``(m, n, ...)``, to the m values of a statistic."""


SINGLE = "every row is a cluster of its own: rows are taken as independent"
"""What is said where clusters make no difference."""

LINES = "rests on straight lines between the quantiles, which were not forecast"
"""What is said of numbers that need whole distributions, where quantiles alone were forecast."""


class BaseEstimator(ABC):
    """A frozen value with the settings of an estimator; calling it checks the input and does the work.

    Subclasses are frozen dataclasses that write :meth:`estimate`. Those that can reuse work between resamples of the
    targets also write :meth:`given`, which is all a test needs to be fast.
    """

    least: ClassVar[float] = -np.inf
    """The smallest value the estimator can take."""

    most: ClassVar[float] = np.inf
    """The largest."""

    rests_on_levels: ClassVar[bool] = False
    """Whether of quantile forecasts it uses nothing but between which of them a target lies, so that it can be tested."""

    reads_quantiles: ClassVar[bool] = False
    """Whether it uses quantiles at the levels that it is asked for, and nothing between them."""

    resampling: ClassVar[str | None] = (
        "resampled rows repeat, and an error that is no mean over rows takes the repetition for miscalibration"
    )
    """Why resampling of rows gives no interval that holds; ``None`` for smooth functions of means over rows, which it suits."""

    bias_cancels: ClassVar[bool] = False
    """Whether what bias it has is the same for two models alike, so that resamples show how far these lie apart."""

    def __call__(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        engine: Engine | None = None,
    ) -> Estimate:
        """Estimate from targets and predictions, truth first; what costs more than reading the rows is done by the engine.

        ``clusters`` has one label a row: rows with the same label may depend on each other in any way.
        """
        if engine is not None:
            mapping(engine)  # refuses what is none, also where there is no use for one
        targets, predictions, weights, groups = as_clustered_problem(y_true, y_pred, sample_weight, clusters)
        found = as_estimate(self, targets, predictions, weights, engine, groups)
        has_lines = isinstance(predictions, Quantiles) and not predictions.is_joined
        if not has_lines or self.rests_on_levels or self.reads_quantiles:
            return found
        return replace(found, notes=(*found.notes, LINES))

    def estimate_by(
        self, engine: Engine | None, targets: Array, predictions: Distribution, weights: np.ndarray | None
    ) -> Estimate:
        """The estimate of a checked problem by an engine, which those that look at all pairs of rows have use for."""
        return self.estimate(targets, predictions, weights)

    def of_clusters(
        self, targets: Array, predictions: Distribution, weights: np.ndarray | None, clusters: Clusters
    ) -> Estimate:
        """The estimate of a checked problem whose rows belong together; by default without standard error and interval."""
        found = self.estimate(targets, predictions, weights)
        return without_limits(found, WITHHELD if self.resampling is not None else BY_BOOTSTRAP)

    def affordable_with_signs(
        self, predictions: Distribution, n_resamples: int, budget: float, clusters: Clusters
    ) -> "BaseEstimator":
        """An estimator of the same quantity whose values under signs of clusters stay within so many multiplications."""
        return self

    def with_signs(
        self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None, clusters: Clusters
    ) -> Statistic:
        """The statistic as a function of signs of clusters ``(m, C)``; all ones are what was observed."""
        raise no_signs(self)

    @abstractmethod
    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The estimate of a checked problem."""

    def reduce(self, targets: Array, predictions: Distribution) -> tuple[Self, Array, Distribution]:
        """The same value from the smallest problem that determines it; resamples then cost less."""
        return self, targets, predictions

    def affordable(self, predictions: Distribution, n_resamples: int, budget: float) -> "BaseEstimator":
        """An estimator of the same quantity whose resamples stay within so many multiplications; this one where it does."""
        return self

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """The statistic as a function of the targets alone."""
        return EachDraw(self, predictions, weights)


def _told(estimate: Estimate, account: Account) -> Estimate:
    """The estimate with more notes, each once, and by which loops it was computed."""
    more = tuple(note for note in account.notes if note not in estimate.notes)
    if not more and not account.loops:
        return estimate
    route = "; ".join([*([] if estimate.route is None else [estimate.route]), *account.loops])
    return replace(estimate, notes=(*estimate.notes, *more), route=route or None)


def as_estimate(
    estimator: Callable[..., Any],
    targets: Array,
    predictions: Distribution,
    weights: np.ndarray | None,
    engine: Engine | None = None,
    clusters: Clusters | None = None,
) -> Estimate:
    """The estimate of any callable; a bare number is wrapped."""
    if isinstance(estimator, BaseEstimator):
        with accounted() as account:
            if clusters is None or clusters.are_single_rows:
                estimate = estimator.estimate_by(engine, targets, predictions, weights)
            else:
                estimate = estimator.of_clusters(targets, predictions, weights, clusters)
        told = _told(estimate, account)
        return told if clusters is None or not clusters.are_single_rows else replace(told, notes=(*told.notes, SINGLE))
    value = estimator(targets, predictions, **({} if weights is None else {"sample_weight": weights}))
    if isinstance(value, Estimate):
        return value
    try:
        return Estimate(getattr(estimator, "__name__", "statistic"), float(value), len(predictions), estimator)
    except (TypeError, ValueError) as error:
        raise InputError(f"estimator must give a number; {estimator!r} gave a {type(value).__name__}") from error


@dataclass(frozen=True, eq=False)
class EachDraw:
    """The statistic of any estimator, one call a resample: always right, never fast."""

    estimator: Callable[..., Any]
    predictions: Distribution
    weights: np.ndarray | None

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """The statistic of each resample, ``(m,)``."""
        return np.array([float(as_estimate(self.estimator, y, self.predictions, self.weights)) for y in targets])
