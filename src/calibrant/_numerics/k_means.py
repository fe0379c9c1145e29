"""K-means: centres such that points are near to one of them."""

import numpy as np

from calibrant._numerics.sums import cell_sums

ROUNDS = 100
"""At most."""


def k_means(points: np.ndarray, mass: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """At most so many centres of points with masses: Lloyd's rounds from centres chosen as Arthur & Vassilvitskii (2007) do.

    >>> sorted(k_means(np.array([[0.0], [0.2], [1.0]]), np.ones(3), 2, np.random.default_rng(0)).ravel().tolist())
    [0.1, 1.0]
    """
    centres = _spread(points, mass, count, rng)
    cell = nearest(points, centres)
    for _ in range(ROUNDS):
        total = np.bincount(cell, weights=mass, minlength=len(centres))
        sums = cell_sums(cell, mass[:, None] * points, len(centres))
        centres = np.where(total[:, None] > 0, sums / np.where(total > 0, total, 1)[:, None], centres)
        moved = nearest(points, centres)
        if np.array_equal(moved, cell):
            break
        cell = moved
    return centres


def _spread(points: np.ndarray, mass: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Points far from each other: each drawn in proportion to its squared distance from those drawn before."""
    distance = np.full(len(points), np.inf)
    chosen: list[int] = []
    share = mass / mass.sum()
    for _ in range(min(count, len(points))):
        chosen.append(int(rng.choice(len(points), p=share)))
        distance = np.minimum(distance, ((points - points[chosen[-1]]) ** 2).sum(axis=1))
        if not np.any(distance):
            break
        share = mass * distance / (mass @ distance)
    return points[chosen]


def nearest(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """The nearest centre of each point; products are taken around the middle of the centres."""
    middle = centres.mean(axis=0)
    points, centres = points - middle, centres - middle
    return np.argmin((centres**2).sum(axis=1) - 2 * points @ centres.T, axis=1)
