"""Values that a row may take: their mean distance from each other and from a target."""

import numpy as np


def mean_distance(members: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """The mean of ``||X - X'||`` over pairs of different members, ``(n,)``; zero for a single one.

    Members ``(n, m)`` or ``(n, m, d)``, equally likely or with weights ``(n, m)`` that sum to one. By sorting on a line,
    O(n m log m); over all pairs of vectors, O(n m^2 d).

    >>> mean_distance(np.array([[0.0, 1.0, 3.0]]))  # (1 + 2 + 3) / 3
    array([2.])
    >>> mean_distance(np.array([[0.0, 1.0, 3.0]]), np.array([[0.5, 0.5, 0.0]]))
    array([1.])
    """
    m = members.shape[1]
    if m == 1:
        return np.zeros(len(members))
    w = np.full(members.shape[:2], 1 / m) if weights is None else weights
    total = _on_a_line(members, w) if members.ndim == 2 else _of_vectors(members, w)
    pairs = 1 - (w**2).sum(axis=1)
    return total / np.where(pairs > 1e-15, pairs, 1.0)


def _on_a_line(members: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """``sum_ij w_i w_j |x_i - x_j| = 2 sum_i w_i x_i (w of those up to i - w of those from i on)``, members in order."""
    order = np.argsort(members, axis=1)
    x, w = (np.take_along_axis(part, order, axis=1) for part in (members, weights))
    x = x - x[:, :1]  # which changes nothing but rounding
    return 2 * (w * x * (2 * np.cumsum(w, axis=1) - w - 1)).sum(axis=1)


def _of_vectors(members: np.ndarray, weights: np.ndarray) -> np.ndarray:
    total = np.zeros(len(members))
    for lag in range(1, members.shape[1]):  # every pair, in both orders
        w = weights * np.roll(weights, lag, axis=1)
        total += (w * np.sqrt(((members - np.roll(members, lag, axis=1)) ** 2).sum(axis=2))).sum(axis=1)
    return total


def distance_from(members: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """The mean distance of the members from targets ``(..., n)`` or ``(..., n, d)``, ``(..., n)``; O(n m d) a stack.

    >>> distance_from(np.array([[0.0, 1.0, 3.0]]), np.array([[1.0], [3.0]])).ravel()
    array([1.        , 1.66666667])
    """
    w = np.full(members.shape[:2], 1 / members.shape[1]) if weights is None else weights
    stack = y.reshape(-1, *y.shape[y.ndim - members.ndim + 1 :])
    values = np.stack([(w * _length(members - one[:, None])).sum(axis=1) for one in stack])
    return values.reshape(*y.shape[: y.ndim - members.ndim + 1], len(members))


def _length(difference: np.ndarray) -> np.ndarray:
    return np.abs(difference) if difference.ndim == 2 else np.sqrt((difference**2).sum(axis=2))
