"""Why means over rows of few clusters, or of few rare events, have no interval."""

import numpy as np
import pytest

from calibrant import Brier, Categorical, Normal
from calibrant._clusters import Clusters
from calibrant.distributions import as_problem
from calibrant.estimators.cluster_skewness import ClusterSkewness, surprises_in, too_few_clusters


def test_cells_add_up(rng):
    """Of independent rows, the variances of cells sum to that of all."""
    p = rng.random(300)
    y = (rng.random(300) < p) * 1
    skewness = ClusterSkewness.of(*as_problem(y, p), None, Clusters.of_codes(np.arange(300) // 3))
    alone = ClusterSkewness(skewness.variance, skewness.third, skewness.clusters, 0.0)
    cell = rng.integers(0, 4, 300)
    surprises, spread = alone.surprises(cell, 4)
    for b in range(4):
        v, k = p[cell == b] * (1 - p[cell == b]), 1 - 2 * p[cell == b]
        assert spread[b] == pytest.approx(v.sum())
        assert surprises[b] == pytest.approx(v.sum() ** 3 / (v @ k) ** 2)


def test_correlation_is_that_of_residuals(rng):
    """Half of the clusters share their fate: residuals of a cluster are correlated by a half."""
    clusters, shared = np.repeat(np.arange(4000), 5), np.repeat(rng.random(4000) < 0.5, 5)
    fate = rng.random(4000)[clusters]
    y = (np.where(shared, fate, rng.random(20_000)) < 0.3) * 1
    found = ClusterSkewness.of(*as_problem(y, np.full(20_000, 0.3)), None, Clusters(clusters, 4000))
    assert found.correlation == pytest.approx(0.5, abs=0.03)


def test_numbers_are_never_rare():
    clusters = Clusters.of_codes(np.arange(60) // 3)
    assert surprises_in(np.zeros(60), Normal(np.zeros(60), 1.0), None, clusters) == np.inf
    assert too_few_clusters(np.zeros(60), Normal(np.zeros(60), 1.0), None, clusters) is None


def test_the_reasons():
    few, many = Clusters.of_codes(np.arange(110) % 11), Clusters.of_codes(np.arange(110) % 55)
    y, p = np.zeros(110, int), Categorical(np.full(110, 0.01))
    assert too_few_clusters(y, p, None, few) == "11 clusters say too little of others; 12 or more have an interval"
    assert "worth 0.5" in too_few_clusters(y, p, None, many)
    assert Brier()(y, p, clusters=many.codes).withheld == too_few_clusters(y, p, None, many)
