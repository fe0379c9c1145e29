"""Statistics that are functions of sums of residuals, under random signs of whole clusters.

If every row is calibrated, the residuals of each row are zero on average given the predictions, however rows of a cluster depend.
Targets cannot be drawn anew then, but the sums of residuals over a cluster can change their sign.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from calibrant._clusters import Clusters
from calibrant._validate import InputError
from calibrant.results import Estimate

WITH_SIGNS = (
    "ECE and TailScan (bins that depend on predictions alone), KolmogorovSmirnov, Kuiper, PITError, QuantileError, SKCE and "
    "RandomFeatureSKCE"
)
"""Estimators that are functions of sums of residuals."""

TOGETHER = "rows of a cluster depend on each other, and no limits are known that allow for it"
"""Why an error has no interval where rows belong together."""

WITHHELD = (
    f"{TOGETHER}: scores such as Brier() have some, and "
    "AggregatedTest()(..., clusters=...) says whether chance explains what is seen"
)
"""The same, and what to call in Python."""

BY_BOOTSTRAP = (
    "rows of a cluster depend on each other: Bootstrap(...)(..., clusters=...), which draws whole clusters, has one"
)
"""Both of a smooth function of means over rows."""


def no_signs(estimator: object, why: str | None = None) -> InputError:
    """What is said of an estimator that random signs do not suit."""
    reason = why or "its value is no function of sums of residuals over rows, whose signs the test draws"
    return InputError(
        f"clusters do not go with {type(estimator).__name__}: {reason}. Use one of {WITH_SIGNS}, or AggregatedTest(), which "
        "chooses for itself"
    )


def without_limits(estimate: Estimate, why: str = WITHHELD, **changed: Any) -> Estimate:
    """The estimate without what holds for independent rows alone."""
    plain = replace(estimate, standard_error=None, interval=None, limits=None, **changed)
    return plain if plain.withheld is not None else replace(plain, withheld=why)


@dataclass(frozen=True, eq=False)
class SignedSums:
    """Sums of residuals of each cluster in some cells, ``(C, cells)``; ``sure`` those of rows whose outcome was certain.

    An event of probability 0 that happened is no matter of chance: such residuals vanish in all but the observed signs.

    >>> sums = SignedSums.of(np.array([0.5, -0.25, 1.0]), np.array([0, 1, 1]), 2, Clusters(np.array([0, 0, 1]), 2))
    >>> sums(np.array([[1.0, 1.0], [1.0, -1.0]]))
    array([[ 0.5 ,  0.75],
           [ 0.5 , -1.25]])
    """

    sums: Any
    sure: np.ndarray | None

    @classmethod
    def of(
        cls,
        residuals: np.ndarray,
        cell: np.ndarray,
        size: int,
        clusters: Clusters,
        is_sure: np.ndarray | None = None,
    ) -> "SignedSums":
        """Of one residual per row, ``(n,)``, and its cell of so many; few cells are stored in full."""
        sure = None
        if is_sure is not None and np.any(residuals[is_sure]):
            sure = np.bincount(cell[is_sure], residuals[is_sure], size)
            residuals = np.where(is_sure, 0.0, residuals)
        place, shape = clusters.codes * size + cell, (len(clusters), size)
        if shape[0] * shape[1] <= 2 * len(residuals):
            return cls(np.bincount(place, residuals, shape[0] * shape[1]).reshape(shape), sure)
        return cls(csr_array((residuals, (clusters.codes, cell)), shape=shape), sure)

    def __call__(self, signs: np.ndarray) -> np.ndarray:
        """Sums under signs ``(m, C)``, ``(m, cells)``."""
        found = signs @ self.sums
        if self.sure is None:
            return found
        return found + np.outer((signs > 0).all(axis=1), self.sure)


@dataclass(frozen=True, eq=False)
class SignedQuadratic:
    """``sum over clusters c != d of s_c s_d H_cd / pairs`` for signs s, from the matrix ``(C, C)`` without its diagonal."""

    matrix: np.ndarray
    pairs: float

    @classmethod
    def of(cls, matrix: np.ndarray, clusters: Clusters, weights: np.ndarray | None) -> "SignedQuadratic":
        """From the sums over rows of two clusters."""
        np.fill_diagonal(matrix, 0.0)
        return cls(matrix, pairs_between(clusters, weights))

    def __call__(self, signs: np.ndarray) -> np.ndarray:
        """The value under each set of signs, ``(m,)``."""
        return np.einsum("mc,mc->m", signs @ self.matrix, signs) / self.pairs


def pairs_between(clusters: Clusters, weights: np.ndarray | None) -> float:
    """How many ordered pairs of rows of different clusters there are, each as much as the product of its weights."""
    sizes = clusters.sums(weights).astype(np.float64)
    return float(sizes.sum() ** 2 - sizes @ sizes)


@dataclass(frozen=True, eq=False)
class SignedWalk:
    """Running sums of residuals in the order of some scores, under signs of clusters; ``ends`` are where equal scores end."""

    residuals: np.ndarray
    codes: np.ndarray
    ends: np.ndarray

    def __call__(self, signs: np.ndarray) -> np.ndarray:
        """From zero on, ``(m, steps + 1)``."""
        walks = np.cumsum(signs[:, self.codes] * self.residuals, axis=1)[:, self.ends - 1]
        return np.pad(walks, ((0, 0), (1, 0)))
