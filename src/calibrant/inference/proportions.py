"""Exact intervals of proportions, and how many targets the predicted intervals hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.special import betainc, betaincinv

from calibrant._array import to_numpy
from calibrant._clusters import Clusters, as_clusters
from calibrant._validate import (
    InputError,
    as_group,
    as_levels,
    as_weights,
    check_count,
    check_fraction,
)
from calibrant.distributions.base import Distribution
from calibrant.distributions.empirical.quantiles import central_levels, fan_of
from calibrant.distributions.reading.conversion import as_problem
from calibrant.estimators.cluster_skewness import correlation_within, rows_of_clusters
from calibrant.estimators.scoring_rules.forecast_scores import central_interval
from calibrant.inference.exact_tests.cluster_signs import check_enough
from calibrant.results import Interval, Table
from calibrant.typing import ArrayLike

Band: TypeAlias = tuple[np.ndarray, np.ndarray]
"""Lower and upper ends."""


def clopper_pearson(frequency: np.ndarray, rows: np.ndarray, tail: float) -> Band:
    """The exact interval of a binomial chance, from the frequency in so many rows; fractions of rows are allowed.

    Also of the mean of chances that differ from row to row, which vary less (Hoeffding 1956). Rows of unequal weight count
    as ``(sum w)^2 / sum w^2``. Clopper & Pearson (1934).

    >>> low, high = clopper_pearson(np.array([0.0, 0.3]), np.array([10, 10]), 0.025)
    >>> low.round(4), high.round(4)
    (array([0.    , 0.0667]), array([0.3085, 0.6525]))
    """
    observed = np.clip(frequency, 0, 1) * rows
    failed = rows - observed
    low = betaincinv(np.where(observed > 0, observed, 1), failed + 1, tail)
    high = betaincinv(observed + 1, np.where(failed > 0, failed, 1), 1 - tail)
    return np.where(observed > 0, low, 0.0), np.where(failed > 0, high, 1.0)


def consistent_shares(predicted: np.ndarray, rows: np.ndarray, tail: float) -> Band:
    """The least and the largest share whose interval of Clopper and Pearson holds what was predicted, by bisection.

    >>> consistent_shares(np.array([0.5]), np.array([20.0]), 0.025)[0] * 20  # from 6 to 14 of 20, were shares of whole rows
    array([5.1...])
    """
    p, tiny = np.clip(predicted, 1e-12, 1 - 1e-12), 1e-12
    ends = []
    for is_high in (False, True):
        low, high = np.zeros(len(p)), np.ones(len(p))
        for _ in range(50):
            x = (low + high) / 2
            if is_high:
                holds = betainc(np.maximum(rows * x, tiny), rows * (1 - x) + 1, p) >= tail
                low, high = np.where(holds, x, low), np.where(holds, high, x)
            else:
                holds = betainc(rows * x + 1, np.maximum(rows * (1 - x), tiny), p) <= 1 - tail
                low, high = np.where(holds, low, x), np.where(holds, x, high)
        ends.append(high if is_high else low)
    return ends[0], ends[1]


def equal_rows(weights: np.ndarray | None, n: int) -> int:
    """How many rows of equal weight tell as much, ``(sum w)^2 / sum w^2``: n without weights.

    >>> equal_rows(None, 7), equal_rows(np.array([1.0, 1.0, 0.0, 2.0]), 4)
    (7, 3)
    """
    return n if weights is None else max(1, round(float(weights.sum() ** 2 / (weights**2).sum())))


def interval_of_share(successes: int, trials: int, level: float = 0.95) -> Interval:
    """Clopper and Pearson's interval of one share.

    >>> print(interval_of_share(0, 20))
    0 to 0.1684
    """
    check_count(trials, "trials")
    check_count(successes, "successes", least=0)
    check_fraction(level, "level")
    if successes > trials:
        raise InputError(f"successes must be at most the {trials:,} trials; got {successes:,}")
    low, high = clopper_pearson(np.array(successes / trials), np.array(trials), (1 - level) / 2)
    return Interval(float(low), float(high), level, "Clopper-Pearson")


USUAL = (0.5, 0.8, 0.9, 0.95)
"""Levels that are asked for where nothing is said."""


def coverage(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    levels: float | Sequence[float] | None = None,
    by: ArrayLike | Mapping[str, ArrayLike] | None = None,
    sample_weight: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> Table:
    """Share of targets in their central prediction intervals, with exact binomial intervals, and the mean width.

    ``levels`` are 0.5, 0.8, 0.9 and 0.95, or of quantile forecasts those of their intervals. A row per level: ``expected``
    is the mean probability that the predictions give to their own intervals (the level, or more where single values have
    a probability), ``observed`` the share of targets inside, ``low`` and ``high`` its Clopper-Pearson interval. Fewer
    inside than expected: too sure. ``width`` is the sharpness: of two forecasts that both hold what they promise, the
    narrower is better. ``by`` gives each row's group, such as :func:`~calibrant.estimators.by_spread` of the
    forecast; coverage that is right on average may be too low where the forecast is sure. O(n) per level.

    ``clusters`` has one label per row: rows with the same label may depend on each other in any way. Intervals are then those of as
    many independent rows as the clusters are worth; fewer than 12 are refused. Korn & Graubard (1998).

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
    labels = np.zeros(len(w)) if by is None else as_group(by, len(w), "by")
    rows = np.flatnonzero(w)
    names, which = np.unique(labels[rows], return_inverse=True)
    together = None if clusters is None else as_clusters(clusters, len(w))[rows]
    if together is not None and not together.are_single_rows:
        check_enough("coverage", together)
    shares = Shares(which, w[rows], (1 - confidence_level) / 2, together)
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
    """Groups of rows, their weights, the tail of intervals of shares on either side, and the clusters of rows."""

    which: np.ndarray
    weights: np.ndarray
    tail: float
    clusters: Clusters | None = None

    def of(self, y: np.ndarray, predictions: Distribution, level: float) -> dict[str, np.ndarray]:
        """What each group shows at one level."""
        low, high = central_interval(predictions, level, "coverage")
        upto = NotImplemented if fan_of(predictions) is not None else predictions.cdf(high)
        expected = (
            np.full(len(y), level) if upto is NotImplemented else to_numpy(upto) - to_numpy(predictions.below(low))
        )
        inside = (y >= low) & (y <= high)
        observed = self._mean(inside)
        ends = clopper_pearson(observed, self._rows(inside - expected, expected * (1 - expected)), self.tail)
        found = {"expected": self._mean(expected), "observed": observed, "low": ends[0], "high": ends[1]}
        return {**found, "width": self._mean(high - low), "n": np.bincount(self.which)}

    def _rows(self, residuals: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """How many independent rows of equal weight those of each group are worth."""
        w, size = self.weights, int(self.which.max()) + 1
        if self.clusters is None or self.clusters.are_single_rows:
            return np.bincount(self.which, w) ** 2 / np.bincount(self.which, w**2)
        alike = correlation_within(w * residuals, w**2 * variance, self.clusters)
        return rows_of_clusters(w, self.which, size, alike, self.clusters, self.tail)

    def _mean(self, values: np.ndarray) -> np.ndarray:
        return np.bincount(self.which, self.weights * values) / np.bincount(self.which, self.weights)
