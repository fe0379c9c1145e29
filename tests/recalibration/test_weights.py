import numpy as np
import pytest

from calibrant.recalibration.weights import in_rows, one_row, shares, unit_weight


@pytest.mark.parametrize(("weights", "unit"), [([2, 3], 1), ([0.5, 0.5], 0.5), ([0.5, 1.5], 1.25)])
def test_the_weight_of_one_row(weights, unit):
    assert unit_weight(np.array(weights, dtype=float)) == pytest.approx(unit)


def test_what_weights_stand_for():
    w, rows = shares(np.array([2.0, 0.0, 6.0]), 3)
    assert (w.tolist(), rows) == ([0.25, 0.0, 0.75], 8.0)
    w, rows = shares(np.full(4, 0.25), 4)
    assert (w.tolist(), rows) == ([0.25] * 4, 4.0)
    assert shares(None, 5)[1] == 5.0


def test_weights_that_are_not_whole_are_worth_their_effective_number_of_rows(rng):
    w = rng.random(50)
    assert in_rows(w, 50).sum() == pytest.approx(w.sum() ** 2 / (w**2).sum())
    assert in_rows(None, 3).tolist() == [1, 1, 1]


def test_without_one_row_of_several_alike_the_others_stay():
    assert one_row(np.array([3.0, 1.0])).tolist() == [1, 1]
    assert one_row(np.array([0.5, 1.5])).tolist() == [0.5, 1.5]
