import numpy as np
import pytest
from scipy import stats

from calibrant import NegativeBinomial, Poisson
from calibrant._validate import InputError


@pytest.mark.parametrize(("r", "p"), [(1.0, 0.3), (7.5, 0.9), (0.01, 0.001)])
def test_total_count_and_probability_are_those_of_scipy(r, p):
    batch, theirs = NegativeBinomial.from_total_count([r], p), stats.nbinom(r, p)
    k = np.array([0, 1, 2, 5, 30, 400])
    assert batch.log_prob(k[:, None])[:, 0] == pytest.approx(theirs.logpmf(k), rel=1e-9)
    assert (batch.mean[0], batch.std[0]) == pytest.approx((theirs.mean(), theirs.std()))
    assert batch.dispersion == pytest.approx([1 / r])


@pytest.mark.parametrize(
    ("r", "p", "message"),
    [
        ([1.0, 0.0], 0.5, "total_count must be positive; found 0 in row 1"),
        ([1.0, 2.0], [0.5, 0.0], "prob must be positive; found 0 in row 1"),
        ([1.0, 2.0], [0.5, 1.0], "prob must lie strictly between 0 and 1; found 1"),
        (2.0, 0.5, "total_count or prob must be one number per row"),
    ],
)
def test_total_count_and_probability_are_checked(r, p, message):
    with pytest.raises(InputError, match=message):
        NegativeBinomial.from_total_count(r, p)


def test_no_dispersion_is_poisson():
    rate, k = np.array([0.3, 5.0, 200.0]), np.array([[0.0], [1.0], [7.0], [250.0]])
    near, limit = NegativeBinomial(rate, 1e-13), Poisson(rate)
    assert near.log_prob(k) == pytest.approx(limit.log_prob(k), rel=1e-9)
    assert near.cdf(k) == pytest.approx(limit.cdf(k), rel=1e-9)
    assert near.crps(k) == pytest.approx(limit.crps(k), rel=1e-9)
    assert near.masses(600) == pytest.approx(limit.masses(600), rel=1e-9, abs=1e-20)
    assert near.cf(np.array([0.3]))[0] == pytest.approx(limit.cf(np.array([0.3]))[0], rel=1e-9)


def test_dispersion_one_is_geometric():
    batch, k = NegativeBinomial([3.0], 1.0), np.arange(40)
    assert np.exp(batch.log_prob(k[:, None])[:, 0]) == pytest.approx(0.25 * 0.75**k, rel=1e-13)


def test_characteristic_function():
    w = np.array([0.0, 0.5, -7.0, np.pi])
    batch = NegativeBinomial([0.3, 40.0], [2.0, 0.1])
    odds, r = (batch.dispersion * batch.rate)[:, None], 1 / batch.dispersion[:, None]
    found = batch.cf(w)
    assert found[0] + 1j * found[1] == pytest.approx((1 + odds * (1 - np.exp(1j * w))) ** -r, abs=1e-14)


@pytest.mark.parametrize(("rate", "dispersion"), [(1e-3, 1.0), (2.0, 5.0), (30.0, 1e-6), (100.0, 0.5), (3.0, 50.0)])
def test_half_the_mean_difference_is_a_sum(rate, dispersion):
    """``sum F (1 - F)``."""
    batch = NegativeBinomial([rate], dispersion)
    k = np.arange(batch.last + 1.0)
    cdf = batch.cdf(k[:, None])[:, 0]
    above = batch._more_than(k, rate, dispersion)
    assert batch._half_difference() == pytest.approx([cdf @ above], rel=1e-11)


def test_draws_vary_as_much_as_they_should(rng):
    batch = NegativeBinomial([2.0, 50.0], [1e-9, 3.0])
    draws = batch.sample(rng, 40_000)
    assert draws.dtype.kind == "i"
    assert draws.var(axis=0) == pytest.approx(batch.std**2, rel=0.1)
    assert NegativeBinomial([1e15], 100.0).sample(rng, 100).min() >= 0
