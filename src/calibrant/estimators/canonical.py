"""The binned error of whole prediction vectors: all classes at once."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.categorical import Categorical
from calibrant.estimators.base import BaseEstimator, Statistic
from calibrant.estimators.counts import lp_norm
from calibrant.estimators.error_limits import ErrorLimits, RootOfSquares, Slack, SumOfGaps, noise_of_rows, scaled
from calibrant.estimators.partition import KMeans, Partition
from calibrant.results import Estimate, Table
from calibrant.typing import Array


@dataclass(frozen=True)
class CanonicalECE(BaseEstimator):
    """Expected calibration error over cells of the simplex: is the whole vector of probabilities right?

    ``(sum_b w_b sum_c |fbar_bc - ybar_bc|^p)^(1/p)`` with ``w_b`` the share of rows in cell b, ``fbar_b`` their mean
    prediction, ``ybar_b`` the frequencies of the classes and ``p = norm`` (``inf``: the largest gap). With two classes
    and p = 1 it counts every gap twice. Biased upwards, the more so the more cells and classes there are: read it beside
    the null band of :class:`~calibrant.ExactTest`. Vaicenavicius et al. (2019).

    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(3), 300)
    >>> y = [rng.choice(3, p=row) for row in p]
    >>> round(CanonicalECE(KMeans(10))(y, p).value, 2)
    0.2
    """

    least = 0.0

    cells: Partition = KMeans(15)  # noqa: RUF009  # frozen
    norm: float = 1

    def __post_init__(self) -> None:
        if not isinstance(self.cells, Partition):
            raise InputError(f"cells must be a partition such as KMeans(15) or MedianVariance(); got {self.cells!r}")
        if not self.norm >= 1:
            raise InputError(f"norm must be a number of at least 1, or inf; got {self.norm!r}")

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The error with a row a cell."""
        counts = CellCounts.of(self, predictions, weights)
        gap = counts.gaps(to_numpy(targets)[None])[0]
        size = lp_norm(gap, np.ones(gap.shape[1]), np.inf)
        table = Table(cell=np.arange(len(gap)), weight=counts.weight, gap=size)
        value = float(counts.error(gap[None])[0])
        found = Estimate("canonical ECE", value, len(predictions), self, "canonical", table=table)
        if self.norm not in (1, 2):
            return replace(found, withheld=f"none is known for norm={self.norm:g}; norm=1 and norm=2 have one")
        p = to_numpy(predictions.matrix).astype(np.float64)  # type: ignore[attr-defined]
        slack = counts.slack(gap, p, to_numpy(targets))
        return replace(found, limits=ErrorLimits(value, (slack,)))

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """Cells are found once; each redraw counts the classes in them."""
        return CellCounts.of(self, predictions, weights)


@dataclass(frozen=True, eq=False)
class CellCounts:
    """Sums of weights and of predictions in each cell, and what redrawn targets show there."""

    norm: float
    cell: np.ndarray
    weights: np.ndarray | None
    weight: np.ndarray
    predicted: np.ndarray

    @classmethod
    def of(cls, estimator: CanonicalECE, predictions: Distribution, weights: np.ndarray | None) -> Self:
        """Rows in the cells of an estimator."""
        if not isinstance(predictions, Categorical):
            raise InputError(f"CanonicalECE looks at class probabilities; got {type(predictions).__name__} predictions")
        p = to_numpy(predictions.matrix).astype(np.float64)
        return cls.in_cells(estimator.cells.cells(p, weights), p, weights, estimator.norm)

    @classmethod
    def in_cells(cls, cell: np.ndarray, p: np.ndarray, weights: np.ndarray | None, norm: float = 1) -> Self:
        """Rows in given cells, with probabilities ``(n, classes)``."""
        weight = np.bincount(cell, weights=weights).astype(np.float64)
        w = np.ones(len(p)) if weights is None else weights
        predicted = np.stack([np.bincount(cell, weights=w * column) for column in p.T], axis=1)
        return cls(norm, cell, weights, weight, predicted)

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """The error of each redraw."""
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
        happened = targets[:, None] == np.arange(p.shape[1])
        columns = zip(p.T, happened.T, strict=True)
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
        m, _, classes = gaps.shape
        mean = lp_norm(gaps.reshape(m, -1), np.repeat(self.weight, classes), self.norm)
        return mean if np.isinf(self.norm) else mean * classes ** (1 / self.norm)  # a sum over classes, not a mean
