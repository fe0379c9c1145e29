"""Sums over pairs of clusters against the whole matrix."""

import numpy as np
import pytest

from calibrant import Categorical, Ensemble
from calibrant._clusters import Clusters
from calibrant.estimators.kernel_errors import cluster_pairs
from calibrant.estimators.kernel_errors.kernel_problem import form_of, resolve_problem
from calibrant.kernels import Exponential
from calibrant.residuals import Route


@pytest.fixture(params=[None, 50])
def small_tiles(request, monkeypatch):
    """Also where clusters lie in several tiles, and are larger than what is looked at together."""
    if request.param:
        monkeypatch.setattr(cluster_pairs, "tile_of", lambda _: 7)
        monkeypatch.setattr(cluster_pairs, "MAX_TOGETHER", 12)


@pytest.mark.parametrize("family", ["classes", "ensemble", "draws"])
def test_against_the_matrix(family, small_tiles, rng):
    n, w = 36, None
    if family == "classes":
        p, y, w, route = Categorical(rng.dirichlet(np.ones(3), n)), rng.integers(0, 3, n), rng.uniform(0.5, 2, n), None
    else:
        p, y, route = (
            Ensemble(rng.normal(size=(n, 5))),
            rng.normal(size=n),
            Route.SAMPLED if family == "draws" else None,
        )
    kernel, _, rows = resolve_problem(Exponential(), None, route, y, p, w)
    clusters = Clusters.of_codes(np.r_[np.zeros(16), rng.integers(0, 5, 20)])
    form = form_of(kernel, rows)
    whole = np.asarray(form(rows, rows))
    member = (clusters.codes[:, None] == np.arange(len(clusters))).astype(float)
    assert cluster_pairs.pairs_of_clusters(form, rows, clusters) == pytest.approx(member.T @ whole @ member)
    within = (whole * (member @ member.T)).sum() - np.trace(whole)
    assert cluster_pairs.pairs_within_clusters(form, rows, clusters) == pytest.approx(within, rel=1e-6)
