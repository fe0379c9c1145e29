"""Equally likely values of a row: their mean distance from each other and from a target."""

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.ensemble import Ensemble

ROWS = 512
"""Rows at a time, few enough to stay in the cache."""


def members_of(predictions: Distribution, n_draws: int, seed: int) -> np.ndarray:
    """The members of an ensemble, or as many draws of another family, ``(n, m)`` or ``(n, m, d)``."""
    if isinstance(predictions, Ensemble):
        return to_numpy(predictions.members).astype(np.float64)
    return np.moveaxis(predictions.sample(np.random.default_rng(seed), n_draws), 0, 1).astype(np.float64)


def check_fair(predictions: Distribution) -> None:
    """Refuse what a fair score has no meaning for."""
    if not isinstance(predictions, Ensemble):
        raise InputError(
            f"fair=True corrects for the number of members of an Ensemble; got {type(predictions).__name__} predictions"
        )
    if predictions.members.shape[1] < 2:
        raise InputError("fair=True needs at least 2 members a row; got 1")


def mean_distance(members: np.ndarray) -> np.ndarray:
    """The mean of ``||X - X'||`` over pairs of different members, ``(n,)``; zero for a single one.

    By sorting on a line, O(n m log m); over all pairs of vectors, O(n m^2 d).

    >>> mean_distance(np.array([[0.0, 1.0, 3.0]]))  # (1 + 2 + 3) / 3
    array([2.])
    """
    m = members.shape[1]
    if m == 1:
        return np.zeros(len(members))
    if members.ndim == 2:
        return np.sort(members, axis=1) @ np.arange(1 - m, m, 2) * (2 / (m * (m - 1)))
    return np.concatenate([_mean_over_pairs(members[start : start + ROWS]) for start in range(0, len(members), ROWS)])


def _mean_over_pairs(members: np.ndarray) -> np.ndarray:
    """Distances of all pairs of vectors, one lag at a time."""
    m = members.shape[1]
    total = sum(_distance(members[:, lag:] - members[:, :-lag]).sum(axis=1) for lag in range(1, m))
    return total * (2 / (m * (m - 1)))


def distance_from(members: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The mean distance of the members from targets ``(..., n)`` or ``(..., n, d)``, ``(..., n)``; O(n m d) a stack.

    >>> distance_from(np.array([[0.0, 1.0, 3.0]]), np.array([[1.0], [3.0]])).ravel()
    array([1.        , 1.66666667])
    """
    stack = y.reshape(-1, *y.shape[y.ndim - members.ndim + 1 :])
    values = np.stack([_distance(members - one[:, None]).mean(axis=1) for one in stack])
    return values.reshape(*y.shape[: y.ndim - members.ndim + 1], len(members))


def _distance(difference: np.ndarray) -> np.ndarray:
    return np.abs(difference) if difference.ndim == 2 else np.sqrt(np.einsum("nmd,nmd->nm", difference, difference))
