"""The rank of a target among the members of an ensemble."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from calibrant._array import to_numpy
from calibrant.typing import Array

Prerank: TypeAlias = Literal["average", "band"]
"""How vectors are put in order: by the average of the ranks of their coordinates, or by how deep they lie in the band of all."""


@dataclass(frozen=True, eq=False)
class MemberRanks:
    """Where targets stand among m members ``(n, m)`` or ``(n, m, d)``, as a range of levels between 0 and 1.

    A target above b members and equal to t of them has the levels from ``b / (m + 1)`` to ``(b + t + 1) / (m + 1)``: a random
    number in between is uniform whenever target and members could be exchanged, ties or not. Members that are missing (NaN)
    do not count, so m may differ from row to row. Vectors are ordered by a pre-rank in the pool of the members and
    the target: ``average`` sees that all coordinates are too low or too high, ``band`` that targets lie
    too far out or too deep inside. O(n m d) a target. Thorarinsdottir, Scheuerer & Heinz (2016).

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
        below, upto = (np.stack(counts) for counts in zip(*map(self._counts, stack), strict=True))
        size = self.numbers + 1
        shape = (*y.shape[: y.ndim - own], len(self.members))
        return (below / size).reshape(shape), ((upto + 1) / size).reshape(shape)

    @cached_property
    def numbers(self) -> np.ndarray:
        """Members of each row."""
        return np.isfinite(self.members.reshape(*self.members.shape[:2], -1)[:, :, 0]).sum(axis=1)

    def _counts(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Members below, and at most at, one target a row."""
        members, target = (self.members, y) if self.members.ndim == 2 else self._preranks(y)
        return (members < target[:, None]).sum(axis=1), (members <= target[:, None]).sum(axis=1)

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
