"""Rows shared out over a grid, where kernel sums are cosine series; and the bandwidth that predicts rows left out best."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Self

import numpy as np

LEAST, MOST = 1e-4, 10.0
"""Bandwidths in use: below, the grid would grow without end; above, every curve is a constant."""

FINE, COARSE = 32, 8
"""Nodes a bandwidth, for the curve and for the choice of its bandwidth: relative errors of order 1/(8 FINE^2)."""

ALONE = 0.01
"""A row whose neighbours together weigh less than this share of it has none."""

CANDIDATES = np.geomspace(2, 0.02, 12)
"""Bandwidths tried, in standard deviations of the scores, the smoothest first."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Rows shared out linearly between the nodes of a grid: weight, and weight of the events."""

    weight: np.ndarray
    event: np.ndarray

    def smoothed(self, bandwidths: np.ndarray) -> np.ndarray:
        """Weight and events under the reflected kernel, up to one factor, ``(2, bandwidths, nodes)``."""
        from scipy.fft import dct, idct

        # A cosine series is even around 0 and 1: all reflections at once. End nodes are their own mirror images.
        mass = np.stack([self.weight, self.event])
        mass[:, [0, -1]] *= 2
        return idct(dct(mass, type=1)[:, None] * self._damping(bandwidths), type=1)

    def kernel(self, bandwidths: np.ndarray) -> np.ndarray:
        """The kernel, on the circle of two mirrored intervals, at distances of 0, 1, 2, ... cells."""
        from scipy.fft import idct

        return idct(self._damping(bandwidths), type=1)

    def own(self, bandwidths: np.ndarray) -> np.ndarray:
        """What a row of weight one at each node adds there, ``(bandwidths, nodes)``."""
        kernel = self.kernel(bandwidths)
        nodes = np.arange(kernel.shape[-1])
        mirror = 2 * np.minimum(nodes, nodes[::-1])
        return kernel[:, :1] + kernel[:, mirror]

    def _damping(self, bandwidths: np.ndarray) -> np.ndarray:
        """What the kernel leaves of each frequency."""
        return np.exp(-((np.pi * bandwidths[:, None] * np.arange(len(self.weight))) ** 2) / 2)


@dataclass(frozen=True, eq=False)
class Places:
    """Where rows lie on a grid: the node to the left of each, and what of its weight goes to that one and to the next."""

    left: np.ndarray
    near: np.ndarray
    far: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(cls, scores: np.ndarray, weights: np.ndarray, cells: int) -> Self:
        """Scores in [0, 1] on a grid of so many cells."""
        place = scores * cells
        left = np.minimum(place.astype(np.intp), cells - 1)
        far = weights * (place - left)
        near = weights - far
        return cls(left, near, far, _mass(left, near, far, cells + 1))

    def grid(self, happened: np.ndarray) -> Grid:
        """The grid of rows whose event happened, or did not."""
        return Grid(self.weight, _mass(self.left, self.near * happened, self.far * happened, len(self.weight)))


def _mass(left: np.ndarray, near: np.ndarray, far: np.ndarray, nodes: int) -> np.ndarray:
    return np.bincount(left, near, nodes) + np.bincount(left + 1, far, nodes)


def cells_of(least: float) -> int:
    """The cells of a grid of ``2^m + 1`` nodes, at least 513 and at least so many.

    >>> cells_of(100), cells_of(600.5)
    (512, 1024)
    """
    return max(512, 1 << int(np.ceil(np.log2(least))))


def grids_of(scores: np.ndarray, weights: np.ndarray) -> Callable[[int], Places]:
    """The places of rows on grids of any number of cells; the last two are kept."""
    return lru_cache(maxsize=2)(partial(Places.of, scores, weights))


def bandwidth_of(
    scores: np.ndarray, weights: np.ndarray, grids: Callable[[int], Places]
) -> Callable[[np.ndarray], float]:
    """The bandwidth with the least leave-one-out squared error, as a function of what happened; of equals the smoothest."""
    bandwidths, unit = np.clip(CANDIDATES * _spread(scores, weights), LEAST, MOST), _unit(weights)
    coarse, rounding = grids(cells_of(COARSE / bandwidths[-1])), 1e-12 * weights.sum()

    def choose(happened: np.ndarray) -> float:
        errors = _left_out_errors(coarse.grid(happened), bandwidths, unit)
        equal = errors <= errors.min() * (1 + 1e-9) + rounding
        return float(bandwidths[np.argmax(equal)])

    return choose


def _unit(weights: np.ndarray) -> float:
    """The weight of one row: the mean, weighted by itself."""
    return float(weights @ weights / weights.sum())


def _spread(scores: np.ndarray, weights: np.ndarray) -> float:
    """Standard deviation of the scores; one where they are all equal, and no bandwidth matters."""
    if np.ptp(scores) == 0:
        return 1.0
    mean = np.average(scores, weights=weights)
    return float(np.sqrt(np.average((scores - mean) ** 2, weights=weights)))


def _left_out_errors(grid: Grid, bandwidths: np.ndarray, unit: float) -> np.ndarray:
    """Sum over rows of the squared error of the curve fitted to the others, one a bandwidth."""
    weight, event = grid.smoothed(bandwidths)
    own = unit * grid.own(bandwidths)
    others = weight - own
    alone = others < ALONE * own
    total = max(grid.weight.sum() - unit, unit)
    others = np.where(alone, total, others)
    missed = np.where(alone, grid.event.sum() - unit, event - own) / others  # the fit to the others, for an event
    false = np.where(alone, grid.event.sum(), event) / others  # and for a row where it did not happen
    return (1 - missed) ** 2 @ grid.event + false**2 @ (grid.weight - grid.event)
