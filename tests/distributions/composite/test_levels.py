import numpy as np
import pytest
from scipy import stats

from calibrant import Ensemble, Laplace, Mixture, Normal, Quantiles
from calibrant.distributions import Logistic
from calibrant.distributions.composite.truncated import above, at_least, value_above, value_at

BATCHES = [
    Normal([0.0, 5.0], [1.0, 3.0]),
    Laplace([0.0, 5.0], [1.0, 3.0]),
    Logistic([0.0, 5.0], [1.0, 3.0]),
    Quantiles([[0.0, 1.0, 2.0], [0.0, 0.0, 9.0]], [0.2, 0.5, 0.7]),
    Ensemble([[1.0, 2.0, 3.0], [0.0, 0.0, 1.0]]),
    Mixture([Normal([0.0, 5.0], [1.0, 3.0]), Normal([1.0, 5.0], [2.0, 4.0])]),
]


@pytest.mark.parametrize("batch", BATCHES, ids=repr)
def test_rows_have_levels_of_their_own(batch):
    u = np.array([[[0.1, 0.9], [0.5, 0.2]]])
    found = value_at(batch, u)
    assert found.shape == u.shape
    for i in range(2):
        exact = batch[i : i + 1].quantile(u[0, :, i])[0]
        assert found[0, :, i] == pytest.approx(exact, rel=1e-14)
        assert value_above(batch, 1 - u)[0, :, i] == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("batch", BATCHES, ids=repr)
def test_above_and_below_make_one(batch):
    y = np.array([[0.0, 1.0], [2.0, 0.0]])
    assert above(batch, y) + batch.cdf(y) == pytest.approx(np.ones((2, 2)), abs=1e-15)
    strictly = batch.below(y)
    assert at_least(batch, y) + strictly == pytest.approx(np.ones((2, 2)), abs=1e-15)


def test_far_upper_tails_keep_their_digits():
    normal = Normal([0.0, 5.0], [1.0, 3.0])
    assert above(normal, np.array([20.0, 65.0])) == pytest.approx(stats.norm.sf(20), rel=1e-12)
    assert value_above(normal, np.full(2, stats.norm.sf(20))) == pytest.approx([20.0, 65.0], rel=1e-13)
