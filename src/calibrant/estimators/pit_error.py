"""Errors of probabilistic calibration: how far the levels of targets are from uniform."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import check_one_of
from calibrant.distributions.base import Distribution
from calibrant.distributions.quantiles import fan_of
from calibrant.estimators.base import BaseEstimator, Statistic
from calibrant.estimators.member_ranks import Prerank
from calibrant.estimators.pit import Levels, check_prerank, levels_of, randomised
from calibrant.estimators.quantile_cells import SharesBelow, judged_at
from calibrant.results import Estimate
from calibrant.typing import Array

Distance: TypeAlias = Literal["kolmogorov", "cramer-von-mises", "kuiper"]


@dataclass(frozen=True)
class PITError(BaseEstimator):
    """PIT error: the distance of the distribution function G of the levels ``F_i(y_i)`` from that of uniform ones.

    ``max |G(u) - u|`` (``kolmogorov``), the root of ``integral (G(u) - u)^2 du`` (``cramer-von-mises``; n times its
    square is the usual statistic), or ``max (G(u) - u) + max (u - G(u))`` (``kuiper``, which sees errors of spread as
    well as of level). Never zero: :class:`~calibrant.ExactTest` says what chance explains. Levels are those of
    :class:`PIT`, with its ``prerank`` and ``seed``. Of quantile forecasts, u are the levels given and G the share of
    targets below each. A forecast may be wrong for every row and have uniform levels on average: look at groups, too. O(n
    log n). Gneiting, Balabdaoui & Raftery (2007).

    >>> from calibrant import ExactTest, Normal, PITError
    >>> y_true = np.random.default_rng(0).normal(0.0, 1.0, 200)
    >>> ExactTest(PITError())(y_true, Normal(np.zeros(200), 1.0)).pvalue > 0.05
    True
    >>> ExactTest(PITError("kuiper"))(y_true, Normal(np.zeros(200), 2.0)).pvalue  # twice as wide as it should be
    0.001
    """

    distance: Distance = "kolmogorov"
    prerank: Prerank | None = None
    seed: int = 0

    least = 0.0
    most = 1.0
    rests_on_levels = True
    bias_cancels = True

    def __post_init__(self) -> None:
        check_one_of(self.distance, ("kolmogorov", "cramer-von-mises", "kuiper"), "distance")
        check_prerank(self.prerank, self.seed)

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The distance."""
        value, fan = self.given(predictions, weights)(to_numpy(targets)[None])[0], fan_of(predictions)
        notes = () if fan is None else (judged_at(fan),)
        return Estimate("PITError", float(value), len(predictions), self, notes=notes)

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """Levels of all redraws, sorted together; of quantile forecasts, the shares below each quantile."""
        if (fan := fan_of(predictions)) is not None:
            return _AtQuantiles(self.distance, SharesBelow.of(fan, weights))
        levels = levels_of(predictions, self, self.prerank, self.seed)
        return _FromUniform(self.distance, levels, self.seed, None if weights is None else weights / weights.sum())


@dataclass(frozen=True, eq=False)
class _AtQuantiles:
    distance: Distance
    below: SharesBelow

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        return distance_at(self.below(targets), self.below.levels, self.distance)


def distance_at(shares: np.ndarray, levels: np.ndarray, distance: Distance) -> np.ndarray:
    """The distance of shares ``(..., m)`` below quantiles from the levels ``(m,)`` of these.

    >>> distance_at(np.array([[0.2, 0.5, 0.7]]), np.array([0.1, 0.5, 0.9]), "kuiper").round(3)
    array([0.3])
    """
    gap = shares - levels
    if distance == "cramer-von-mises":
        ends = np.concatenate([[0.0], (levels[1:] + levels[:-1]) / 2, [1.0]])
        return np.sqrt(gap**2 @ np.diff(ends))
    above, below = np.maximum(gap, 0).max(axis=-1), np.maximum(-gap, 0).max(axis=-1)
    return np.maximum(above, below) if distance == "kolmogorov" else above + below


@dataclass(frozen=True, eq=False)
class _FromUniform:
    distance: Distance
    levels: Levels
    seed: int
    weights: np.ndarray | None

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        u = randomised(self.levels(targets), self.seed)
        return distance_from_uniform(u, self.weights, self.distance)


def distance_from_uniform(u: np.ndarray, weights: np.ndarray | None, distance: Distance) -> np.ndarray:
    """The distance of the distribution function of levels ``(m, n)`` from that of uniform ones, ``(m,)``.

    >>> distance_from_uniform(np.array([[0.1, 0.6]]), None, "kolmogorov")
    array([0.4])
    """
    n = u.shape[-1]
    if weights is None:
        u, reached = np.sort(u, axis=-1), np.arange(n + 1) / n
    else:
        order = np.argsort(u, axis=-1)
        u = np.take_along_axis(u, order, axis=-1)
        reached = np.pad(np.cumsum(weights[order], axis=-1), ((0, 0), (1, 0)))
    if distance == "cramer-von-mises":
        edges = np.pad(u, ((0, 0), (1, 1)), constant_values=((0, 0), (0, 1)))
        cubes = (edges[:, 1:] - reached) ** 3 - (edges[:, :-1] - reached) ** 3
        return np.sqrt(np.maximum(cubes.sum(axis=-1) / 3, 0))
    above, below = (reached[..., 1:] - u).max(axis=-1), (u - reached[..., :-1]).max(axis=-1)
    return np.maximum(above, below) if distance == "kolmogorov" else np.maximum(above, 0) + np.maximum(below, 0)
