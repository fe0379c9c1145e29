"""Cells of whole prediction vectors, for errors of all classes at once."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from calibrant._validate import check_count
from calibrant.estimators.binning import unit_of

ROUNDS = 100
"""Rounds of k-means at most."""


class Partition(ABC):
    """A rule that puts prediction vectors into cells; subclasses are frozen dataclasses.

    Cells depend on predictions alone, never on the order of the rows nor on what happened.
    """

    def cells(self, points: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """The cell of each row of ``(n, k)``, from 0 on; rows without weight have no say, and of others only the ratios."""
        if weights is not None:
            weights = weights / (unit_of(weights) or float(weights @ weights / weights.sum()))
        distinct, which = np.unique(points.astype(np.float64), axis=0, return_inverse=True)
        mass = np.bincount(which.ravel(), weights=weights, minlength=len(distinct)).astype(np.float64)
        cell = np.zeros(len(distinct), dtype=np.intp)
        heavy = mass > 0
        cell[heavy] = self.of_distinct(distinct[heavy], mass[heavy])
        return cell[which.ravel()]

    @abstractmethod
    def of_distinct(self, points: np.ndarray, mass: np.ndarray) -> np.ndarray:
        """The cell of each of some different points in lexicographic order, with the weight of their rows."""


@dataclass(frozen=True)
class MedianVariance(Partition):
    """Cells are halved, at the median of the class whose probability varies most, while halves hold ``min_rows`` rows.

    Widmann, Lindsten & Zachariah (2019).

    >>> MedianVariance(2).cells(np.array([[0.1, 0.9], [0.2, 0.8], [0.7, 0.3], [0.9, 0.1]]))
    array([0, 0, 1, 1])
    """

    min_rows: int = 10

    def __post_init__(self) -> None:
        check_count(self.min_rows, "min_rows")

    def of_distinct(self, points: np.ndarray, mass: np.ndarray) -> np.ndarray:
        """Halve until the halves are small."""
        cell, todo, done = np.zeros(len(points), dtype=np.intp), [np.arange(len(points))], 0
        while todo:
            rows = todo.pop()
            low = _below_median(points[rows], mass[rows])
            if low is not None and min(mass[rows][low].sum(), mass[rows][~low].sum()) >= self.min_rows:
                todo += [rows[~low], rows[low]]
            else:
                cell[rows] = done
                done += 1
        return cell


def _below_median(points: np.ndarray, mass: np.ndarray) -> np.ndarray | None:
    """Which points lie up to the median of the column of largest variance; ``None`` where all are the same."""
    mean = mass @ points / mass.sum()
    variance = mass @ (points - mean) ** 2
    column = points[:, int(np.argmax(variance > variance.max() * (1 - 1e-12)))]
    if column.min() == column.max():
        return None
    order = np.argsort(column, kind="stable")
    reached = np.cumsum(mass[order])
    median = column[order[np.searchsorted(reached, reached[-1] / 2)]]
    return column <= median if median < column.max() else column < median


@dataclass(frozen=True)
class Grid(Partition):
    """Cells of equal width, ``bins`` along each class: most stay empty, and their number grows with the power of classes.

    >>> Grid(2).cells(np.array([[0.1, 0.9], [0.2, 0.8], [0.7, 0.3], [0.9, 0.1]]))
    array([0, 0, 1, 1])
    """

    bins: int = 10

    def __post_init__(self) -> None:
        check_count(self.bins, "bins")

    def of_distinct(self, points: np.ndarray, mass: np.ndarray) -> np.ndarray:
        """The cells that are not empty, in lexicographic order."""
        index = np.minimum((points * self.bins).astype(np.int64), self.bins - 1)
        return np.unique(index, axis=0, return_inverse=True)[1].ravel()


@dataclass(frozen=True)
class KMeans(Partition):
    """At most ``n_cells`` cells around centres that k-means finds; centres are first spread out at random, by the seed.

    >>> KMeans(2).cells(np.array([[0.1, 0.9], [0.2, 0.8], [0.7, 0.3], [0.9, 0.1]])).tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
    True
    """

    n_cells: int = 15
    seed: int = 0

    def __post_init__(self) -> None:
        check_count(self.n_cells, "n_cells")
        check_count(self.seed, "seed", least=0)

    def of_distinct(self, points: np.ndarray, mass: np.ndarray) -> np.ndarray:
        """Lloyd's rounds from centres chosen as Arthur & Vassilvitskii (2007) do."""
        centres = self._spread(points, mass)
        cell = _nearest(points, centres)
        for _ in range(ROUNDS):
            total = np.bincount(cell, weights=mass, minlength=len(centres))
            sums = np.stack([np.bincount(cell, weights=mass * x, minlength=len(centres)) for x in points.T], axis=1)
            centres = np.where(total[:, None] > 0, sums / np.where(total > 0, total, 1)[:, None], centres)
            moved = _nearest(points, centres)
            if np.array_equal(moved, cell):
                break
            cell = moved
        return cell

    def _spread(self, points: np.ndarray, mass: np.ndarray) -> np.ndarray:
        rng = np.random.default_rng(self.seed)
        distance = np.full(len(points), np.inf)
        chosen: list[int] = []
        share = mass / mass.sum()
        for _ in range(min(self.n_cells, len(points))):
            chosen.append(int(rng.choice(len(points), p=share)))
            distance = np.minimum(distance, ((points - points[chosen[-1]]) ** 2).sum(axis=1))
            if not np.any(distance):
                break
            share = mass * distance / (mass @ distance)
        return points[chosen]


def _nearest(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """The nearest centre of each point; products are taken around the middle of the centres."""
    middle = centres.mean(axis=0)
    points, centres = points - middle, centres - middle
    return np.argmin((centres**2).sum(axis=1) - 2 * points @ centres.T, axis=1)
