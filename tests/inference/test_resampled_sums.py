import numpy as np
import pytest
from scipy.stats import binom

from calibrant.inference.reliability_curve import resampled_sums


def sums_of(p):
    noise = p * (1 - p)
    return tuple(np.atleast_1d(x.sum()) for x in (p, noise, noise * (1 - 2 * p)))


def exact(p):
    """The distribution of a sum of events of unequal chances, by convolution."""
    found = np.ones(1)
    for x in p:
        found = np.convolve(found, [1 - x, x])
    return found


def mixed(seed):
    """A few events of any chance, and rare ones."""
    rng = np.random.default_rng(seed)
    return np.append(rng.random(rng.integers(0, 4)), 0.2 * rng.random() * rng.random(rng.integers(1, 60)))


@pytest.mark.parametrize(
    ("p", "off"),
    [
        (np.full(40, 0.1), 0.0),
        (np.random.default_rng(0).random(60), 0.002),
        (0.02 * np.random.default_rng(1).random(300), 0.002),
        (1 - 0.05 * np.random.default_rng(2).random(80), 0.002),
        (np.random.default_rng(3).beta(0.3, 0.3, 50), 0.002),
        (mixed(10), 0.02),  # where the variance exceeds what is left of the mean
        (mixed(15), 0.02),
        (np.array([0.9]), 0.0),
    ],
)
def test_close_to_the_exact_distribution(p, off):
    """The largest distance of distribution functions: what chance shows in 200,000 draws, and what the approximation may."""
    drawn = resampled_sums(*sums_of(p), 200_000, np.random.default_rng(0))[:, 0]
    seen = np.array([(drawn <= k).mean() for k in range(len(p) + 1)])
    assert np.abs(seen - np.cumsum(exact(p))).max() < 1.95 / np.sqrt(200_000) + off
    assert drawn.mean() == pytest.approx(p.sum(), abs=5 * np.sqrt((p * (1 - p)).sum() / 200_000))


def test_equal_chances_are_binomial():
    drawn = resampled_sums(*sums_of(np.full(30, 0.3)), 20_000, np.random.default_rng(1))[:, 0]
    seen = np.bincount(drawn.astype(int), minlength=31)[:31] / 20_000
    assert np.abs(seen - binom.pmf(np.arange(31), 30, 0.3)).max() < 0.015


def test_whole_numbers_and_certain_events():
    p = np.array([[0.0, 1.0, 1.0], [0.2, 0.3, 0.9]])
    sums = [x.sum(axis=1) for x in (p, p * (1 - p), p * (1 - p) * (1 - 2 * p))]
    drawn = resampled_sums(*sums, 500, np.random.default_rng(2))
    assert drawn.shape == (500, 2)
    assert set(drawn[:, 0]) == {2.0}
    assert np.all(drawn == np.round(drawn))
    nothing = np.zeros(3)
    assert np.all(resampled_sums(nothing, nothing, nothing, 10, np.random.default_rng(3)) == 0)
