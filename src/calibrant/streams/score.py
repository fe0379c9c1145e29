"""Proper scores, and other means over rows, of a stream."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.estimators.exact_sums import UNIT, from_text, to_text, total
from calibrant.estimators.mean_limits import MeanLimits
from calibrant.estimators.scores import Score
from calibrant.results import Estimate
from calibrant.streams.base import SumState, family_of
from calibrant.streams.pair_sums import PairSums, quotient
from calibrant.typing import Array


@dataclass(frozen=True, eq=False)
class ScoreState(SumState):
    """What a mean loss and its interval need to know of the rows so far: nine sums without rounding, and four extremes.

    Scores by draws (:class:`~calibrant.CRPS` of families without a closed form) draw anew for each part: the parts then
    change the score within the noise of the draws. There is no table (of the levels of :class:`~calibrant.Pinball`, say).

    >>> from calibrant import Brier
    >>> monday, tuesday = (ScoreState(Brier()).update(*rows) for rows in (([1, 0], [0.8, 0.4]), ([1], [0.5])))
    >>> monday.merge(tuesday).finalize().value == Brier()([1, 0, 1], [0.8, 0.4, 0.5]).value
    True
    """

    kind = "score"

    estimator: Score
    n: int = 0
    family: str | None = None
    losses: PairSums = field(default=PairSums(), repr=False)
    shape: "LossShape | None" = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, Score):
            raise InputError(f"estimator must be a score such as Brier(); got {self.estimator!r}")

    def of_rows(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Self:
        """The sums of these rows."""
        losses = to_numpy(self.estimator.losses(targets, predictions)).astype(np.float64)
        sums = PairSums.of(losses) if weights is None else PairSums.of(losses * weights, weights)
        shape = LossShape.of(self.estimator, losses, weights, predictions)
        return replace(self, n=len(predictions), family=family_of(predictions), losses=sums, shape=shape)

    def joined(self, other: Self) -> Self:
        """All sums added."""
        shape = None if self.shape is None or other.shape is None else self.shape + other.shape
        return replace(self, n=self.n + other.n, losses=self.losses + other.losses, shape=shape)

    def result(self) -> Estimate:
        """The mean loss, its standard error and limits."""
        sums, mean = self.losses, self.losses.ratio
        if not np.isfinite(mean):
            return Estimate(self.estimator.name, mean, self.n, self.estimator)
        shape = self.shape or LossShape()
        limits = MeanLimits(
            mean=mean,
            n=shape.counted or self.n,
            squares=sums.squares / sums.second**2,
            cubes=shape.cubes(sums) / sums.second**3,
            share=shape.heaviest / sums.second,
            lowest=shape.lowest,
            highest=shape.highest,
            least=self.estimator.least,
            most=self.estimator.most,
        )
        found = self.estimator.of_limits(limits, self.n, shape.needed)
        return found if self.shape else replace(found, withheld="the state was written without cubes of losses")

    def sums(self) -> dict[str, Any]:
        """Sums as texts, extremes as numbers."""
        return {"losses": self.losses.to_list(), "shape": None if self.shape is None else self.shape.to_list()}

    @classmethod
    def revived(cls, estimator: Any, n: int, family: str | None, sums: Mapping[str, Any]) -> Self:
        """The state of such a text."""
        shape = sums.get("shape")
        return cls(
            estimator,
            n,
            family,
            PairSums.from_list(sums["losses"]),
            None if shape is None else LossShape.from_list(shape),
        )


@dataclass(frozen=True)
class LossShape:
    """How skewed losses are: ``sum a^3``, ``sum a^2 w``, ``sum a w^2`` and ``sum w^3`` of ``a = w loss``, and extremes.

    ``lowest`` and ``highest`` are the losses one must reckon with, ``heaviest`` is the largest weight, ``counted`` are the rows
    that have any, and ``needed`` those that an interval needs.
    """

    sums: tuple[int, int, int, int] = (0, 0, 0, 0)
    lowest: float = np.inf
    highest: float = -np.inf
    heaviest: float = 0.0
    counted: int = 0
    needed: int = 2

    @classmethod
    def of(
        cls, score: Score, losses: np.ndarray, weights: np.ndarray | None, predictions: Distribution
    ) -> "LossShape | None":
        """Of the losses of some rows; none where one is infinite."""
        if not np.isfinite(losses).all():
            return None
        w = np.ones(len(losses)) if weights is None else np.asarray(weights, dtype=np.float64)
        a = w * losses
        lowest, highest = score.likely(losses, predictions)
        with np.errstate(over="ignore"):
            terms = (a**3, a**2 * w, a * w**2, w**3)
        if not all(np.isfinite(x).all() for x in terms):
            return None
        sums: Any = tuple(total(x) for x in terms)
        return cls(sums, lowest, highest, float(w.max()), int(np.count_nonzero(w)), score.needs(predictions))

    def __add__(self, other: "LossShape") -> "LossShape":
        return LossShape(
            sums=tuple(x + y for x, y in zip(self.sums, other.sums, strict=True)),  # type: ignore[arg-type]
            lowest=min(self.lowest, other.lowest),
            highest=max(self.highest, other.highest),
            heaviest=max(self.heaviest, other.heaviest),
            counted=self.counted + other.counted,
            needed=max(self.needed, other.needed),
        )

    def cubes(self, losses: PairSums) -> float:
        """``sum (a - R w)^3`` with the mean ``R``, without rounding but that of single cubes."""
        (first, second, *_), (aaa, aab, abb, bbb) = losses.sums, self.sums
        numerator = aaa * second**3 - 3 * aab * first * second**2 + 3 * abb * first**2 * second - bbb * first**3
        return quotient(numerator, second**3 << UNIT)

    def to_list(self) -> list[Any]:
        """Plain data for JSON."""
        return [*to_text(self.sums), self.lowest, self.highest, self.heaviest, self.counted, self.needed]

    @classmethod
    def from_list(cls, data: Sequence[Any]) -> Self:
        """The shape of :meth:`to_list`."""
        sums: Any = tuple(int(x) for x in from_text(data[:4]))
        return cls(sums, *map(float, data[4:7]), *map(int, data[7:]))  # type: ignore[arg-type]
