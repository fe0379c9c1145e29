"""How skewed sums of residuals over clusters are: how many rare events that are independent they are worth."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit

from calibrant._array import to_numpy
from calibrant._clusters import Clusters
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.lenses.class_lenses import Event, MultiLabel, PositiveClass, TopLabel
from calibrant.results import number
from calibrant.typing import Array

MIN_CLUSTERS = 12
"""Clusters below which they say too little of what is chance: signs have few patterns, and spreads are hardly known."""

MIN_SURPRISES_OF_LIMITS = 50.0
"""Below so many it is not known how alike rows are where something rare happens: limits reckon with whole clusters."""

MIN_SURPRISES_OF_MEANS = 10.0
"""Independent events of a rare kind below which limits of means fail.

With 1 to 3 of them, limits of Brier scores and log losses held the truth in 81 to 91 % of data sets at 95 %.
"""


@dataclass(frozen=True, eq=False)
class ClusterSkewness:
    """How skewed sums of residuals over clusters are, from the predictions and from how alike residuals of a cluster are.

    With r the correlation of residuals of a cluster, the variance of its sum is ``sum v + r ((sum sqrt v)^2 - sum v)`` for
    variances v of rows, and events come in clumps of the ratio d of that to ``sum v``, so that third moments are
    ``d^2 sum v (1 - 2 p)``: both are exact for independent rows, and for rows of one fate. r is measured on the scale that
    residuals have, so that it is 1 where nothing happened; where more surprises happened than were predicted, an error of the
    model makes residuals alike, and their mean is taken off.
    """

    variance: np.ndarray
    third: np.ndarray
    clusters: Clusters
    correlation: float

    @classmethod
    def of(
        cls, targets: np.ndarray, predictions: Categorical | Bernoulli, weights: np.ndarray | None, clusters: Clusters
    ) -> "ClusterSkewness":
        """Of the second of two classes, of the favoured one of several, of all labels together."""
        return cls.of_events(usual_lens(predictions).events(predictions), targets, weights, clusters)

    @classmethod
    def of_events(
        cls, events: Sequence[Event], targets: np.ndarray, weights: np.ndarray | None, clusters: Clusters
    ) -> "ClusterSkewness":
        """Of all these events together."""
        p = np.concatenate([event.probability.astype(np.float64) for event in events])
        e = np.concatenate([event.observed(targets) for event in events]) - p
        w = np.tile(np.ones(len(targets)) if weights is None else weights, len(events))
        every = Clusters(np.tile(clusters.codes, len(events)), len(clusters))
        variance = w**2 * p * (1 - p)
        third = w**3 * p * (1 - p) * (1 - 2 * p)
        more = float(w @ e) / float(w.sum())
        e = e - more if more * third.sum() > 0 else e
        return cls(variance, third, every, correlation_within(w * e, variance, every))

    def surprises(self, cell: np.ndarray | None = None, size: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Independent surprises that would be as skewed, and the variance of the sum, of all rows or of cells ``(size,)``."""
        place = self.clusters.codes * size + (0 if cell is None else cell)
        whole, full = len(self.clusters) * size, (len(self.clusters), size)
        plain, third, roots = (
            np.bincount(place, x, whole) for x in (self.variance, self.third, np.sqrt(self.variance))
        )
        variance = plain + self.correlation * (roots**2 - plain)
        clump = variance / np.where(plain > 0, plain, 1.0)
        v = variance.reshape(full).sum(axis=0)
        k = (third * clump**2).reshape(full).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(k != 0, v**3 / k**2, np.inf), v


def correlation_within(residuals: np.ndarray, variance: np.ndarray, clusters: Clusters) -> float:
    """Of residuals of a cluster, between 0 and 1, from residuals and the variances that were predicted, ``(n,)``.

    >>> correlation_within(np.array([1.0, 1.0, -1.0, -1.0]), np.ones(4), Clusters(np.array([0, 0, 1, 1]), 2))
    1.0
    """
    squares, sums = float(residuals @ residuals), clusters.sums(residuals)
    most = float((clusters.sums(np.sqrt(variance)) ** 2).sum() - variance.sum())
    scale = squares / variance.sum() if variance.sum() > 0 else 0.0
    return float(np.clip((float(sums @ sums) - squares) / (scale * most), 0.0, 1.0)) if scale * most > 0 else 0.0


def rows_of_clusters(
    weights: np.ndarray | None, cell: np.ndarray, size: int, alike: float, clusters: Clusters, tail: float
) -> np.ndarray:
    """How many independent rows those of each cell are worth, ``(size,)``; nan of cells without rows.

    With a correlation r of residuals of a cluster, and weights W of clusters in the cell, that is
    ``(sum w)^2 / (sum w^2 + r (sum W^2 - sum w^2))``, times ``(z / t)^2`` with quantiles of the normal law and of t for their
    number. Korn & Graubard (1998).

    >>> clusters = Clusters(np.arange(40) // 2, 20)
    >>> rows_of_clusters(None, np.zeros(40, dtype=int), 1, 1.0, clusters, 0.025).round(1)
    array([17.5])
    """
    w = np.ones(len(cell)) if weights is None else weights
    squares = np.bincount(cell, w**2, size)
    whole = np.bincount(clusters.codes * size + cell, w, len(clusters) * size).reshape(-1, size)
    weight, together = whole.sum(axis=0), (whole**2).sum(axis=0)
    with np.errstate(invalid="ignore"):
        count = np.maximum(weight**2 / together, 2.0)
        return weight**2 / (squares + alike * (together - squares)) * (ndtri(tail) / stdtrit(count - 1, tail)) ** 2


def usual_lens(predictions: Distribution) -> Any:
    """Which events of predictions of classes may be rare: of several classes that the favoured one is right."""
    if isinstance(predictions, Bernoulli):
        return MultiLabel()
    return PositiveClass() if isinstance(predictions, Categorical) and predictions.n_classes == 2 else TopLabel()


def surprises_in(targets: Array, predictions: Distribution, weights: np.ndarray | None, clusters: Clusters) -> float:
    """How many independent events of a rare kind those of predictions of classes are worth; of others none is rare."""
    if not isinstance(predictions, Categorical | Bernoulli):
        return np.inf
    return float(ClusterSkewness.of(to_numpy(targets), predictions, weights, clusters).surprises()[0][0])


def too_few_clusters(
    targets: Array,
    predictions: Distribution,
    weights: np.ndarray | None,
    clusters: Clusters,
    fewest: float = MIN_SURPRISES_OF_MEANS,
) -> str | None:
    """Why means over rows of these clusters, or functions of some, have no interval; ``None`` where they have."""
    if len(clusters) < MIN_CLUSTERS:
        return f"{len(clusters)} clusters say too little of others; {MIN_CLUSTERS} or more have an interval"
    found = surprises_in(targets, predictions, weights, clusters)
    if found >= fewest:
        return None
    return (
        f"the rare events that are expected in these clusters are worth {number(found)} independent ones, which show too little; "
        f"{fewest:g} or more have an interval"
    )
