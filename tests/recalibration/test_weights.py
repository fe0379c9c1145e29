import numpy as np
import pytest

from calibrant.recalibration.base import effective_rows, in_rows, shares


def test_what_weights_stand_for():
    w, rows = shares(np.array([2.0, 0.0, 6.0]), 3)
    assert (w.tolist(), rows) == ([0.25, 0.0, 0.75], pytest.approx(1.6))
    w, rows = shares(np.full(4, 0.25), 4)
    assert (w.tolist(), rows) == ([0.25] * 4, 4.0)
    assert shares(None, 5)[1] == 5.0


def test_weights_are_worth_their_effective_number_of_rows(rng):
    w = rng.random(50)
    assert effective_rows(w, 50) == pytest.approx(w.sum() ** 2 / (w**2).sum())
    assert effective_rows(None, 3) == 3.0
    assert in_rows(None, 3).tolist() == [1, 1, 1]


@pytest.mark.parametrize("factor", [0.1, 1.5, 7.0, 1e9])
def test_whole_weights_are_no_exception(factor, rng):
    w = rng.integers(0, 4, 50).astype(float)
    np.testing.assert_allclose(in_rows(factor * w, 50), in_rows(w, 50), rtol=1e-14)
    alike = factor * (w > 0)
    assert in_rows(alike, 50).tolist() == (w > 0).tolist()
