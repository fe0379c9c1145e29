import numpy as np
import pytest
from scipy.stats import binomtest

from calibrant import InputError
from calibrant.inference import interval_of_share
from calibrant.inference.proportions import clopper_pearson


def test_against_scipy():
    for observed, rows in ((0, 7), (3, 10), (7, 7), (60, 200)):
        theirs = binomtest(observed, rows).proportion_ci(0.9, method="exact")
        low, high = clopper_pearson(np.array([observed / rows]), np.array([rows]), 0.05)
        assert (low[0], high[0]) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_the_mean_of_unequal_chances_is_covered(bounds):
    """Given the rows, their chances differ: more than 95 % then, never less."""
    rng, sets = np.random.default_rng(1), 4000
    chances = np.linspace(0.05, 0.95, 30)
    frequency = (rng.random((sets, 30)) < chances).mean(axis=1)
    low, high = clopper_pearson(frequency, np.full(sets, 30), 0.025)
    assert np.sum((low <= 0.5) & (high >= 0.5)) >= bounds(sets, 0.95)[0]


def test_fractions_of_rows_lie_between_whole_ones():
    low, high = clopper_pearson(np.full(3, 0.5), np.array([10, 10.5, 11]), 0.025)
    assert np.all(np.diff(low) > 0)
    assert np.all(np.diff(high) < 0)


def test_the_interval_of_one_share_is_scipys():
    for k, n, level in [(0, 20, 0.95), (1, 20, 0.95), (7, 9, 0.8), (20, 20, 0.99)]:
        expected = binomtest(k, n).proportion_ci(level, method="exact")
        assert tuple(interval_of_share(k, n, level)) == pytest.approx(tuple(expected), abs=1e-12)


def test_no_more_successes_than_trials():
    with pytest.raises(InputError, match="successes must be at most the 1,000 trials; got 1,001"):
        interval_of_share(1_001, 1_000)
    assert interval_of_share(1_000, 1_000).high == 1
