"""The binned error of whole prediction vectors, and the cells that it is taken over."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np

from calibrant._array import to_numpy
from calibrant._numerics.k_means import k_means, nearest
from calibrant._numerics.sums import cell_sums
from calibrant._validate import InputError, check_count, check_norm
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.estimators.base import BaseEstimator, Statistic
from calibrant.estimators.binned.binning import EqualWidth, lp_norm, unit_of
from calibrant.estimators.limits import ErrorLimits, RootOfSquares, Slack, SumOfGaps, noise_of_rows, scaled
from calibrant.results import Estimate, Table
from calibrant.typing import Array


class Partition(ABC):
    """A rule that puts prediction vectors into cells; subclasses are frozen dataclasses.

    Cells depend on predictions alone, never on the order of the rows nor on what happened.
    """

    def cells(self, points: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """The cell of each row of ``(n, k)``, from 0 on; rows without weight have no say, and of others only the ratios."""
        distinct, which, mass = _distinct(points, weights)
        cell = np.zeros(len(distinct), dtype=np.intp)
        heavy = mass > 0
        cell[heavy] = self.of_distinct(distinct[heavy], mass[heavy])
        return cell[which]

    def settled(self, points: np.ndarray, weights: np.ndarray | None = None) -> Self:
        """The rule with all settings that it takes from the points of rows."""
        return self

    @abstractmethod
    def of_distinct(self, points: np.ndarray, mass: np.ndarray) -> np.ndarray:
        """The cell of each of some different points in lexicographic order, with the weight of their rows."""


def _distinct(points: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The different points in lexicographic order, which of them each row has, and how many rows have each."""
    if weights is not None:
        weights = weights / (unit_of(weights) or float(weights @ weights / weights.sum()))
    distinct, which = np.unique(points.astype(np.float64), axis=0, return_inverse=True)
    mass = np.bincount(which.ravel(), weights=weights, minlength=len(distinct)).astype(np.float64)
    return distinct, which.ravel(), mass


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

    With three classes they are the equal triangles of Popordanoska, Sayer & Blaschko (2022), ``bins`` squared of them.
    ``bins="doane"`` takes as many as Doane (1976) says, on average over the classes.

    >>> Grid(2).cells(np.array([[0.1, 0.9], [0.2, 0.8], [0.7, 0.3], [0.9, 0.1]]))
    array([0, 0, 1, 1])
    """

    bins: int | Literal["doane"] = 10

    def __post_init__(self) -> None:
        if self.bins != DOANE:
            if isinstance(self.bins, str):
                raise InputError(f"bins must be a whole number, or 'doane' to find one; got {self.bins!r}")
            check_count(self.bins, "bins")

    def settled(self, points: np.ndarray, weights: np.ndarray | None = None) -> Self:
        """With a number of bins."""
        if self.bins != DOANE:
            return self
        distinct, _, mass = _distinct(points, weights)
        return replace(self, bins=doane(distinct[mass > 0], mass[mass > 0]))

    def of_distinct(self, points: np.ndarray, mass: np.ndarray) -> np.ndarray:
        """The cells that are not empty, in lexicographic order."""
        n_bins = doane(points, mass) if isinstance(self.bins, str) else self.bins
        index = EqualWidth(n_bins).bins(points).index(points)
        return np.unique(index, axis=0, return_inverse=True)[1].ravel()


DOANE = "doane"


def doane(points: np.ndarray, mass: np.ndarray) -> int:
    """Doane's number of bins, ``1 + log2 n + log2(1 + |g| / sd(g))`` with the skewness g, rounded up on average over columns.

    >>> doane(np.linspace(0, 1, 100)[:, None], np.ones(100))  # without skewness that of Sturges
    8
    """
    n = max(float(mass.sum()), 3.0)
    share = mass / mass.sum()
    away = points - share @ points
    variance, third = share @ away**2, share @ away**3
    skewness = np.abs(third) / np.where(variance > 0, variance, 1) ** 1.5
    noise = np.sqrt(6 * (n - 2) / ((n + 1) * (n + 3)))
    return int(np.ceil(np.mean(1 + np.log2(n) + np.log2(1 + skewness / noise))))


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
        """Of the nearest centre."""
        return nearest(points, k_means(points, mass, self.n_cells, np.random.default_rng(self.seed)))


@dataclass(frozen=True)
class CanonicalECE(BaseEstimator):
    """Expected calibration error over cells of the simplex: is the whole vector of probabilities right?

    ``(sum_b w_b sum_c |fbar_bc - ybar_bc|^p)^(1/p)`` with ``w_b`` the share of rows in cell b, ``fbar_b`` their mean
    prediction, ``ybar_b`` the frequencies of the classes and ``p = norm`` (``inf``: the largest gap). With two classes
    and p = 1 it counts every gap twice. With ``label_binned`` every row's own vector is compared with ``ybar_b``, as in
    Popordanoska, Sayer & Blaschko (2022), who print the mean of powers, before the root. Biased upwards, the more so the
    more cells and classes there are: read it beside the null band of :class:`~calibrant.ExactTest`. Vaicenavicius et al. (2019).

    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(3), 300)
    >>> y = [rng.choice(3, p=row) for row in p]
    >>> round(CanonicalECE(KMeans(10))(y, p).value, 2)
    0.2
    """

    least = 0.0

    cells: Partition = KMeans(15)  # frozen
    norm: float = 1
    label_binned: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.cells, Partition):
            raise InputError(f"cells must be a partition such as KMeans(15) or MedianVariance(); got {self.cells!r}")
        check_norm(self.norm)

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The error with a row per cell."""
        p = _probabilities(predictions)
        rule = replace(self, cells=self.cells.settled(p, weights))
        counts = CellCounts.in_cells(rule.cells.cells(p, weights), p, weights, self.norm, self.label_binned)
        gap = counts.gaps(to_numpy(targets)[None])[0]
        size = lp_norm(gap, np.ones(gap.shape[1]), np.inf)
        table = Table(cell=np.arange(len(gap)), weight=counts.weight, gap=size)
        value = float(counts.error(gap[None])[0])
        found = Estimate("canonical ECE", value, len(predictions), rule, "canonical", table=table)
        if self.label_binned:
            return replace(found, withheld="none is known with label_binned=True; label_binned=False has one")
        if self.norm not in (1, 2):
            return replace(found, withheld=f"none is known for norm={self.norm:g}; norm=1 and norm=2 have one")
        slack = counts.slack(gap, p, to_numpy(targets))
        return replace(found, limits=ErrorLimits(value, (slack,)))

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """Cells are found once; each resample counts the classes in them."""
        p = _probabilities(predictions)
        return CellCounts.in_cells(self.cells.cells(p, weights), p, weights, self.norm, self.label_binned)


