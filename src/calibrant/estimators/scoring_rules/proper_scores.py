"""Proper scores: the mean loss of the predictions, smaller when they are calibrated and sharp."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Self

import numpy as np

from calibrant._array import to_numpy
from calibrant._clusters import Clusters
from calibrant._validate import MAX_SQUARED, InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.estimators.base import BaseEstimator, Statistic
from calibrant.estimators.cluster_skewness import MIN_SURPRISES_OF_LIMITS, surprises_in, too_few_clusters
from calibrant.estimators.mean_limits import MeanLimits, ReckonedLimits
from calibrant.results import Estimate, how_many
from calibrant.typing import Array

MIN_ROWS = 50
"""Rows below which the spread of losses of numbers, which have no largest one, is not known well enough for an interval."""

ROWS_OF_LOSSES = 2_000
"""Rows of classes at most from which a likely loss that was not seen is taken."""

ROWS_OF_FORECASTS, DRAWS_OF_LOSSES = 100, 100
"""Rows of forecasts at most, and draws of each, from which such a loss is taken."""


HUGE_LOSS = f"losses beyond {MAX_SQUARED:g} have squares that are no numbers"
"""Why the mean of losses has none, either."""

INFINITE_LOSS = "an infinite loss has no spread"
"""Why the mean of losses has no interval."""


class Score(BaseEstimator):
    """A mean of losses over rows, hence with a standard error and an interval.

    The interval is that of :class:`MeanLimits`: it allows for skewed losses, and for large ones that are so rare that they may
    not have been seen. Losses of numbers need fifty rows for one, and how large they may be is what the forecast says.
    """

    name: ClassVar[str]
    resampling = None

    @abstractmethod
    def losses(self, targets: Array, predictions: Distribution) -> np.ndarray:
        """The loss of each row, ``(..., n)``, for targets with any leading axes."""

    def likely(self, losses: np.ndarray, predictions: Distribution) -> tuple[float, float]:
        """The lowest and the highest loss of a row that one must reckon with, by what was seen and by the predictions."""
        if self.is_bounded:
            return self.least, self.most
        return float(losses.min()), likely_loss(self.losses, losses, predictions)

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The mean loss, its standard error and limits."""
        losses = to_numpy(self.losses(targets, predictions))
        with np.errstate(over="ignore"):
            mean = float(losses.mean() if weights is None else losses @ weights / weights.sum())
        if np.isnan(mean) and np.isnan(losses).any():
            raise InputError(
                f"y_pred has no {self.name} in row {int(np.isnan(losses).argmax())}, as where a forecast has no mean: drop those "
                "rows, or use another score"
            )
        if not np.isfinite(mean):
            return Estimate(self.name, mean, len(predictions), self, withheld=INFINITE_LOSS)
        if max(-losses.min(), losses.max()) > MAX_SQUARED:
            return Estimate(self.name, mean, len(predictions), self, withheld=HUGE_LOSS)
        seen = replace(MeanLimits.of(losses, weights, least=self.least, most=self.most), mean=mean)
        return self._reckoned(self.of_limits(seen, len(predictions), self.needs(predictions)), losses, predictions)

    def of_clusters(
        self, targets: Array, predictions: Distribution, weights: np.ndarray | None, clusters: Clusters
    ) -> Estimate:
        """The mean loss with the standard error and limits of sums over clusters, the sandwich that is robust to them."""
        losses = to_numpy(self.losses(targets, predictions))
        if not np.isfinite(losses).all():
            return self.estimate(targets, predictions, weights)
        is_rare = surprises_in(targets, predictions, weights, clusters) < MIN_SURPRISES_OF_LIMITS
        seen = MeanLimits.of_clusters(
            losses, weights, clusters, are_of_one_fate=is_rare, least=self.least, most=self.most
        )
        found = self._reckoned(self.of_limits(seen, len(predictions), 2), losses, predictions)
        few = len(predictions) < self.needs(predictions)
        withheld = self.estimate(targets, predictions, weights).withheld if few else None
        return replace(found, withheld=withheld or too_few_clusters(targets, predictions, weights, clusters))

    def _reckoned(self, found: Estimate, losses: np.ndarray, predictions: Distribution) -> Estimate:
        """With limits that reckon with losses which were not seen."""
        seen = found.limits
        assert isinstance(seen, MeanLimits)
        if has_classes(predictions):
            lowest, highest = self.likely(losses, predictions)
            return replace(found, limits=replace(seen, lowest=lowest, highest=highest))
        return replace(found, limits=ReckonedLimits(seen, partial(self.likely, predictions=thinned(predictions))))

    @property
    def is_bounded(self) -> bool:
        """Whether losses have a least and a largest value, whatever the predictions."""
        return bool(np.isfinite(self.least) and np.isfinite(self.most))

    def needs(self, predictions: Distribution) -> int:
        """Rows that an interval needs: more where losses have no largest one that is known."""
        return 2 if self.is_bounded or has_classes(predictions) else MIN_ROWS

    def of_limits(self, limits: MeanLimits, n: int, needed: int) -> Estimate:
        """The estimate of n rows from the mean of their losses with its limits, and the number of rows these need."""
        error = float(np.sqrt(limits.squares * limits.n / (limits.n - 1))) if limits.n > 1 else None
        found = Estimate(self.name, limits.mean, n, self, standard_error=error, limits=limits)
        if limits.n >= needed:
            return found
        few = how_many(limits.n, "row does not", "rows do not")
        return replace(found, withheld=f"{few} show how far losses go; {needed} or more have an interval")

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """The mean over rows of every resample at once; of two classes by one product."""
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

    def likely(self, losses: np.ndarray, predictions: Distribution) -> tuple[float, float]:
        """From none to the most that classes can lose."""
        return 0.0, 2.0 if isinstance(predictions, Categorical) and predictions.n_classes > 2 else 1.0


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

    def likely(self, losses: np.ndarray, predictions: Distribution) -> tuple[float, float]:
        """Of classes, up to the typical loss of what seldom happens by the predictions' own account."""
        if not has_classes(predictions):
            return super().likely(losses, predictions)
        p = predictions.matrix if isinstance(predictions, Categorical) else predictions.probs  # type: ignore[attr-defined]
        p = to_numpy(p[:: 1 + len(predictions) // ROWS_OF_LOSSES]).astype(np.float64)
        p = p if isinstance(predictions, Categorical) else np.concatenate([p, 1 - p])
        return float(losses.min()), max(cubes_over_squares(losses), cubes_over_squares(-np.log(p[p > 0]), p[p > 0]))


def thinned(predictions: Distribution) -> Distribution:
    """At most so many rows, evenly."""
    return predictions[:: 1 + (len(predictions) - 1) // ROWS_OF_FORECASTS]


def likely_loss(
    losses_of: Callable[[Array, Distribution], np.ndarray], seen: np.ndarray, predictions: Distribution
) -> float:
    """The largest loss to reckon with: the largest seen, or the typical size of large ones if the forecast was right.

    Losses are drawn from the forecast, whatever happened: so it is known how far they may go before they have been seen.
    """
    some, largest = thinned(predictions), float(seen.max())
    try:
        drawn = to_numpy(losses_of(some.sample(np.random.default_rng(0), DRAWS_OF_LOSSES), some))
    except InputError:  # quantiles alone cannot be drawn from
        return largest
    return max(largest, cubes_over_squares(drawn[np.isfinite(drawn)]))


def has_classes(predictions: Distribution) -> bool:
    """Whether predictions are probabilities of classes or labels."""
    return isinstance(predictions, Categorical | Bernoulli)


def cubes_over_squares(values: np.ndarray, weights: np.ndarray | None = None) -> float:
    """``sum w x^3 / sum w x^2``: the size of the values that make up the spread; 0 where all are 0."""
    x = np.abs(values).ravel()
    squares = x * x if weights is None else weights * x * x
    total = float(squares.sum())
    return float(squares @ x) / total if total > 0 else 0.0
