import numpy as np
import pytest
from scipy import stats

from calibrant import Laplace, Mixture, Normal, Quantiles
from calibrant._validate import InputError
from calibrant.distributions import Truncated

INF = np.inf
LOC, SCALE = np.array([0.0, 1.0, -3.0]), np.array([1.0, 2.0, 0.5])
LOW, HIGH = np.array([-0.5, 0.0, -INF]), np.array([INF, 4.0, -2.0])


@pytest.fixture
def batch():
    return Truncated(Normal(LOC, SCALE), LOW, HIGH)


@pytest.fixture
def exact():
    return stats.truncnorm((LOW - LOC) / SCALE, (HIGH - LOC) / SCALE, LOC, SCALE)


def test_against_scipy(batch, exact):
    y = np.array([[-1.0, -0.1, -5.0], [-0.2, 0.0, -2.5], [0.0, 2.0, -2.0], [3.0, 4.0, 0.0], [9.0, 4.1, 1.0]])
    assert batch.cdf(y) == pytest.approx(exact.cdf(y), abs=1e-14)
    assert batch.below(y) == pytest.approx(exact.cdf(y), abs=1e-14)
    with np.errstate(divide="ignore"):
        assert np.exp(batch.log_prob(y)) == pytest.approx(exact.pdf(y), rel=1e-12)
    u = np.array([0.0, 1e-6, 0.3, 0.7, 1 - 1e-9, 1.0])
    assert pytest.approx(exact.ppf(u[:, None]), rel=1e-8) == batch.quantile(u).T
    assert batch.mean == pytest.approx(exact.mean(), rel=1e-9)
    assert batch.std == pytest.approx(exact.std(), rel=1e-9)


@pytest.mark.parametrize("low", [4.0, 10.0, 30.0])
def test_far_upper_tails_keep_their_digits(low):
    """Counted from above: levels next to 1 would have none."""
    batch, exact = Truncated(Normal([0.0], 1.0), low), stats.truncnorm(low, INF)
    u = np.array([0.1, 0.5, 0.99])
    assert batch.quantile(u)[0] == pytest.approx(exact.ppf(u), rel=1e-10)
    y = low + np.array([0.01, 0.1])
    assert batch.cdf(y[:, None])[:, 0] == pytest.approx(exact.cdf(y), rel=1e-9)
    assert batch.log_prob(y[:, None])[:, 0] == pytest.approx(exact.logpdf(y), rel=1e-9)
    assert np.all(batch.sample(np.random.default_rng(0), 1000) >= low)
    assert batch.mean == pytest.approx([exact.mean()], rel=1e-9)


def test_far_lower_tails_as_well():
    batch, exact = Truncated(Laplace([0.0], 1.0), high=-50.0), stats.expon()
    u = np.array([0.1, 0.5, 0.99])
    assert batch.quantile(u)[0] == pytest.approx(-50 - exact.ppf(1 - u), rel=1e-12)


def test_bases_without_symmetry_say_where_nothing_is_left():
    pair = Mixture([Normal([0.0, 0.0], 1.0), Normal([1.0, 1.0], 1.0)])
    with pytest.raises(InputError, match="the range must hold some probability; 12 to inf holds none of row 1"):
        Truncated(pair, [0.0, 12.0])
    fan = Quantiles([[0.0, 1.0]], [0.2, 0.8], tails=(-1.0, 2.0))
    with pytest.raises(InputError, match="3 to 4 holds none of row 0"):
        Truncated(fan, 3.0, 4.0)


def crps_of_truncated_normal(y, low, high):
    """Jordan, Krüger & Lerch (2019), for standard normal bases."""
    cdf, pdf = stats.norm.cdf, stats.norm.pdf
    c = cdf(high) - cdf(low)
    z = np.clip(y, low, high)
    found = np.abs(y - z) + z * (2 * cdf(z) - cdf(low) - cdf(high)) / c + 2 * pdf(z) / c
    return found - (cdf(high * 2**0.5) - cdf(low * 2**0.5)) / (np.pi**0.5 * c**2)


@pytest.mark.parametrize("y", [-2.0, 0.0, 0.3, 1.5, 4.0])
def test_scores_against_a_published_formula(y):
    batch = Truncated(Normal([0.0, 0.0], 1.0), [-0.5, 0.0], [1.5, INF])
    exact = crps_of_truncated_normal(y, np.array([-0.5, 0.0]), np.array([1.5, 40.0]))
    assert batch.crps(np.full(2, y)) == pytest.approx(exact, rel=1e-9)


def test_single_values_of_the_base_stay_whole():
    """At 1 the base has 0.3; its range keeps 0.9."""
    fan = Quantiles([[0.0, 1.0, 1.0, 2.0]], [0.1, 0.3, 0.6, 1 - 1e-12], tails=(0.0, 2.0))
    batch = Truncated(fan, low=1.0)
    assert batch.cdf(np.array([1.0])) == pytest.approx([0.3 / 0.7], rel=1e-9)
    assert batch.below(np.array([1.0])) == [0.0]
    assert batch.quantile(np.array([0.1, 0.4]))[0].tolist() == [1.0, 1.0]
