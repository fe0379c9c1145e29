import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from calibrant.distributions import Logistic


def test_characteristic_function_is_an_integral():
    w = np.array([0.0, 1e-200, 0.7, -3.0])

    def wave(f, v):
        return quad(lambda y: f(v * y) * stats.logistic.pdf(y, 0.4, 0.9), -40, 41, points=[0.4], epsabs=1e-13)[0]

    for f, part in zip((np.cos, np.sin), Logistic([0.4], 0.9).cf(w), strict=True):
        assert part[0] == pytest.approx([wave(f, v) for v in w], abs=1e-12)


def test_far_targets_and_frequencies():
    batch = Logistic([0.0], 1.0)
    assert batch.log_prob(np.array([[-800.0], [800.0]])) == pytest.approx(np.full((2, 1), -800.0))
    assert batch.crps(np.array([800.0])) == pytest.approx(799.0)
    assert batch.cf(np.array([1e4]))[0][0, 0] == 0


def test_the_score_at_the_middle():
    assert Logistic([1.0], 2.0).crps(np.array([1.0])) == pytest.approx(2 * (2 * np.log(2) - 1), rel=1e-14)
