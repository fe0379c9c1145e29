"""Smoothing of masses on a grid over [0, 1] with a Gaussian kernel that is reflected at both ends.

A cosine series is even around 0 and 1, which is all reflections at once: a kernel damps its terms, and nothing else.
"""

from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csc_array


class GridPlaces(NamedTuple):
    """Where rows lie on a grid of equal cells: the node to the left of each, and what of it goes to the next."""

    left: np.ndarray
    part: np.ndarray
    cells: int

    @classmethod
    def of(cls, scores: np.ndarray, cells: int) -> Self:
        """Scores in [0, 1], ``(n,)``.

        >>> GridPlaces.of(np.array([0.0, 0.3, 1.0]), 2).part.round(1)
        array([0. , 0.6, 1. ])
        """
        position = scores * cells
        left = np.minimum(position.astype(np.intp), cells - 1)
        return cls(left, position - left, cells)

    def mass(self, weights: np.ndarray) -> np.ndarray:
        """The weights, shared out linearly between neighbours and added up at the nodes, ``(cells + 1,)``.

        >>> GridPlaces.of(np.array([0.0, 0.25, 1.0]), 2).mass(np.array([1.0, 2.0, 4.0]))
        array([2., 1., 4.])
        """
        far, nodes = weights * self.part, self.cells + 1
        return np.bincount(self.left, weights - far, nodes) + np.bincount(self.left + 1, far, nodes)

    def matrix(self, weights: np.ndarray) -> "csc_array":
        """The matrix ``(cells + 1, n)`` that does this with ``weights`` times any values of the rows."""
        from scipy.sparse import csc_array

        rows = np.stack([self.left, self.left + 1], axis=1).ravel()
        values = np.stack([(1 - self.part) * weights, self.part * weights], axis=1).ravel()
        return csc_array((values, rows, np.arange(0, len(rows) + 1, 2)), shape=(self.cells + 1, len(weights)))


def cosine_sums(mass: np.ndarray) -> np.ndarray:
    """``sum_j mass_j cos(pi k t_j)`` over the nodes t of a grid, for ``k = 0, 1, ...``; masses are ``(..., nodes)``.

    >>> cosine_sums(np.array([1.0, 2.0, 4.0]))
    array([ 7., -3.,  3.])
    """
    from scipy.fft import dct

    whole = mass.copy()
    whole[..., [0, -1]] *= 2  # the transform takes its ends by half
    return dct(whole, type=1, axis=-1) / 2


def damping(bandwidths: np.ndarray, count: int) -> np.ndarray:
    """What Gaussian kernels with these standard deviations leave of the first terms, ``(bandwidths, count)``.

    >>> damping(np.array([0.0, 1 / np.pi]), 2).round(3).tolist()
    [[1.0, 1.0], [1.0, 0.607]]
    """
    return np.exp(-((np.pi * bandwidths[:, None] * np.arange(count)) ** 2) / 2)
