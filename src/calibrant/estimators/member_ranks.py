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
