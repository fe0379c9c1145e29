"""Random signs of whole clusters in the place of resampled targets, and where they are too few or too skewed for it.

If every row is calibrated its residuals are zero on average, however rows of a cluster depend on each other; clusters are
independent. Signs leave the law of the sums of residuals over clusters as it is where these are symmetric together: the level is
then exact. Elsewhere it holds for many clusters. A statistic that is one number needs no division by its spread: the sum of the
squares of what is added up is the same under all signs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._array import to_numpy
from calibrant._clusters import Clusters
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.estimators.base import BaseEstimator
from calibrant.estimators.binned.ece import ECE
from calibrant.estimators.cluster_skewness import MIN_CLUSTERS, ClusterSkewness
from calibrant.estimators.signs import no_signs
from calibrant.results import brief, number
from calibrant.typing import Array

MIN_SURPRISES = 20.0
"""Independent events of a rare kind below which sums of residuals are too skewed for signs.

With 5 of them up to 14 % of calibrated data sets were rejected at 5 %, with 10 up to 8 %.
"""

DOUBTFUL = 50.0
"""Below so many the level is in doubt.

It held over all data sets, refused ones included; where most were refused, up to 19 % of the others were rejected at 5 %.
"""

MAX_SHIFT = 0.25
"""How far skewness of bins may shift the sum of the sizes of their gaps, in standard deviations.

There 6 to 7 % of calibrated data sets were rejected at 5 %, beyond 0.5 10 to 13 %.
"""

SHIFT_OF_ONE, VARIANCE_OF_SIZE = 0.2, 0.36
"""What one surprise shifts the mean size of a sum by, in standard deviations; the variance of the size of standard normal noise."""

SIGNS = "signs of {count:,} clusters: exact where the residuals of a cluster are symmetric, else for many clusters"
"""What is said of every such test."""


@dataclass(frozen=True)
class Signs:
    """Independent signs of clusters, as :class:`Pool` draws targets.

    >>> Signs(3).sample(np.random.default_rng(0), 2)
    array([[ 1.,  1.,  1.],
           [-1., -1., -1.]])
    """

    count: int

    @property
    def observed(self) -> np.ndarray:
        """What was observed: no sign is changed."""
        return np.ones(self.count)

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Signs ``(size, C)``."""
        return 2.0 * rng.integers(0, 2, (size, self.count)) - 1


def check_clusters(
    test: object,
    estimators: Sequence[Any],
    targets: Array,
    predictions: Distribution,
    weights: np.ndarray | None,
    clusters: Clusters,
) -> tuple[tuple[BaseEstimator, ...], tuple[str, ...]]:
    """The estimators, and what is to be said of signs of these clusters; refused where the level is known to fail."""
    name, count = type(test).__name__, len(clusters)
    own = tuple(estimator for estimator in estimators if isinstance(estimator, BaseEstimator))
    for estimator in estimators:
        if estimator not in own:
            raise no_signs(estimator)
    check_enough(name, clusters)
    told: tuple[str, ...] = (SIGNS.format(count=count),)
    if isinstance(predictions, Categorical | Bernoulli):
        skewness = ClusterSkewness.of(to_numpy(targets), predictions, weights, clusters)
        told += _check_skewness(name, skewness)
        for estimator in own:
            if isinstance(estimator, ECE) and estimator.norm != 2 and not estimator.bins.is_adaptive:
                _check_bins(name, estimator, skewness.correlation, predictions, weights, clusters)
    return own, told


def check_enough(name: str, clusters: Clusters) -> None:
    """Refuse so few clusters that nothing is known of what is chance.

    >>> check_enough("ExactTest", Clusters(np.arange(24) // 2, 12))
    """
    if len(clusters) < MIN_CLUSTERS:
        raise InputError(
            f"clusters has {len(clusters)} different labels, and {name} needs at least {MIN_CLUSTERS} to say what is chance: "
            "collect rows of more clusters"
        )


def _check_skewness(name: str, skewness: ClusterSkewness) -> tuple[str, ...]:
    found = float(skewness.surprises()[0][0])
    if found < MIN_SURPRISES:
        raise InputError(
            f"{name} has no level with these clusters: the rare events that y_pred expects are worth {number(found)} independent "
            f"ones, and at least {MIN_SURPRISES:g} are needed: collect rows of more clusters"
        )
    few = f"few rare events are expected in these clusters: {name} may reject calibrated predictions two or three times too often"
    return (few,) if found < DOUBTFUL else ()


def _check_bins(
    name: str,
    ece: ECE,
    correlation: float,
    predictions: Distribution,
    weights: np.ndarray | None,
    clusters: Clusters,
) -> None:
    """Refuse bins whose sums are so skewed that the sum of their sizes is, on average, not what signs make of it."""
    _, events, _ = ece.look(predictions)
    w = np.ones(len(predictions)) if weights is None else weights
    for event in events:
        p, bins = event.probability.astype(np.float64), ece.bins.bins(event.probability, weights)
        variance = w**2 * p * (1 - p)
        own = ClusterSkewness(variance, w * variance * (1 - 2 * p), clusters, correlation)
        surprises, spread = own.surprises(bins.of_rows(event.probability, slice(None)), len(bins))
        shift = float((np.sqrt(spread) * np.minimum(1.0, SHIFT_OF_ONE / surprises)).sum())
        if shift > MAX_SHIFT * np.sqrt(VARIANCE_OF_SIZE * spread.sum()):
            raise InputError(
                f"{brief(ece)} has bins with too few clusters, or too few events, for the signs of {name}: use fewer bins, "
                "ECE(..., norm=2), whose squares average out, or AggregatedTest()"
            )
