"""Decision trees as plain arrays, so that what boosting found can be written down and read without its library."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant._validate import InputError


@dataclass(frozen=True, eq=False)
class Trees:
    """T trees whose values add up. A row goes left at a node where ``x[feature] <= threshold``.

    Nodes ``(m,)`` have a feature, a threshold, and a left and a right child: another node, or the leaf i as ``~i``.
    ``roots``, ``(T,)``, are nodes or leaves. A leaf has ``values``, ``(leaves, width)``, that are added to as many columns
    from its tree's first one on, ``columns``, ``(T,)``. O(n) a level.

    >>> stump = Trees([0], [0.5], [~0], [~1], roots=[0], columns=[1], values=[[-1.0], [1.0]])
    >>> stump(np.array([[0.2], [0.7]]), 2)
    array([[ 0., -1.], [ 0.,  1.]])
    """

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    roots: np.ndarray
    columns: np.ndarray
    values: np.ndarray

    def __post_init__(self) -> None:
        for name in ("feature", "left", "right", "roots", "columns"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.int64))
        for name in ("threshold", "values"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        if self.values.ndim != 2:  # JSON has no shape for no leaves
            object.__setattr__(self, "values", np.empty((0, 1)))
        m, ends = len(self.feature), np.concatenate([self.left, self.right, self.roots])
        if not len(self.threshold) == len(self.left) == len(self.right) == m or len(self.columns) != len(self.roots):
            raise InputError("trees need a threshold and two children a node, and a column a root")
        own = np.arange(m)
        if np.any((self.left >= 0) & (self.left <= own)) or np.any((self.right >= 0) & (self.right <= own)):
            raise InputError("children of trees must come after their parents")
        if len(ends) and (ends.max() >= m or ends.min() < -len(self.values)):
            raise InputError("trees must end in leaves that have values")

    def to_dict(self) -> dict[str, np.ndarray]:
        """The arrays, for JSON."""
        return vars(self)

    @classmethod
    def none(cls, width: int) -> Self:
        """No tree at all."""
        empty = np.empty(0)
        return cls(empty, empty, empty, empty, empty, empty, np.empty((0, width)))

    def __call__(self, x: np.ndarray, n_columns: int) -> np.ndarray:
        """Sums of all trees' values, ``(n, n_columns)``, for features ``(n, d)``."""
        total = np.zeros((len(x), n_columns))
        for root, column in zip(self.roots, self.columns, strict=True):
            total[:, column : column + self.values.shape[1]] += self.values[self._leaf(x, root)]
        return total

    def _leaf(self, x: np.ndarray, root: int) -> np.ndarray:
        """The leaf of each row, ``(n,)``."""
        place = np.full(len(x), root)
        rows = np.arange(len(x)) if root >= 0 else np.arange(0)
        while len(rows):
            node = place[rows]
            is_left = x[rows, self.feature[node]] <= self.threshold[node]
            place[rows] = np.where(is_left, self.left[node], self.right[node])
            rows = rows[place[rows] >= 0]
        return ~place

    def times(self, factor: float) -> "Trees":
        """The same trees with all values multiplied."""
        return Trees(**{**vars(self), "values": factor * self.values})


def joined(several: Sequence[Trees], width: int) -> Trees:
    """All trees in one; none where there are none."""
    if not several:
        return Trees.none(width)
    nodes = np.cumsum([0, *(len(part.feature) for part in several)])
    leaves = np.cumsum([0, *(len(part.values) for part in several)])

    def moved(name: str) -> np.ndarray:
        parts = [getattr(part, name) for part in several]
        return np.concatenate([np.where(x >= 0, x + n, x - m) for x, n, m in zip(parts, nodes, leaves, strict=False)])

    same = {name: np.concatenate([getattr(part, name) for part in several]) for name in SAME}
    return Trees(**same, **{name: moved(name) for name in ("left", "right", "roots")})


SAME = ("feature", "threshold", "columns", "values")
"""What trees keep when they join others."""
