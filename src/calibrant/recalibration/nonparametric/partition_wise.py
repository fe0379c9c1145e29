"""Partition-wise frequencies: in each cell of the simplex, how often the classes happened."""

from dataclasses import dataclass
from numbers import Real

import numpy as np

from calibrant._array import to_numpy
from calibrant._numerics.k_means import k_means, nearest
from calibrant._numerics.sums import cell_sums
from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.recalibration.base import Found, Recalibrator, in_rows
from calibrant.recalibration.maps import ClassMap, check_classes


@dataclass(frozen=True)
class PartitionWise(Recalibrator):
    """The frequencies of the classes in the cell of the prediction, for any number of classes.

    ``(events_c + prior) / (rows + k prior)`` in each of ``n_cells`` cells of nearest centres, which k-means finds: 15 of two
    classes, 30 of more, unless given. A ``prior`` of 0 takes bare frequencies, as the paper does; then one row that disagrees
    with its cell costs an infinite log loss. Coarse where there are many classes: take it to compare with, or where few
    different predictions are made. O(n k n_cells) a round. Berta et al. (2026), appendix E.

    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(3), 2_000)
    >>> sharp = p**3 / (p**3).sum(axis=1, keepdims=True)
    >>> fitted = PartitionWise().fit([rng.choice(3, p=row) for row in p], sharp)
    >>> len(fitted.map.centres), bool(fitted.scores["change"][0] < 0)
    (30, True)
    """

    n_cells: int | None = None
    prior: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        if self.n_cells is not None:
            check_count(self.n_cells, "n_cells")
        check_count(self.seed, "seed", least=0)
        if isinstance(self.prior, bool) or not isinstance(self.prior, Real) or not 0 <= self.prior < np.inf:
            raise InputError(f"prior must be a number of at least 0; got {self.prior!r}")

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """Centres of the predictions, and counts around them; the order of rows and of classes does not matter."""
        check_classes(predictions, "PartitionWise")
        assert isinstance(predictions, Categorical)
        p = to_numpy(predictions.matrix).astype(np.float64)
        p = p / p.sum(axis=1, keepdims=True)
        k, w = p.shape[1], in_rows(weights, len(p))
        order = np.lexsort(np.sort(p, axis=1).T)
        count = self.n_cells or (15 if k == 2 else 30)
        centres = k_means(p[order], w[order], count, np.random.default_rng(self.seed))
        events = cell_sums(nearest(p, centres), w[:, None] * (targets[:, None] == np.arange(k)), len(centres))
        rows = events.sum(axis=1, keepdims=True)
        bare = np.where(rows > 0, events, centres) / np.where(rows > 0, rows, centres.sum(axis=1, keepdims=True))
        mixed = (events + self.prior) / (rows + k * self.prior) if self.prior > 0 else bare
        return Found(PartitionMap(k, centres, mixed))


@dataclass(frozen=True, eq=False)
class PartitionMap(ClassMap):
    """Centres of cells, and the probabilities of each, ``(cells, k)``."""

    n_classes: int
    centres: np.ndarray
    values: np.ndarray

    def __post_init__(self) -> None:
        for name in ("centres", "values"):
            value = np.asarray(getattr(self, name), dtype=np.float64)
            if value.ndim != 2 or value.shape[1] != self.n_classes or not np.all((value >= 0) & (value <= 1)):
                raise InputError(f"{name} must be probabilities, (cells, {self.n_classes})")
            object.__setattr__(self, name, value)
        if len(self.centres) != len(self.values):
            raise InputError(f"{len(self.centres)} centres need as many rows of values; got {len(self.values)}")

    def probabilities(self, p: np.ndarray) -> np.ndarray:
        """Those of the nearest centre."""
        return self.values[nearest(p / p.sum(axis=1, keepdims=True), self.centres)]
