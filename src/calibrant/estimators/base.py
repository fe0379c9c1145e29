"""What estimators share: the checked call, and how a statistic behaves once the predictions are fixed."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from calibrant._validate import as_weights
from calibrant.distributions.base import Distribution
from calibrant.distributions.conversion import as_problem
from calibrant.results import Estimate
from calibrant.typing import Array, ArrayLike

Statistic: TypeAlias = Callable[[np.ndarray], np.ndarray]
"""Targets of m redraws, ``(m, n, ...)``, to the m values of a statistic."""


class BaseEstimator(ABC):
    """A frozen value with the settings of an estimator; calling it checks the input and does the work.

    Subclasses are frozen dataclasses that write :meth:`estimate`. Those that can reuse work between redraws of the
    targets also write :meth:`given`, which is all a test needs to be fast.
    """

    least: ClassVar[float] = -np.inf
    """The smallest value the estimator can take."""

    def __call__(self, y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None) -> Estimate:
        """Estimate from targets and predictions, truth first."""
        targets, predictions = as_problem(y_true, y_pred)
        return self.estimate(targets, predictions, as_weights(sample_weight, len(predictions)))

    @abstractmethod
    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The estimate of a checked problem."""

    def reduce(self, targets: Array, predictions: Distribution) -> tuple[Self, Array, Distribution]:
        """The same value from the smallest problem that determines it; redraws then cost less."""
        return self, targets, predictions

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """The statistic as a function of the targets alone."""
        return EachDraw(self, predictions, weights)


@dataclass(frozen=True, eq=False)
class EachDraw:
    """The statistic of any estimator, one call a redraw: always right, never fast."""

    estimator: Callable[..., Any]
    predictions: Distribution
    weights: np.ndarray | None

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """The statistic of each redraw, ``(m,)``."""
        options = {} if self.weights is None else {"sample_weight": self.weights}
        return np.array([float(self.estimator(y, self.predictions, **options)) for y in targets])
