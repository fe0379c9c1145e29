"""Differences of squared binned errors of two models of the same targets."""

import numpy as np
import pytest

from calibrant.distributions import Categorical
from calibrant.estimators import DebiasedECE
from calibrant.inference.squared_errors import roots_apart, squares_apart
from calibrant.results import Interval


def of(q):
    return Categorical(np.stack([1 - q, q], 1))


def sets(n_sets, shift, n=400):
    """The difference, and its variance as it is told, of each of some data sets."""
    rng, error, found = np.random.default_rng(5), DebiasedECE(), []
    for _ in range(n_sets):
        q = rng.uniform(0.1, 0.8, n)
        y = (rng.random(n) < q).astype(np.int64)
        limits = squares_apart(error, (y, of(q + shift), None), (y, of(q), None))
        found.append((limits.mean, limits.squares))
    return np.array(found).T


@pytest.mark.parametrize("shift", [0.0, 0.15])
def test_the_difference_and_its_variance_come_out_on_average(shift):
    mean, variance = sets(150, shift)
    assert abs(mean.mean() - shift**2) < 4 * mean.std() / np.sqrt(len(mean)) + 1e-12
    if shift:
        assert variance.mean() == pytest.approx(mean.var(), rel=0.45)
    else:
        np.testing.assert_allclose(mean, 0, atol=1e-12)


def test_roots_of_equal_squares_are_not_apart():
    same = Interval(0.0, 0.0, 0.95, "")
    sure = Interval(0.1, 0.2, 0.999, "")
    found = roots_apart(same, sure, sure)
    assert (found.low, found.high) == (0.0, 0.0)
