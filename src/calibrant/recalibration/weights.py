"""For how many rows weights stand: they are relative, so that a constant times all of them changes nothing."""

import numpy as np


def effective_rows(weights: np.ndarray | None, n: int) -> float:
    """The number of rows of equal weight that tell as much: ``(sum w)^2 / sum w^2``. Kish (1965).

    >>> round(effective_rows(np.array([1.0, 3.0]), 2), 6), effective_rows(np.array([5.0, 5.0, 0.0]), 3)
    (1.6, 2.0)
    """
    return float(in_rows(weights, n).sum())


def in_rows(weights: np.ndarray | None, n: int) -> np.ndarray:
    """For how many of the effective rows each of n rows stands.

    >>> in_rows(np.array([2.0, 6.0]), 2), in_rows(np.array([0.5, 1.5]), 2)
    (array([0.4, 1.2]), array([0.4, 1.2]))
    """
    if weights is None:
        return np.ones(n)
    w = weights / weights.max()  # rows that count alike stand for one row each, to the last digit
    found: np.ndarray = w * (w.sum() / (w @ w))
    return found


def shares(weights: np.ndarray | None, n: int) -> tuple[np.ndarray, float]:
    """Weights that sum to 1, and for how many rows they stand.

    >>> share, rows = shares(np.array([1.0, 3.0]), 2)
    >>> share, round(rows, 6)
    (array([0.25, 0.75]), 1.6)
    """
    w = in_rows(weights, n)
    return w / w.sum(), float(w.sum())
