"""Cubic B-splines with equal steps on [0, 1], and what keeps their coefficients smooth."""

import numpy as np

SHRINKAGE = 0.1


def cubic_basis(u: np.ndarray, n_splines: int) -> np.ndarray:
    """Values of the splines at ``u`` in [0, 1], in a last axis of length ``n_splines``; four are not 0, and they sum to 1.

    >>> cubic_basis(np.array([0.0, 0.5, 1.0]), 5).round(3)
    array([[0.167, 0.667, 0.167, 0.   , 0.   ],
           [0.   , 0.167, 0.667, 0.167, 0.   ],
           [0.   , 0.   , 0.167, 0.667, 0.167]])
    """
    n_steps = n_splines - 3
    steps = u * n_steps
    cell = np.clip(steps.astype(np.int64), 0, n_steps - 1)
    t = steps - cell
    r = 1 - t
    values = np.stack([r**3, 3 * t**3 - 6 * t**2 + 4, 3 * r**3 - 6 * r**2 + 4, t**3], axis=-1) / 6
    basis = np.zeros((*u.shape, n_splines))
    np.put_along_axis(basis, cell[..., None] + np.arange(4), values, axis=-1)
    return basis


def roughness(n_splines: int) -> np.ndarray:
    """Squared second differences of the coefficients plus a tenth of their squares, ``D2' D2 + I / 10``."""
    second = np.diff(np.eye(n_splines), n=2, axis=0)
    penalty: np.ndarray = second.T @ second + SHRINKAGE * np.eye(n_splines)
    return penalty
