"""Smoothing of masses on a grid over [0, 1] with a Gaussian kernel that is reflected at both ends.

A cosine series is even around 0 and 1, which is all reflections at once: a kernel damps its terms, and nothing else.
"""

from dataclasses import dataclass
from functools import cached_property
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


@dataclass(frozen=True, eq=False)
class ReflectedKernels:
    """Gaussian kernels of several bandwidths between ``count`` neighbouring nodes of a grid, from the node ``first`` on.

    Reflected at both ends, the kernel of the nodes i and j is ``c(i - j) + c(i + j)``, where c is even and goes around the circle
    of two mirrored intervals. All nodes are smoothed by cosines, a part by a convolution that never sees the others.

    >>> all_nodes, two = (ReflectedKernels(np.array([0.1]), 32, *part) for part in ((0, 33), (3, 2)))
    >>> all_nodes(np.eye(33)[3])[0, 3:5].round(4), two(np.array([1.0, 0.0]))[0].round(4)
    (array([0.1462, 0.1301]), array([0.1462, 0.1301]))
    """

    bandwidths: np.ndarray
    cells: int
    first: int
    count: int

    def __call__(self, mass: np.ndarray) -> np.ndarray:
        """Masses at the nodes, ``(count,)``, smoothed, ``(bandwidths, count)``."""
        if self._is_whole:
            from scipy.fft import idct

            return idct(2 * cosine_sums(mass) * self._damping, type=1)
        from scipy.fft import irfft, rfft

        straight, mirrored = self._spectra
        sums = straight * rfft(mass, self._size) + mirrored * rfft(mass[::-1], self._size)
        return irfft(sums, self._size)[:, : self.count]

    def around(self, node: int) -> np.ndarray:
        """The kernels between one of the nodes, counted from the first, and all of them, ``(bandwidths, count)``."""
        nodes = np.arange(self.count)
        return self._straight[:, np.abs(node - nodes)] + self._mirrored[:, node + nodes]

    @property
    def own(self) -> np.ndarray:
        """The kernels between each node and itself, ``(bandwidths, count)``."""
        return self._straight[:, :1] + self._mirrored[:, ::2]

    @property
    def _is_whole(self) -> bool:
        return self.count == self.cells + 1

    @cached_property
    def _damping(self) -> np.ndarray:
        return damping(self.bandwidths, self.count)

    @cached_property
    def _straight(self) -> np.ndarray:
        """``c`` at distances of 0, 1, 2, ... cells."""
        if self._is_whole:
            from scipy.fft import idct

            return idct(self._damping, type=1)
        return self._circle(np.arange(self.count))

    @cached_property
    def _mirrored(self) -> np.ndarray:
        """``c(i + j)`` for all that i and j add up to."""
        if self._is_whole:
            return np.concatenate([self._straight, self._straight[:, -2::-1]], axis=1)
        return self._circle(2 * self.first + np.arange(2 * self.count - 1))

    def _circle(self, distance: np.ndarray) -> np.ndarray:
        """``c``: the Gaussian and its copies, each once around the circle from the next."""
        h = self.bandwidths[:, None]
        rounds = 2 * np.arange(-(1 + int(4.5 * h.max())), 2 + int(4.5 * h.max()))
        return sum(np.exp(-(((distance / self.cells - r) / h) ** 2) / 2) for r in rounds) / (
            self.cells * h * np.sqrt(2 * np.pi)
        )

    @cached_property
    def _size(self) -> int:
        from scipy.fft import next_fast_len

        return int(next_fast_len(2 * self.count - 1, real=True))

    @cached_property
    def _spectra(self) -> tuple[np.ndarray, np.ndarray]:
        """Transforms of ``c(i - j)`` and, for masses in reverse order, of ``c(i + j)``."""
        from scipy.fft import rfft

        n, both = self.count, np.zeros((2, len(self.bandwidths), self._size))
        both[0, :, :n], both[1, :, :n] = self._straight, self._mirrored[:, n - 1 :]
        if n > 1:
            both[0, :, 1 - n :], both[1, :, 1 - n :] = self._straight[:, :0:-1], self._mirrored[:, : n - 1]
        straight, mirrored = rfft(both)
        return straight, mirrored
