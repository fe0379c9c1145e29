"""Sums of several columns over the rows of each cell."""

import numpy as np


def cell_sums(cell: np.ndarray, columns: np.ndarray, size: int = 0) -> np.ndarray:
    """Sums of columns ``(n, m)`` over the rows of each cell ``(n,)``, ``(cells, m)``; at least ``size`` cells. O(n m).

    >>> cell_sums(np.array([0, 2, 0]), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    array([[6., 8.],
           [0., 0.],
           [3., 4.]])
    """
    return np.stack([np.bincount(cell, column, minlength=size) for column in columns.T], axis=1)
