"""Counts of residuals stand in for counts of events."""

import numpy as np
import pytest

from calibrant import Categorical, EqualMass
from calibrant._clusters import Clusters
from calibrant.estimators.binned.signed_counts import signed_counts
from calibrant.lenses import ClassWise


def test_counts_against_loops(rng):
    probs, y = Categorical(rng.dirichlet(np.ones(3), 60)), rng.integers(0, 3, 60)
    clusters, w = Clusters.of_codes(np.arange(60) // 4), rng.uniform(0.5, 2, 60)
    events = ClassWise().events(probs)
    bins = [EqualMass(4).bins(event.probability) for event in events]
    signs = rng.choice([-1.0, 1.0], (2, 15))
    for k, (counts, own) in enumerate(zip(signed_counts(events, bins, y, w, clusters), bins, strict=True)):
        p = events[k].probability
        cell = own.index(p)
        assert counts.weight[0] == pytest.approx([w[cell == b].sum() for b in range(4)])
        assert not counts.predicted.any()
        for s, found in zip(signs, counts.observed(signs)[:, 0], strict=True):
            e = s[clusters.codes] * w * ((y == k) - p)
            assert found == pytest.approx([e[cell == b].sum() for b in range(4)])
