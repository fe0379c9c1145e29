from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from calibrant import SKCE, Categorical
from calibrant._validate import InputError
from calibrant.inference import WildBootstrapTest, monte_carlo
from calibrant.inference.kernel_tests.kernel_matrix import KernelMatrix
from calibrant.kernels import Exponential, Gaussian

UNIT = SKCE(Exponential(1.0), Gaussian(1.0))


def test_pvalue_against_all_signs(rng):
    """Ten rows have 1,024 sets of signs."""
    predictions, y = Categorical(rng.dirichlet(np.ones(3), 10)), rng.integers(0, 3, 10)
    h = KernelMatrix.of(SKCE(Exponential(0.5)), y, predictions, None).dense
    bare = h - np.diag(np.diag(h))
    values = np.array([np.array(s) @ bare @ np.array(s) / 90 for s in product([-1, 1], repeat=10)])
    exact = np.mean(values >= bare.sum() / 90 - 1e-12)
    result = WildBootstrapTest(SKCE(Exponential(0.5)), 20_000)(y, predictions)
    low, high = binom.interval(0.999, 20_000, exact)
    assert low <= 20_001 * result.pvalue - 1 <= high
    assert result.statistic == pytest.approx(SKCE(Exponential(0.5))(y, predictions).value, rel=1e-12)


def test_exact_where_residuals_are_symmetric():
    """Two classes at 1/2: signs of the residuals are fair coins, so that T* has the law of T.

    ``sum_{i != j} s_i s_j`` is at least that of 16 ones and 4 zeros if the smaller class has at most 4 of 20 rows.
    """
    y = np.r_[np.ones(16, int), np.zeros(4, int)]
    exact = 2 * binom.cdf(4, 20, 0.5)
    result = WildBootstrapTest(n_resamples=20_000)(y, np.full(20, 0.5))
    low, high = binom.interval(0.999, 20_000, exact)
    assert low <= 20_001 * result.pvalue - 1 <= high


@pytest.mark.parametrize("name", ["binary", "classes", "normal-1"])
@pytest.mark.parametrize("n", [16, 64])
def test_level(name, n, rejections, bounds):
    low, high = bounds(200)
    test = WildBootstrapTest(SKCE() if "normal" not in name else UNIT, 199)
    assert low <= rejections(test, name, n, 200) <= high


def test_four_rows_cannot_reject(rejections):
    """There are eight different sets of signs, and the observed one is among them."""
    assert rejections(WildBootstrapTest(n_resamples=199), "normal-1", 4, 100) == 0


def test_same_seed_same_digits_whatever_the_workers(rng, monkeypatch):
    monkeypatch.setattr(monte_carlo, "CHUNK", 5000)  # several chunks
    p, y = rng.random(100), rng.integers(0, 2, 100)
    alone = WildBootstrapTest(n_resamples=300)(y, p, rng=5)
    with ThreadPoolExecutor(2) as pool:
        other = WildBootstrapTest(n_resamples=300)(y, p, rng=5, engine=pool)
    assert other.pvalue == alone.pvalue
    assert np.array_equal(other.null_distribution, alone.null_distribution)


def test_degenerate_input(degenerate):
    if len(degenerate[0]) == 2:
        with pytest.raises(
            InputError, match=r"has no level here.*all 2 rows.*chance of 0.42.*use ExactTest\(SKCE\(\)\)"
        ):
            WildBootstrapTest(n_resamples=99)(*degenerate)
        return
    assert 0.01 <= WildBootstrapTest(n_resamples=99)(*degenerate).pvalue <= 1


def test_no_residuals_no_evidence():
    assert WildBootstrapTest(n_resamples=99)([0, 1, 1], [0.0, 1.0, 1.0]).pvalue == 1


def test_settings_are_checked():
    with pytest.raises(InputError, match="n_resamples must be a whole number of at least 1; got 0"):
        WildBootstrapTest(n_resamples=0)


def test_the_null_distribution_is_that_of_signs(rng):
    """Each of its values is that of one of 32 sets of signs."""
    predictions, y = Categorical(rng.uniform(0.2, 0.8, 6)), rng.integers(0, 2, 6)
    h = KernelMatrix.of(UNIT, y, predictions, None).dense
    bare = h - np.diag(np.diag(h))
    values = np.unique([np.array(s) @ bare @ np.array(s) / 30 for s in product([-1, 1], repeat=6)])
    null = WildBootstrapTest(UNIT, 99)(y, predictions).null_distribution
    assert np.abs(null[:, None] - values).min(axis=1) == pytest.approx(0, abs=1e-12)


def test_single_rows_as_clusters_are_told(rng):
    p, y = rng.uniform(0.2, 0.8, 60), rng.integers(0, 2, 60)
    plain, told = (WildBootstrapTest(n_resamples=99)(y, p, clusters=c) for c in (None, np.arange(60)))
    assert told.pvalue == plain.pvalue
    assert told.notes == (*plain.notes, "every row is a cluster of its own: rows are taken as independent")
