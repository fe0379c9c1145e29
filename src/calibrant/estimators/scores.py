"""Proper scores: the mean loss of the predictions, smaller when they are calibrated and sharp."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.categorical import Categorical
from calibrant.estimators.base import BaseEstimator, Statistic
from calibrant.results import Estimate
from calibrant.typing import Array


class Score(BaseEstimator):
    """A mean of losses over rows, hence with a standard error."""

    name: ClassVar[str]

    @abstractmethod
    def losses(self, targets: Array, predictions: Distribution) -> np.ndarray:
        """The loss of each row, ``(..., n)``, for targets with any leading axes."""

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The mean loss and its standard error."""
        losses = self.losses(targets, predictions)
        w = np.ones(len(predictions)) if weights is None else weights
        mean = losses @ w / w.sum()
        with np.errstate(invalid="ignore"):  # an infinite loss has no spread
            spread = np.sqrt((w**2 * (losses - mean) ** 2).sum()) / w.sum()
        return self.of_mean(float(mean), float(spread), len(predictions), int(np.count_nonzero(w)))

    def of_mean(self, mean: float, spread: float, n: int, counted: int) -> Estimate:
        """The estimate from the mean and ``sqrt(sum w^2 (loss - mean)^2) / sum w`` of n rows, of which some have weight."""
        error = float(spread * np.sqrt(counted / (counted - 1))) if counted > 1 and np.isfinite(mean) else None
        return Estimate(self.name, mean, n, self, standard_error=error)

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """The mean over rows of every redraw at once; of two classes by one product."""
        w = np.ones(len(predictions)) if weights is None else weights
        if isinstance(predictions, Categorical) and predictions.n_classes == 2:
            return _MeanOfTwo.of(self, predictions, w)
        return _MeanLoss(self, predictions, w)


@dataclass(frozen=True, eq=False)
class _MeanLoss:
    score: Score
    predictions: Distribution
    weights: np.ndarray

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        return self.score.losses(targets, self.predictions) @ self.weights / self.weights.sum()


@dataclass(frozen=True, eq=False)
class _MeanOfTwo:
    """The weighted sum of losses were the first of two classes to happen, and what rows add where the second does.

    ``rare`` rows, where either loss is infinite, are looked up.
    """

    first: float
    more: np.ndarray
    rare: np.ndarray
    losses: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, score: Score, predictions: Categorical, w: np.ndarray) -> Self:
        losses = np.stack([score.losses(np.full(len(w), label), predictions) for label in (0, 1)])
        rare = np.flatnonzero(~np.isfinite(losses).all(axis=0))
        common = losses.copy()
        common[:, rare] = 0
        return cls(float(common[0] @ w), (common[1] - common[0]) * w, rare, losses[:, rare], w)

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        common = self.first + targets.astype(np.float64) @ self.more
        looked_up = self.losses[targets[:, self.rare], np.arange(len(self.rare))] @ self.weights[self.rare]
        return (common + looked_up) / self.weights.sum()


@dataclass(frozen=True)
class Brier(Score):
    """Brier score: mean squared distance of the probabilities from what happened.

    ``mean (p - y)^2`` for two classes, ``mean sum_c (p_c - [y = c])^2`` for more, the mean over labels for
    multi-label predictions: scikit-learn's convention. Brier (1950).

    >>> round(Brier()([1, 0], [0.8, 0.4]).value, 4)
    0.1
    """

    name = "Brier"
    least = 0.0

    def losses(self, targets: Array, predictions: Distribution) -> np.ndarray:
        """Squared error of each row."""
        squared_error = getattr(predictions, "squared_error", None)
        if squared_error is None:
            raise InputError(f"Brier needs class probabilities; got {type(predictions).__name__} predictions")
        return squared_error(targets)


@dataclass(frozen=True)
class LogLoss(Score):
    """Log loss: mean negative log probability (or density) of what happened, in nats.

    Infinite when something happened that had been given probability zero. Good (1952).

    >>> round(LogLoss()([1, 0], [0.8, 0.4]).value, 4)
    0.367
    """

    name = "LogLoss"

    def losses(self, targets: Array, predictions: Distribution) -> np.ndarray:
        """Negative log probability of each row's target."""
        return -predictions.log_prob(targets)
