import numpy as np
import pytest

from calibrant.estimators.binned.binning import Ordered


def test_totals_are_those_of_the_rows_below(rng):
    scores, weights = rng.random(50).round(1), rng.integers(0, 4, 50).astype(float)
    observed = rng.random((3, 50)) < 0.5
    for w in (None, weights):
        ordered = Ordered.of(scores, w)
        each = np.ones(50) if w is None else w
        assert ordered.scores.tolist() == sorted(set(scores[each > 0]))
        below = scores[:, None] <= ordered.scores
        assert ordered.weight[1:] == pytest.approx(each @ below)
        assert ordered.predicted[1:] == pytest.approx((each * scores) @ below)
        assert ordered.observed(observed)[:, 1:] == pytest.approx((observed * each) @ below)
        assert np.all(ordered.observed(observed)[:, 0] == 0)


def test_split_ties_keep_every_row_in_its_order():
    ordered = Ordered.of(np.array([0.5, 0.2, 0.5, 0.2]), None, "split")
    assert ordered.order.tolist() == [1, 3, 0, 2]
    assert ordered.weight.tolist() == [0, 1, 2, 3, 4]


def test_whole_weights_are_told_from_others():
    scores = np.array([0.1, 0.2])
    assert Ordered.of(scores, None).is_whole
    assert Ordered.of(scores, np.array([2.0, 0.0])).is_whole
    assert not Ordered.of(scores, np.array([2.0, 0.5])).is_whole
