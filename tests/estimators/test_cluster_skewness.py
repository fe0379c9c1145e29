"""Why means over rows of few clusters, or of few rare events, have no interval."""

import numpy as np
import pytest
from scipy.stats import norm, t

from calibrant import Brier, Categorical, Normal
from calibrant._clusters import Clusters
from calibrant.distributions import as_problem
from calibrant.estimators.cluster_skewness import (
    ClusterSkewness,
    correlation_within,
    rows_of_clusters,
    surprises_in,
    too_few_clusters,
)


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


def test_rows_that_are_alone_are_not_alike(rng):
    """Nor rows that cannot err: there is no pair to tell it from."""
    alone, pairs = Clusters.of_codes(np.arange(30)), Clusters.of_codes(np.arange(30) // 2)
    assert correlation_within(rng.normal(size=30), np.ones(30), alone) == 0
    assert correlation_within(np.zeros(30), np.zeros(30), pairs) == 0


def test_rows_of_one_cluster_are_worth_little_and_none_are_nan():
    """A cell that one cluster fills has one degree of freedom, so that it is worth something; its rows are one."""
    clusters, cell = Clusters.of_codes(np.repeat(np.arange(13), 4)), np.repeat([0, 1], [4, 48])
    found = rows_of_clusters(None, cell, 3, 1.0, clusters, 0.025)
    assert found[0] == pytest.approx((norm.ppf(0.025) / t.ppf(0.025, 1)) ** 2, rel=1e-9)
    assert found[1] == pytest.approx(12 * (norm.ppf(0.025) / t.ppf(0.025, 11)) ** 2, rel=1e-9)
    assert np.isnan(found[2])
