"""For how many rows weights stand."""

import numpy as np


def unit_weight(weights: np.ndarray) -> float:
    """The weight of one row: a whole weight stands for so many rows, others for as many as they are worth together.

    >>> unit_weight(np.array([1.0, 3.0])), unit_weight(np.array([0.5, 0.5]))
    (1.0, 0.5)
    """
    return 1.0 if np.all(weights == np.floor(weights)) else float(weights @ weights / weights.sum())


def in_rows(weights: np.ndarray | None, n: int) -> np.ndarray:
    """For how many rows each of n rows stands.

    >>> in_rows(np.array([2.0, 6.0]), 2), in_rows(np.array([0.5, 1.5]), 2)
    (array([2., 6.]), array([0.4, 1.2]))
    """
    return np.ones(n) if weights is None else weights / unit_weight(weights)


def one_row(w: np.ndarray) -> np.ndarray:
    """What is gone without one of the rows that weights ``w``, counted in rows, stand for: 1 of whole ones, all of others.

    >>> one_row(np.array([2.0, 6.0])), one_row(np.array([0.4, 1.2]))
    (array([1., 1.]), array([0.4, 1.2]))
    """
    return np.ones_like(w) if np.all(w == np.floor(w)) else w


def shares(weights: np.ndarray | None, n: int) -> tuple[np.ndarray, float]:
    """Weights that sum to 1, and for how many rows they stand.

    >>> shares(np.array([1.0, 3.0]), 2)
    (array([0.25, 0.75]), 4.0)
    """
    w = in_rows(weights, n)
    return w / w.sum(), float(w.sum())
