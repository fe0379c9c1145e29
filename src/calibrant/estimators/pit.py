"""The probability integral transform: at which level of its prediction each target lies."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError, check_count, check_one_of
from calibrant.distributions.base import Distribution, needed
from calibrant.distributions.conversion import as_problem
from calibrant.distributions.coordinates import coordinate, dimensions
from calibrant.distributions.ensemble import Ensemble
from calibrant.distributions.quantiles import Quantiles, fan_of
from calibrant.estimators.member_ranks import MemberRanks, Prerank
from calibrant.estimators.members import even_members
from calibrant.typing import Array, ArrayLike

Levels: TypeAlias = Callable[[Array], tuple[np.ndarray, np.ndarray]]
"""Targets ``(..., n)`` to the least and the largest level of each, equal where no single value has a probability."""

DRAWN = 99
"""Draws a row that stand for predictions of vectors that are no ensembles."""


@dataclass(frozen=True, eq=False)
class FamilyLevels:
    """``P(Y < y)`` and ``P(Y <= y)`` of each row."""

    predictions: Distribution

    def __call__(self, targets: Array) -> tuple[np.ndarray, np.ndarray]:
        """Both levels."""
        y = to_numpy(targets)
        upto = to_numpy(self.predictions.cdf(y))
        if type(self.predictions).below is Distribution.below:  # the same number
            return upto, upto
        return to_numpy(self.predictions.below(y)), upto


@dataclass(frozen=True, eq=False)
class CellLevels:
    """The levels between which targets of quantile forecasts are known to lie: those of the quantiles around each."""

    fan: Quantiles

    def __call__(self, targets: Array) -> tuple[np.ndarray, np.ndarray]:
        """Both levels."""
        return self.fan.levels_around(to_numpy(targets))


def levels_of(predictions: Distribution, asker: object, prerank: Prerank | None = None, seed: int = 0) -> Levels:
    """The levels of targets under these predictions; of an ensemble, their rank among the members."""
    if dimensions(predictions):
        if prerank is None:
            raise InputError(
                f"{type(asker).__name__} orders numbers and {type(predictions).__name__} predicts vectors here: say how to "
                "order them, prerank='average' or prerank='band', or give each coordinate by itself"
            )
        return MemberRanks(even_members(predictions, DRAWN, seed), prerank)
    if prerank is not None:
        raise InputError(f"prerank={prerank!r} orders vectors, and these predictions are of numbers: leave it out")
    if isinstance(predictions, Ensemble) and predictions.is_even:
        return MemberRanks(predictions.listed)
    if (fan := fan_of(predictions)) is not None:
        return CellLevels(fan)
    median = predictions[:1].cdf(np.zeros(1))
    needed(median, "a distribution function", predictions, asker)
    return FamilyLevels(predictions)


def usual_prerank(predictions: Distribution) -> Prerank | None:
    """How targets are ordered where nothing is said: vectors by their average ranks, numbers as they are."""
    return "average" if dimensions(predictions) else None


def check_prerank(prerank: Prerank | None, seed: int) -> None:
    """Refuse settings that are none."""
    if prerank is not None:
        check_one_of(prerank, ("average", "band"), "prerank")
    check_count(seed, "seed", least=0)


def randomised(levels: tuple[np.ndarray, np.ndarray], seed: int) -> np.ndarray:
    """A level between the least and the largest, at random; the same share of the way in every redraw."""
    low, high = levels
    if low is high:
        return low
    return low + shares_of(low.shape[-1], seed) * (high - low)


def shares_of(n: int, seed: int) -> np.ndarray:
    """How far the levels of n targets lie between their least and their largest."""
    return np.random.default_rng([seed, 1]).random(n)


def share_upto(levels: tuple[np.ndarray, np.ndarray], level: float) -> np.ndarray:
    """How much of each target's range of levels lies at or below a level: what randomising gives on average.

    Czado, Gneiting & Held (2009).

    >>> share_upto((np.array([0.2, 0.5]), np.array([0.6, 0.5])), 0.5).round(2)
    array([0.75, 1.  ])
    """
    low, high = levels
    if low is high:
        return low <= level
    width = high - low
    inside = (level - low) / np.where(width > 0, width, 1)
    return np.where(width > 0, np.clip(inside, 0, 1), low <= level)


@dataclass(frozen=True)
class PIT:
    """Probability integral transform: the level ``F_i(y_i)`` of each target, uniform where the forecast is calibrated.

    Of quantile forecasts it is a random level between those of the quantiles around the target, as nothing else was forecast.
    Where single values have a probability of their own it is a random level between ``P(Y < y)`` and ``P(Y <= y)``, of the
    given ``seed``. Of an ensemble it is the rank among the members, ``(b + u) / (m + 1)`` above b of m. Vectors give one level a
    coordinate, ``(n, d)``, or with a ``prerank`` one in all (of 99 draws a row, where they are no ensemble). O(n) or
    O(n m). Dawid (1984); Gneiting, Balabdaoui & Raftery (2007).

    >>> from calibrant import Ensemble, Normal
    >>> PIT()([0.0, 2.0], Normal([0.0, 0.0], 1.0)).round(3)
    array([0.5  , 0.977])
    >>> PIT()([2.5], Ensemble([[1.0, 2.0, 3.0]])).round(3)  # between 0.5 and 0.75
    array([0.722])
    """

    prerank: Prerank | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_prerank(self.prerank, self.seed)

    def __call__(self, y_true: ArrayLike, y_pred: ArrayLike) -> np.ndarray:
        """Levels ``(n,)``, or ``(n, d)``."""
        targets, predictions = as_problem(y_true, y_pred)
        return self.of(to_numpy(targets), predictions)

    def of(self, targets: np.ndarray, predictions: Distribution) -> np.ndarray:
        """The levels of a checked problem."""
        if dimensions(predictions) and self.prerank is None:
            parts = [(targets[:, k], coordinate(predictions, k)) for k in range(dimensions(predictions))]
            return np.stack([self.of(y, part) for y, part in parts], axis=1)
        return randomised(levels_of(predictions, self, self.prerank, self.seed)(targets), self.seed)
