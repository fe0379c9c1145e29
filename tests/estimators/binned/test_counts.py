import numpy as np
import pytest

from calibrant import Categorical, ClassWise, EqualMass
from calibrant.estimators.binned.binning import lp_norm
from calibrant.estimators.binned.ece import ClassCounts, EventCounts, Stretches


def test_both_ways_of_counting_agree(rng):
    predictions = Categorical(rng.dirichlet(np.ones(4), 80))
    events = ClassWise().events(predictions)
    drawn = predictions.sample(rng, 15)
    for weights in (None, rng.random(80)):
        bins = [EqualMass(5).bins(e.probability, weights) for e in events]
        together = ClassCounts.of(events, bins, weights)
        apart = [EventCounts.of(e, b, weights) for e, b in zip(events, bins, strict=True)]
        assert together.observed(drawn) == pytest.approx(np.concatenate([a.observed(drawn) for a in apart], axis=1))
        assert together.weight == pytest.approx(np.concatenate([a.weight for a in apart]))
        assert together.predicted == pytest.approx(np.concatenate([a.predicted for a in apart]))


def test_many_resamples_are_counted_like_few(rng, monkeypatch):
    predictions = Categorical(rng.dirichlet(np.ones(4), 80))
    events, drawn = ClassWise().events(predictions), predictions.sample(rng, 15)
    for weights in (None, rng.random(80)):
        counts = ClassCounts.of(events, [EqualMass(5).bins(e.probability, weights) for e in events], weights)
        at_once = counts.observed(drawn)
        monkeypatch.setattr("calibrant.estimators.binned.ece.CACHED", 200)
        np.testing.assert_array_equal(counts.observed(drawn), at_once)
        monkeypatch.undo()


def test_norms_by_hand():
    gap, weight = np.array([0.3, -0.4, 9.0]), np.array([1.0, 3.0, 0.0])
    assert lp_norm(gap, weight, 1) == pytest.approx((0.3 + 3 * 0.4) / 4)
    assert lp_norm(gap, weight, 2) == pytest.approx(np.sqrt((0.09 + 3 * 0.16) / 4))
    assert lp_norm(gap, weight, np.inf) == pytest.approx(0.4)


@pytest.mark.parametrize("size", [1, 15, 300])
@pytest.mark.parametrize("dtype", [bool, np.float32, np.float64])
def test_sums_over_stretches_are_those_of_the_indicator_matrix(size, dtype, rng):
    cell = rng.integers(0, size, 200)  # 300 cells leave some without rows
    values = (rng.random((3, 7, 200)) < 0.4) if dtype is bool else rng.normal(size=(3, 7, 200)).astype(dtype)
    stretches = Stretches.of(cell, size)
    expected = values.astype(np.float64) @ (cell[:, None] == np.arange(size))
    np.testing.assert_allclose(stretches.sums(stretches.ordered(values)), expected, rtol=0, atol=1e-12)


def test_counts_beyond_single_precision_are_exact():
    n = (1 << 24) + 3
    stretches = Stretches.of(np.zeros(n, dtype=np.intp), 2)
    assert stretches.sums(stretches.ordered(np.ones(n, dtype=bool))).tolist() == [n, 0]
