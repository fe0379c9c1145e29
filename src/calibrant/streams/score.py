"""Proper scores, and other means over rows, of a stream."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.estimators.scores import Score
from calibrant.results import Estimate
from calibrant.streams.base import SumState, family_of
from calibrant.streams.pair_sums import PairSums
from calibrant.typing import Array


@dataclass(frozen=True, eq=False)
class ScoreState(SumState):
    """What a mean loss and its standard error need to know of the rows so far: five sums without rounding.

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

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, Score):
            raise InputError(f"estimator must be a score such as Brier(); got {self.estimator!r}")

    def of_rows(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Self:
        """The sums of these rows."""
        losses = to_numpy(self.estimator.losses(targets, predictions)).astype(np.float64)
        sums = PairSums.of(losses) if weights is None else PairSums.of(losses * weights, weights)
        return replace(self, n=len(predictions), family=family_of(predictions), losses=sums)

    def joined(self, other: Self) -> Self:
        """All sums added."""
        return replace(self, n=self.n + other.n, losses=self.losses + other.losses)

    def result(self) -> Estimate:
        """The mean loss and its standard error."""
        spread = np.sqrt(self.losses.squares) / self.losses.second
        return self.estimator.of_mean(self.losses.ratio, float(spread), self.n, self.n)

    def sums(self) -> dict[str, Any]:
        """Five sums."""
        return {"losses": self.losses.to_list()}

    @classmethod
    def revived(cls, estimator: Any, n: int, family: str | None, sums: Mapping[str, Any]) -> Self:
        """The state of such a text."""
        return cls(estimator, n, family, PairSums.from_list(sums["losses"]))
