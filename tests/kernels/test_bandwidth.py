import numpy as np
import pytest

from calibrant.kernels import Cityblock, Euclidean
from calibrant.kernels.bandwidth import MOST_ROWS, median_distance


def test_median_over_pairs_of_different_rows(rng):
    x = rng.normal(size=(30, 2))
    pairs = [np.linalg.norm(x[i] - x[j]) for i in range(30) for j in range(i)]
    assert median_distance(x, Euclidean()) == pytest.approx(np.median(pairs), rel=1e-13)
    pairs = [np.abs(x[i] - x[j]).sum() for i in range(30) for j in range(i)]
    assert median_distance(x, Cityblock()) == pytest.approx(np.median(pairs), rel=1e-13)


def test_many_ties():
    assert median_distance(np.array([[0.0]] * 9 + [[2.0]]), Euclidean()) == 2.0
    assert median_distance(np.zeros((5, 1)), Euclidean()) == 1.0
    assert median_distance(np.zeros((1, 1)), Euclidean()) == 1.0


def test_large_samples_are_thinned_the_same_way_each_time(rng):
    x = rng.normal(size=(3 * MOST_ROWS, 1))
    first = median_distance(x, Euclidean())
    assert first == median_distance(x, Euclidean())
    assert first == pytest.approx(2 * 0.4769, rel=0.05)  # median |N(0, 2)|
