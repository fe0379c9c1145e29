import numpy as np
import pytest
from scipy.optimize import brentq

from calibrant import Bernoulli, Categorical, ClassWise, ExactTest, SmoothECE, TopLabel
from calibrant._validate import InputError
from calibrant.checks import check_estimator


def brute(y, p, bandwidth, weights=None, nodes=4001):
    """The definition: reflected Gaussian densities, summed over rows and integrated by the trapezoid rule."""
    w = np.full(len(p), 1 / len(p)) if weights is None else weights / weights.sum()
    t = np.linspace(0, 1, nodes)[:, None]
    images = [2 * m + sign * p for m in range(-4, 5) for sign in (1, -1)]
    kernel = sum(np.exp(-0.5 * ((t - image) / bandwidth) ** 2) for image in images) / (bandwidth * np.sqrt(2 * np.pi))
    return np.trapezoid(np.abs(kernel @ (w * (p - y))), t[:, 0])


@pytest.fixture
def data(rng):
    p = rng.beta(0.5, 0.5, 400)
    return (rng.random(400) < p).astype(int), p


@pytest.mark.parametrize("bandwidth", [0.02, 0.1, 0.5])
def test_a_given_bandwidth_by_brute_force(bandwidth, data, rng):
    y, p = data
    assert SmoothECE(bandwidth)(y, p).value == pytest.approx(brute(y, p, bandwidth), rel=2e-6)
    w = rng.random(400)
    assert SmoothECE(bandwidth)(y, p, sample_weight=w).value == pytest.approx(brute(y, p, bandwidth, w), rel=2e-6)


@pytest.mark.parametrize("seed", range(5))
def test_the_error_is_its_own_bandwidth(seed):
    rng = np.random.default_rng(seed)
    p = rng.random(rng.integers(20, 500))
    y = (rng.random(len(p)) < np.clip(p + rng.normal(0, 0.1), 0, 1)).astype(int)
    root = brentq(lambda s: brute(y, p, s, nodes=1001) - s, 1e-3, 1)
    assert SmoothECE()(y, p).value == pytest.approx(root, rel=1e-4)


def test_published_values_on_real_networks(network):
    name, y, p = network
    exact = {
        "wideresnet-16-4-cifar-10": (0.05388480118413113, 0.05371629542112353),
        "densenet-bc-100-cifar-100": (0.14240396556161922, 0.14215282413810493),
    }[name]
    p = p.astype(np.float64)
    assert SmoothECE(0.01, TopLabel())(y, p).value == pytest.approx(exact[0], abs=1e-8)
    assert SmoothECE(lens=TopLabel())(y, p).value == pytest.approx(exact[1], abs=1e-12)


def test_conformance(data, rng):
    y, p = data
    check_estimator(SmoothECE(), y[:80], Categorical(p[:80]))
    check_estimator(SmoothECE(0.05), y, Categorical(p))
    classes = Categorical.example(rng, 40)
    check_estimator(SmoothECE(lens=ClassWise()), classes.sample(rng, 1)[0].astype(int), classes)
    labels = rng.random((30, 2))
    check_estimator(SmoothECE(), (rng.random((30, 2)) < labels) * 1, Bernoulli(labels))


def test_small_changes_of_scores_change_little(data):
    y, p = data
    moved = np.clip(p + 1e-6, 0, 1)
    assert SmoothECE()(y, moved).value == pytest.approx(SmoothECE()(y, p).value, abs=5e-6)


@pytest.mark.parametrize(
    ("y", "p", "value"),
    [
        ([1, 0], [1.0, 0.0], 0.0),  # perfect
        ([0, 0, 0], [0.4, 0.4, 0.4], 0.4),
        ([1], [0.3], 0.7),
        ([0, 1], [1.0, 0.0], None),
    ],
)
def test_extreme_data(y, p, value):
    found = SmoothECE()(y, p).value
    if value is None:
        value = brentq(lambda s: brute(np.array(y), np.array(p), s) - s, 1e-2, 1)
    assert found == pytest.approx(value, abs=1e-4)


def test_the_level_of_the_exact_test_holds():
    rng, rejected = np.random.default_rng(2), 0
    for seed in range(300):
        p = rng.beta(0.7, 0.4, 60)
        y = (rng.random(60) < p).astype(int)
        rejected += ExactTest(SmoothECE(), n_resamples=19)(y, p, rng=seed).pvalue <= 0.05
    assert 4 <= rejected <= 28  # 99.9 % of a binomial distribution with mean 15


@pytest.mark.parametrize("bandwidth", [0, -1, np.nan, 11])
def test_bad_bandwidths(bandwidth):
    with pytest.raises(InputError, match="bandwidth must be a positive number, or None to find it"):
        SmoothECE(bandwidth)


@pytest.mark.parametrize("ends", [(0.0, 0.1), (0.45, 0.55), (0.9, 1.0)])
def test_the_noise_that_limits_allow_for(ends, rng):
    """The root of the mean square of smoothed noise, row by row: with reflections at both ends it is twice as large there."""
    p, h, w = rng.uniform(*ends, 30), 0.05, rng.uniform(0.5, 2, 30)
    y = (rng.random(30) < p).astype(int)
    t, share = np.linspace(0, 1, 20_001)[:, None], w / w.sum()
    images = [2 * m + sign * p for m in range(-2, 3) for sign in (1, -1)]
    kernel = sum(np.exp(-0.5 * ((t - image) / h) ** 2) for image in images) / (h * np.sqrt(2 * np.pi))
    squares = np.trapezoid(kernel**2, t[:, 0], axis=0)
    noise = max(share**2 * squares @ (p - y) ** 2, share**2 * squares @ (p * (1 - p)))
    assert SmoothECE(h).slack(p, y, w, 0.1).expected == pytest.approx((2 / np.pi * noise) ** 0.5, rel=1e-4)


def test_a_search_that_is_cut_short_is_near(rng, monkeypatch):
    p = rng.random(300)
    y = (rng.random(300) < p) * 1
    exact = SmoothECE()(y, p).value
    monkeypatch.setattr("calibrant.estimators.smooth.smooth_ece.STEPS", 3)
    assert SmoothECE()(y, p).value == pytest.approx(exact, abs=0.01)
    monkeypatch.setattr("calibrant.estimators.smooth.smooth_ece.STEPS", 0)
    assert SmoothECE()(y, p).value != pytest.approx(exact, abs=1e-6)
