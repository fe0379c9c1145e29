import numpy as np
import pytest
from scipy import stats

from calibrant.distributions.quadrature import least_reaching, ordered


def test_whole_numbers_in_the_order_of_numbers():
    x = np.array([-np.inf, -2.5, -1e-300, -0.0, 0.0, 1e-300, 1.0, 7.0, np.inf])
    assert np.all(np.diff(ordered(x)) >= 0)
    assert np.array_equal(ordered(ordered(x)), x)
    assert ordered(np.nextafter(x[5:8], np.inf)).tolist() == (ordered(x[5:8]) + 1).tolist()


@pytest.mark.parametrize("levels", [np.array([0.01, 0.5, 0.9]), np.array([[0.01, 0.5, 0.9], [0.2, 0.3, 0.4]])])
def test_the_least_number_that_reaches_the_level(levels):
    law = stats.norm([0.0, 5.0], [1.0, 2.0])
    found = least_reaching(law.cdf, levels, np.full((2, 3), -50.0), np.full((2, 3), 50.0))
    reached, before = law.cdf(found.T).T, law.cdf(np.nextafter(found, -np.inf).T).T
    assert np.all(reached >= levels)
    assert np.all(before < levels)


def test_steps():
    found = least_reaching(np.floor, np.array([0.5, 2.0]), np.zeros((1, 2)), np.full((1, 2), 9.0))
    assert found.tolist() == [[1.0, 2.0]]