def _probabilities(predictions: Distribution) -> np.ndarray:
    if not isinstance(predictions, Categorical):
        raise InputError(f"CanonicalECE looks at class probabilities; got {type(predictions).__name__} predictions")
    return to_numpy(predictions.matrix).astype(np.float64)


@dataclass(frozen=True, eq=False)
class CellCounts:
    """Sums of weights and of predictions in each cell, and what resampled targets show there.

    With ``points``, the predictions of rows, each is compared with its cell by itself.
    """

    norm: float
    cell: np.ndarray
    weights: np.ndarray | None
    weight: np.ndarray
    predicted: np.ndarray
    points: np.ndarray | None = None

    @classmethod
    def in_cells(
        cls, cell: np.ndarray, p: np.ndarray, weights: np.ndarray | None, norm: float = 1, label_binned: bool = False
    ) -> Self:
        """Rows in given cells, with probabilities ``(n, classes)``."""
        weight = np.bincount(cell, weights=weights).astype(np.float64)
        w = np.ones(len(p)) if weights is None else weights
        predicted = cell_sums(cell, w[:, None] * p)
        return cls(norm, cell, weights, weight, predicted, p if label_binned else None)

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """The error of each resample."""
        return self.error(self.gaps(targets))

    def gaps(self, targets: np.ndarray) -> np.ndarray:
        """Mean prediction minus frequencies, ``(m, cells, classes)``."""
        m, (cells, classes) = len(targets), self.predicted.shape
        index = self.cell * classes + targets + (cells * classes * np.arange(m))[:, None]
        w = None if self.weights is None else np.broadcast_to(self.weights, targets.shape).ravel()
        seen = np.bincount(index.ravel(), weights=w, minlength=m * cells * classes).reshape(m, cells, classes)
        return (self.predicted - seen) / np.where(self.weight > 0, self.weight, 1)[:, None]

    def slack(self, gaps: np.ndarray, p: np.ndarray, targets: np.ndarray) -> Slack:
        """How far the error may lie from the truth, from gaps ``(cells, classes)``; a row is in one gap of every class."""
        n, size = len(p), len(self.weight)
        w = np.ones(n) if self.weights is None else self.weights
        total, step = float(w.sum()), float(w.max() / w.sum())
        observed = targets[:, None] == np.arange(p.shape[1])
        columns = zip(p.T, observed.T, strict=True)
        noise = np.stack([noise_of_rows(c, h, self.cell, w, size) for c, h in columns], axis=1)
        if self.norm == 1:
            missed = 2 * (1 - p[np.arange(n), targets])  # the sum of the sizes of a row's residuals
            expected = (4 * p * (1 - p) ** 2).sum(axis=1)
            whole = max(float(w**2 @ missed**2), float(w**2 @ expected)) / total**2
            shares = (gaps * (self.weight / total)[:, None]).ravel()
            return SumOfGaps(shares, noise.ravel() / total**2, 2 * step, whole)
        full = self.weight > 0
        size_of_gap, together = np.sqrt((gaps**2).sum(axis=1)), noise.sum(axis=1)
        parts = scaled(self.weight[full], size_of_gap[full], together[full], 2 * step)
        return RootOfSquares(*parts[:3], np.ones(int(full.sum())), float(np.sqrt((parts[0] ** 2).sum())))

    def error(self, gaps: np.ndarray) -> np.ndarray:
        """The weighted norm over cells and classes, ``(m,)``."""
        if self.points is not None:
            return np.array([self._error_of_rows(gap, self.points) for gap in gaps])
        m, _, classes = gaps.shape
        return self._summed(lp_norm(gaps.reshape(m, -1), np.repeat(self.weight, classes), self.norm), classes)

    def _error_of_rows(self, gap: np.ndarray, points: np.ndarray) -> np.ndarray:
        """The norm over rows and classes of what they predict less what happens in their cells."""
        frequency = self.predicted / np.where(self.weight > 0, self.weight, 1)[:, None] - gap
        (n, classes), w = points.shape, self.weights
        off = points - frequency[self.cell]
        return self._summed(
            lp_norm(off.ravel(), np.repeat(np.ones(n) if w is None else w, classes), self.norm), classes
        )

    def _summed(self, mean: np.ndarray, classes: int) -> np.ndarray:
        """A sum over classes from a mean over them."""
        return mean if np.isinf(self.norm) else mean * classes ** (1 / self.norm)
