"""Rows in the order of their scores, with running totals: the sums of any bins in a few subtractions."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant.estimators.binning import Ties


@dataclass(frozen=True, eq=False)
class Ordered:
    """Distinct scores in their order (every row with ``ties="split"``), and what lies below each.

    ``weight`` and ``predicted`` have one entry more than there are scores: totals of everything before the first, before
    the second and so on. Cuts are positions in them.
    """

    scores: np.ndarray
    weight: np.ndarray
    predicted: np.ndarray
    order: np.ndarray
    ends: np.ndarray
    weights: np.ndarray | None

    @classmethod
    def of(cls, scores: np.ndarray, weights: np.ndarray | None, ties: Ties = "together") -> Self:
        """Sort once."""
        order = np.argsort(scores, kind="stable" if ties == "split" else None)
        if weights is not None:
            order = order[weights[order] > 0]
        ordered = scores[order]
        last = np.ones(len(order), dtype=bool)
        if ties == "together":
            np.not_equal(ordered[1:], ordered[:-1], out=last[:-1])
        ends = np.flatnonzero(last) + 1
        w = None if weights is None else weights[order]
        weight = np.concatenate([[0], ends]).astype(np.float64) if w is None else _totals(w, ends)
        predicted = _totals(ordered.astype(np.float64) if w is None else ordered * w, ends)
        return cls(ordered[ends - 1], weight, predicted, order, ends, w)

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def is_whole(self) -> bool:
        """Whether sums of weights are exact: they are whole numbers."""
        return self.weights is None or not np.any(self.weights != np.floor(self.weights))

    def observed(self, happened: np.ndarray) -> np.ndarray:
        """Weight of the rows where the event happened before each score, ``(m, scores + 1)``, for ``(m, n)`` answers."""
        there = happened[:, self.order]
        if self.weights is not None:
            return _totals(there * self.weights, self.ends)
        return _totals(there, self.ends, dtype=np.int32 if len(self.order) < 1 << 31 else np.int64)


def _totals(values: np.ndarray, ends: np.ndarray, dtype: type | None = None) -> np.ndarray:
    """Running totals over the last axis at some positions, from zero on."""
    total = np.cumsum(values, axis=-1, dtype=dtype)
    at = total if len(ends) == total.shape[-1] else total[..., ends - 1]
    return np.concatenate([np.zeros((*at.shape[:-1], 1), at.dtype), at], axis=-1)
