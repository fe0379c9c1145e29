import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import binom

from calibrant import SKCE, Categorical, ExactTest, Normal, PITError, Poisson
from calibrant._validate import InputError
from calibrant.inference import ShuffleTest
from calibrant.inference.monte_carlo import shuffled_rows
from calibrant.kernels import Exponential, Gaussian

KERNEL = SKCE(Exponential(1.0), Gaussian(1.0))


def series(n, memory, rng):
    """Calibrated normal forecasts, whose errors follow each other."""
    step = np.sqrt(1 - memory**2)
    errors = lfilter([step], [1, -memory], np.r_[rng.normal() / step, rng.normal(size=n)])[1:]
    loc, scale = rng.normal(size=n), rng.uniform(0.5, 2, n)
    return loc, scale, errors


def test_the_level_of_dependent_rows():
    """Over 200 calibrated series of 100 rows, beside the exact test for independent rows."""
    rng, counts = np.random.default_rng(0), np.zeros(2, dtype=int)
    tests = [ShuffleTest(KERNEL, block=20, n_resamples=19), ExactTest(KERNEL, 19)]
    for _ in range(200):
        loc, scale, errors = series(100, 0.7, rng)
        counts += [test(loc + scale * errors, Normal(loc, scale)).pvalue <= 0.05 for test in tests]
    low, high = binom.interval(0.999, 200, 0.05)
    assert low <= counts[0] <= high
    assert counts[1] > 2 * high


def test_forecasts_that_swing_too_far_are_seen(rng):
    loc, scale, errors = series(200, 0.7, rng)
    assert ShuffleTest(KERNEL, block=10, n_resamples=99)(0.2 * loc + scale * errors, Normal(loc, scale)).pvalue == 0.01


def test_what_all_rows_share_is_not_seen_and_it_says_so(rng):
    y = rng.normal(size=200)
    found = ShuffleTest(PITError(), block=5, n_resamples=99)(3 * y, Normal(np.zeros(200), 1.0))
    assert found.pvalue == 1.0  # the same levels in another order
    assert "look at PITHistogram as well" in found.notes[0]


def test_counts(rng):
    rate = rng.uniform(0.5, 5, 100)
    y = rng.poisson(rate)
    assert ShuffleTest(SKCE(), block=5, n_resamples=39)(y, Poisson(rate)).pvalue > 0.05
    assert ShuffleTest(SKCE(), block=5, n_resamples=39)(rng.poisson(3.0, 100), Poisson(rate)).pvalue < 0.05


def test_blocks_stay_together(rng):
    rows = shuffled_rows(60, 6, rng)
    assert sorted(rows.tolist()) == list(range(60))
    assert (np.diff(rows.reshape(10, 6), axis=1) % 60 == 1).all()
    assert sorted(shuffled_rows(23, 5, rng).tolist()) == list(range(23))


def test_bad_input(rng):
    with pytest.raises(InputError, match="ShuffleTest needs quantiles, which Categorical predictions do not have"):
        ShuffleTest(KERNEL, block=1)([0, 1] * 5, Categorical([0.2, 0.7] * 5))
    with pytest.raises(InputError, match="block must leave at least 5 blocks"):
        ShuffleTest(KERNEL, block=5)(rng.normal(size=20), Normal(np.zeros(20), 1.0))
    with pytest.raises(InputError, match="estimator must be an estimator"):
        ShuffleTest("SKCE", block=2)
