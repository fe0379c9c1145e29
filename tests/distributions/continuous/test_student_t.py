import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from calibrant import StudentT
from calibrant.distributions.continuous.student_t import MAX_DRAW, bessel_cf


def test_one_degree_of_freedom_is_cauchy():
    batch = StudentT([1.0], 0.4, 0.9)
    w = np.array([0.0, 0.3, -5.0])
    wanted = np.exp(1j * w * 0.4 - 0.9 * np.abs(w))
    assert batch.cf(w)[0][0] + 1j * batch.cf(w)[1][0] == pytest.approx(wanted, abs=1e-15)
    assert batch.cdf(np.array([[1.3]])) == pytest.approx(0.75, rel=1e-14)


def test_moments_that_do_not_exist():
    batch = StudentT([0.5, 1.0, 1.5, 2.0, 2.5], 3.0, 1.0)
    assert np.array_equal(batch.mean, [np.nan, np.nan, 3, 3, 3], equal_nan=True)
    assert np.array_equal(batch.std, [np.nan, np.nan, np.inf, np.inf, 5**0.5], equal_nan=True)
    assert np.array_equal(np.isnan(batch.crps(np.zeros(5))), [True, True, False, False, False])


@pytest.mark.parametrize("order", [0.15, 0.5, 1.0, 3.7, 20.0, 49.9, 50.0, 51.0, 120.0])
def test_characteristic_functions_are_bessel_functions(order):
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 30
    x = np.array([1e-150, 1e-8, 1e-3, 0.05, 0.5, 2.0, 10.0, 60.0])
    v = mpmath.mpf(order)
    wanted = [float(mpmath.besselk(v, t) * mpmath.mpf(t) ** v / (mpmath.gamma(v) * 2 ** (v - 1))) for t in x]
    assert bessel_cf(np.array(order), x) == pytest.approx(wanted, rel=1e-11, abs=1e-13)
    assert bessel_cf(np.array(order), np.zeros(1)) == 1


@pytest.mark.parametrize("df", [0.7, 3.0, 12.0, 99.0, 101.0, 1e7])
def test_characteristic_function_is_an_integral(df):
    for w in (0.3, 2.0):
        whole = quad(lambda y: stats.t.pdf(y, df), 0, np.inf, weight="cos", wvar=w, limlst=500)[0]
        assert StudentT([df], 0.0, 1.0).cf(np.array([w]))[0][0, 0] == pytest.approx(2 * whole, abs=1e-7)


def test_many_degrees_of_freedom_are_normal():
    batch, normal = StudentT([1e12], 0.4, 0.9), stats.norm(0.4, 0.9)
    y, w = np.array([[-3.0], [0.0], [2.0]]), np.array([0.5, 2.0])
    assert batch.log_prob(y) == pytest.approx(normal.logpdf(y), rel=1e-9)
    assert batch.quantile(np.array([1e-9, 0.3])) == pytest.approx(normal.ppf([[1e-9, 0.3]]), rel=1e-9)
    assert np.hypot(*batch.cf(w))[0] == pytest.approx(np.exp(-0.5 * (0.9 * w) ** 2), rel=1e-10)


def test_coordinates_have_the_distance_of_thirty_quantiles(rng):
    batch = StudentT([0.8, 2.0, 9.0, 9.0], [0.3, -1.0, 0.3, 0.3], [0.5, 2.0, 0.5, 0.6])
    members = batch.quantile((np.arange(30) + 0.5) / 30) / 30**0.5
    for i in range(4):
        wanted = np.linalg.norm(members - members[i], axis=1)
        assert np.linalg.norm(batch.coords - batch.coords[i], axis=1) == pytest.approx(wanted, abs=1e-12)
    assert batch.coords.shape == (4, 16)
    assert np.linalg.matrix_rank(batch.coords - batch.coords.mean(axis=0)) == 3  # degrees of freedom are told apart


def test_tails_of_any_weight_stay_numbers(rng):
    batch = StudentT([1e-3, 0.05], 0.0, 1.0)
    draws = batch.sample(rng, 2_000)
    assert np.abs(draws).max() == MAX_DRAW
    assert np.isfinite(batch.log_prob(draws)).all()
    assert np.array_equal(batch.as_targets(draws[0]), draws[0])


def test_too_hot_for_what_has_no_tails_left():
    batch = StudentT([2.0, 5.0], 0.0, 1.0)
    assert batch.temper(2.9).df == pytest.approx([3 / 2.9 - 1, 6 / 2.9 - 1])
    assert batch.temper(3.0) is NotImplemented
