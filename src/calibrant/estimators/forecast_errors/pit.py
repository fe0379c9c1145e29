"""The probability integral transform of each target; of ensembles, its rank among the members."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from calibrant._array import to_numpy
from calibrant._spellings import Settings
from calibrant._validate import InputError, check_count, check_one_of
from calibrant.distributions.base import Distribution, needed
from calibrant.distributions.empirical.ensemble import Ensemble
from calibrant.distributions.empirical.quantiles import Quantiles, fan_of
from calibrant.distributions.multivariate import are_shares, coordinate, dimensions
from calibrant.distributions.reading.conversion import as_problem
from calibrant.estimators.scoring_rules.forecast_scores import even_members
from calibrant.kernels.metrics import SPREAD
from calibrant.typing import Array, ArrayLike

Prerank: TypeAlias = Literal["average", "band", "centre"]
"""How vectors are put in order: by the average of the ranks of their coordinates, by how deep they lie in the band of all, or by
the latter on a side that is as good as random, so that the middle is deep and both ends lie far out."""

PRERANKS: tuple[Prerank, ...] = ("average", "band", "centre")


@dataclass(frozen=True, eq=False)
class MemberRanks:
    """Where targets stand among m members ``(n, m)`` or ``(n, m, d)``, as a range of PIT values between 0 and 1.

    A target above b members and equal to t of them has the PIT values from ``b / (m + 1)`` to ``(b + t + 1) / (m + 1)``: a random
    number in between is uniform whenever target and members could be exchanged, ties or not. Members that are missing (NaN)
    do not count, so m may differ from row to row. Vectors are ordered by a pre-rank in the pool of the members and
    the target: ``average`` sees that all coordinates are too low or too high, ``band`` that targets lie
    too far out or too deep inside. O(n m d) per target. Thorarinsdottir, Scheuerer & Heinz (2016).

    >>> low, high = MemberRanks(np.array([[1.0, 2.0, 3.0], [5.0, 5.0, np.nan]]))(np.array([2.5, 5.0]))
    >>> low, high.round(2)
    (array([0.5, 0. ]), array([0.75, 1.  ]))
    """

    members: np.ndarray
    prerank: Prerank | None = None

    def __call__(self, targets: Array) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper levels, ``(..., n)`` each, for targets ``(..., n)`` or ``(..., n, d)``."""
        y = to_numpy(targets)
        own = self.members.ndim - 1
        stack = y.reshape(-1, *y.shape[y.ndim - own :])
        below, upto = self._among_numbers(stack) if own == 1 else self._among_vectors(stack)
        shape = (*y.shape[: y.ndim - own], len(self.members))
        return (below / (self.numbers + 1)).reshape(shape), ((upto + 1) / (self.numbers + 1)).reshape(shape)

    @cached_property
    def numbers(self) -> np.ndarray:
        """Members of each row."""
        return np.isfinite(self.members.reshape(*self.members.shape[:2], -1)[:, :, 0]).sum(axis=1)

    @cached_property
    def _sorted(self) -> np.ndarray:
        """Members in order; those that are missing come last."""
        return np.sort(self.members, axis=1)

    def _among_numbers(self, stack: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Members below, and at most at, targets ``(m, n)``."""
        rows = list(zip(self._sorted, np.ascontiguousarray(stack.T), strict=True))
        below, upto = (np.stack([row.searchsorted(y, side) for row, y in rows], axis=1) for side in ("left", "right"))
        return below, upto

    def _among_vectors(self, stack: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Members with pre-ranks below, and at most at, those of targets ``(m, n, d)``."""
        below, upto = np.empty((2, *stack.shape[:2]), dtype=np.intp)
        for i, y in enumerate(stack):
            members, own = self._preranks(y)
            below[i], upto[i] = (members < own[:, None]).sum(axis=1), (members <= own[:, None]).sum(axis=1)
        return below, upto

    @cached_property
    def _ranks(self) -> np.ndarray:
        """Ranks of the members among themselves, in each coordinate."""
        from scipy.stats import rankdata

        return rankdata(self.members, axis=1)

    def _preranks(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of the members and of the target, in the pool of both; whole and half numbers, so that ties are exact."""
        side = np.sign(self.members - y[:, None])
        ranks = self._ranks + (side + 1) / 2
        own = 1 + (1 - side).sum(axis=1) / 2
        if self.prerank == "average":
            return ranks.sum(axis=2), own.sum(axis=1)
        size = self.members.shape[1] + 1
        return ((size - ranks) * (ranks - 1)).sum(axis=2), ((size - own) * (own - 1)).sum(axis=1)


PITValues: TypeAlias = Callable[[Array], tuple[np.ndarray, np.ndarray]]
"""Targets ``(..., n)`` to the least and the largest level of each, equal where no single value has a probability."""

DRAWN = 99
"""Draws a row that stand for predictions of vectors that are no ensembles."""


@dataclass(frozen=True, eq=False)
class _FamilyPITValues:
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
class _CellPITValues:
    """The levels between which targets of quantile forecasts are known to lie: those of the quantiles around each."""

    fan: Quantiles

    def __call__(self, targets: Array) -> tuple[np.ndarray, np.ndarray]:
        """Both levels."""
        return self.fan.levels_around(to_numpy(targets))


@dataclass(frozen=True, eq=False)
class _Sided:
    """Levels from the outermost, 0, to the innermost, 1, on one of two sides, as good as drawn at random.

    The side is decided by the digits of members and target. So rows that are looked at in parts, as those of folds, do not have
    their sides in common.
    """

    depth: MemberRanks

    def __call__(self, targets: Array) -> tuple[np.ndarray, np.ndarray]:
        """Both levels."""
        low, high = (level / 2 for level in self.depth(targets))
        digits = self.depth.members[:, :, 0].sum(axis=1) + np.pi * to_numpy(targets)[..., 0]
        is_below = digits.view(np.int64) * SPREAD < 0
        return np.where(is_below, low, 1 - high), np.where(is_below, high, 1 - low)


def pit_of(predictions: Distribution, asker: object, prerank: Prerank | None = None, seed: int = 0) -> PITValues:
    """The PIT values of targets under these predictions; of an ensemble, their rank among the members."""
    if dimensions(predictions):
        if prerank is None:
            raise InputError(
                f"{type(asker).__name__} orders numbers and {type(predictions).__name__} predicts vectors here: say how to "
                "order them, prerank='average', 'band' or 'centre', or give each coordinate by itself"
            )
        members = even_members(predictions, DRAWN, seed)
        return _Sided(MemberRanks(members, "band")) if prerank == "centre" else MemberRanks(members, prerank)
    if prerank is not None:
        raise InputError(f"prerank={prerank!r} orders vectors, and these predictions are of numbers: leave it out")
    if isinstance(predictions, Ensemble) and predictions.is_even:
        return MemberRanks(predictions.listed)
    if (fan := fan_of(predictions)) is not None:
        return _CellPITValues(fan)
    median = predictions[:1].cdf(np.zeros(1))
    needed(median, "a distribution function", predictions, asker)
    return _FamilyPITValues(predictions)


def usual_prerank(predictions: Distribution) -> Prerank | None:
    """How targets are ordered where nothing is said: numbers as they are, vectors by their average ranks.

    Shares of a whole cannot all be high: they are ordered by how far they lie from the middle.
    """
    if not dimensions(predictions):
        return None
    return "centre" if are_shares(predictions) else "average"


def check_prerank(prerank: Prerank | None, seed: int, known: Sequence[Prerank] = PRERANKS) -> None:
    """Refuse settings that are none."""
    if prerank is not None:
        check_one_of(prerank, known, "prerank")
    check_count(seed, "seed", least=0)


def randomised(pit: tuple[np.ndarray, np.ndarray], seed: int) -> np.ndarray:
    """A level between the least and the largest, at random; the same share of the way in every resample."""
    low, high = pit
    if low is high:
        return low
    return low + shares_of(low.shape[-1], seed) * (high - low)


def shares_of(n: int, seed: int) -> np.ndarray:
    """How far the PIT values of n targets lie between their least and their largest."""
    return np.random.default_rng([seed, 1]).random(n)


def share_upto(pit: tuple[np.ndarray, np.ndarray], level: float) -> np.ndarray:
    """How much of each target's range of PIT values lies at or below a level: what randomising gives on average.

    Czado, Gneiting & Held (2009).

    >>> share_upto((np.array([0.2, 0.5]), np.array([0.6, 0.5])), 0.5).round(2)
    array([0.75, 1.  ])
    """
    low, high = pit
    if low is high:
        return low <= level
    width = high - low
    inside = (level - low) / np.where(width > 0, width, 1)
    return np.where(width > 0, np.clip(inside, 0, 1), low <= level)


@dataclass(frozen=True)
class PIT(Settings):
    """Probability integral transform: the level ``F_i(y_i)`` of each target, uniform where the forecast is calibrated.

    Of quantile forecasts it is a random level between those of the quantiles around the target, as nothing else was forecast.
    Where single values have a probability of their own it is a random level between ``P(Y < y)`` and ``P(Y <= y)``, of the
    given ``seed``. Of an ensemble it is the rank among the members, ``(b + u) / (m + 1)`` above b of m. Vectors give one level a
    coordinate, ``(n, d)``, or with a ``prerank`` one in all (of 99 draws per row, where they are no ensemble). O(n) or
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
        """PIT values ``(n,)``, or ``(n, d)``."""
        targets, predictions = as_problem(y_true, y_pred)
        return self.of(to_numpy(targets), predictions)

    def of(self, targets: np.ndarray, predictions: Distribution) -> np.ndarray:
        """The PIT values of a checked problem."""
        if dimensions(predictions) and self.prerank is None:
            parts = [(targets[:, k], coordinate(predictions, k)) for k in range(dimensions(predictions))]
            return np.stack([self.of(y, part) for y, part in parts], axis=1)
        return randomised(pit_of(predictions, self, self.prerank, self.seed)(targets), self.seed)
