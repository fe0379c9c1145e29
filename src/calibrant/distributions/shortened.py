"""A line with long empty stretches cut short, so that a few numbers far out do not make it long."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant._array import to_numpy
from calibrant.distributions.base import matched
from calibrant.typing import Array


@dataclass(frozen=True, eq=False)
class ShortenedLine:
    """Numbers below and above a range, and how far each is moved towards it.

    Of two numbers whose distance is at most ``reach``, as of any two within the range, the distance stays; others stay at least
    that far apart. So a kernel that is zero beyond its reach sees no difference.

    >>> line = ShortenedLine.of(0.0, 1.0, np.array([0.5, 100.0, 102.0, 1e6]), reach=5.0)
    >>> line(np.array([0.5, 100.0, 102.0, 1e6])), line.span
    (array([ 0.5,  6. ,  8. , 13. ]), 13.0)
    """

    low: float
    high: float
    below: np.ndarray
    above: np.ndarray
    moves: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(cls, low: float, high: float, points: np.ndarray, reach: float) -> Self:
        """For all points that will be asked for; nothing is cut between ``low`` and ``high``."""
        below, above = np.unique(points[points < low]), np.unique(points[points > high])
        excess = [np.maximum(np.diff(end) - reach, 0) for end in (np.append(below, low), np.insert(above, 0, high))]
        moves = np.cumsum(excess[0][::-1])[::-1], np.cumsum(excess[1])
        return cls(low, high, below, above, moves)

    def __call__(self, y: Array) -> Array:
        """Where these points lie on the shortened line."""
        host = to_numpy(y)
        move = np.zeros(host.shape, dtype=np.float64)
        for side, inside, moves, sign in (
            (self.below, host < self.low, self.moves[0], 1),
            (self.above, host > self.high, self.moves[1], -1),
        ):
            move[inside] = sign * moves[np.searchsorted(side, host[inside])]
        return y + matched(move.astype(host.dtype), y) if move.any() else y

    @property
    def span(self) -> float:
        """The length of all that is left."""
        ends = np.array([self.low, self.high, *self.below[:1], *self.above[-1:]])
        return float(np.ptp(self(ends)))
