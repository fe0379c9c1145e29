"""How many targets the predicted intervals hold, and how wide those are."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError, as_column, as_levels, as_weights, check_fraction, check_same_length
from calibrant.distributions.base import Distribution
from calibrant.distributions.conversion import as_problem
from calibrant.distributions.quantiles import central_levels, fan_of
from calibrant.estimators.interval_score import central_interval
from calibrant.inference.proportions import clopper_pearson
from calibrant.results import Table
from calibrant.typing import ArrayLike

USUAL = (0.5, 0.8, 0.9, 0.95)
"""Levels that are asked for where nothing is said."""


def coverage(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    levels: float | Sequence[float] | None = None,
    by: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> Table:
    """Share of targets in their central prediction intervals, with exact binomial intervals, and the mean width.

    ``levels`` are 0.5, 0.8, 0.9 and 0.95, or of quantile forecasts those of their intervals. A row a level: ``expected``
    is the mean probability that the predictions give to their own intervals (the level, or more where single values have
    a probability), ``observed`` the share of targets inside, ``low`` and ``high`` its Clopper-Pearson interval. Fewer
    inside than expected: too sure. ``width`` is the sharpness: of two forecasts that both hold what they promise, the
    narrower is better. ``by`` gives each row's group, such as :func:`~calibrant.estimators.spread.by_spread` of the
    forecast; coverage that is right on average may be too low where the forecast is sure. O(n) a level.

    >>> from calibrant import Normal, coverage
    >>> y_true = np.random.default_rng(0).normal(0.0, 1.5, 200)
    >>> coverage(y_true, Normal(np.zeros(200), 1.0), levels=[0.5, 0.9])
    level  expected  observed     low    high  width    n
      0.5       0.5     0.355  0.2888  0.4256  1.349  200
      0.9       0.9     0.725  0.6576  0.7856   3.29  200
    """
    check_fraction(confidence_level, "confidence_level")
    targets, predictions = as_problem(y_true, y_pred)
    asked = _usual(predictions) if levels is None else as_levels(levels, "levels")
    weights = as_weights(sample_weight, len(predictions))
    w = np.ones(len(predictions)) if weights is None else weights
    labels = np.zeros(len(w)) if by is None else as_column(by, "by")
    check_same_length(len(labels), len(w), "by", "y_true")
    rows = np.flatnonzero(w)
    names, which = np.unique(labels[rows], return_inverse=True)
    shares = Shares(which, w[rows], (1 - confidence_level) / 2)
    parts = [shares.of(to_numpy(targets)[rows], predictions[rows], level) for level in asked]
    columns = {name: np.stack([part[name] for part in parts], axis=1).ravel() for name in parts[0]}
    group = {} if by is None else {"group": np.repeat(names, len(asked))}
    return Table({**group, "level": np.tile(asked, len(names)), **columns})


def _usual(predictions: Distribution) -> tuple[float, ...]:
    """The levels that are asked for where nothing is said: of quantile forecasts, those that have both ends."""
    fan = fan_of(predictions)
    found = USUAL if fan is None else central_levels(fan)
    if not found:
        raise InputError("coverage is of central intervals, of which these quantiles have none: see ShareBetween()")
    return found


@dataclass(frozen=True, eq=False)
class Shares:
    """Groups of rows, their weights, and the tail of intervals of shares on either side."""

    which: np.ndarray
    weights: np.ndarray
    tail: float

    def of(self, y: np.ndarray, predictions: Distribution, level: float) -> dict[str, np.ndarray]:
        """What each group shows at one level."""
        low, high = central_interval(predictions, level, "coverage")
        upto = NotImplemented if fan_of(predictions) is not None else predictions.cdf(high)
        expected = (
            np.full(len(y), level) if upto is NotImplemented else to_numpy(upto) - to_numpy(predictions.below(low))
        )
        observed = self._mean((y >= low) & (y <= high))
        rows = np.bincount(self.which, self.weights) ** 2 / np.bincount(self.which, self.weights**2)
        ends = clopper_pearson(observed, rows, self.tail)
        found = {"expected": self._mean(expected), "observed": observed, "low": ends[0], "high": ends[1]}
        return {**found, "width": self._mean(high - low), "n": np.bincount(self.which)}

    def _mean(self, values: np.ndarray) -> np.ndarray:
        return np.bincount(self.which, self.weights * values) / np.bincount(self.which, self.weights)
