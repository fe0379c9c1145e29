import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from calibrant import SKCE, Categorical, Normal
from calibrant._validate import InputError
from calibrant.inference import BootstrapTest
from calibrant.inference import monte_carlo as draws
from calibrant.inference.kernel_tests.bootstrap_test import _resampled
from calibrant.inference.kernel_tests.kernel_matrix import KernelMatrix
from calibrant.kernels import Cityblock, Exponential, Gaussian

OLS = json.loads((Path(__file__).parents[2] / "golden" / "ols.json").read_text())
UNIT = SKCE(Exponential(1.0), Gaussian(1.0))


def test_least_squares():
    """0.04625 from 100,000 draws as published, 0.0455867 from 600,000."""
    result = BootstrapTest(UNIT, 200_000)(OLS["y"], Normal(OLS["loc"], OLS["scale"]))
    assert result.statistic == pytest.approx(-0.00346414071174904, rel=1e-12)
    assert 0.0437 <= result.pvalue <= 0.0475


def test_500_binary_predictions():
    rng = np.random.default_rng(1234)
    p = rng.dirichlet((1, 1), 500)
    y = (1 - (rng.random(500) < p[:, 0])).astype(int)
    result = BootstrapTest(SKCE(Exponential(1 / 3)), 2000)(y, p)
    assert result.statistic == pytest.approx(-0.0006669401755004386, rel=1e-11)
    low, high = binom.interval(0.999, 2000, 0.803)
    assert low <= 2000 * result.pvalue <= high


def test_three_classes_in_total_variation():
    rng = np.random.default_rng(1234)
    p, y = rng.dirichlet((3, 2, 5), 100), rng.integers(1, 4, size=100) - 1
    result = BootstrapTest(SKCE(Exponential(2.0, Cityblock())), 20_000)(y, p)
    assert result.statistic == pytest.approx(-0.006426550757474104, rel=1e-11)
    assert result.pvalue == pytest.approx(0.0066, abs=0.002)


def test_draws_are_centred_u_statistics_of_resampled_rows(rng):
    """``T* + V`` is the U-statistic of ``h_ij - h_i - h_j + V`` (row means) over the rows drawn, from the definition."""
    n = 12
    predictions = Categorical(rng.dirichlet(np.ones(3), n))
    matrix = KernelMatrix.of(SKCE(Exponential(0.5)), rng.integers(0, 3, n), predictions, None)
    h = matrix.dense
    centred = h - h.mean(axis=0) - h.mean(axis=1)[:, None] + h.mean()
    seed = np.random.SeedSequence(4)
    for value, rows in zip(
        _resampled(matrix, seed, 6), np.random.default_rng(seed).integers(0, n, (6, n)), strict=True
    ):
        drawn = centred[np.ix_(rows, rows)]
        # rows drawn twice count as different rows
        assert value + h.mean() == pytest.approx((drawn.sum() - np.trace(drawn)) / (n * (n - 1)), rel=1e-10)


@pytest.mark.parametrize("name", ["binary", "classes", "normal-1"])
def test_level(name, rejections, bounds):
    low, high = bounds(150)
    test = BootstrapTest(SKCE() if "normal" not in name else UNIT, 199)
    assert low <= rejections(test, name, 100, 150) <= high


@pytest.mark.parametrize(
    ("name", "n", "share"),
    [("normal-1", 4, 0.142), ("normal-1", 16, 0.058), ("normal-10", 4, 0.004), ("normal-10", 16, 0.000)],
)
def test_published_levels(name, n, share, rejections, published):
    """Too large at four rows in one dimension, far too small at few rows in ten."""
    assert published(rejections(BootstrapTest(UNIT, 199), name, n, 300), 300, share)


def test_same_seed_same_digits_whatever_the_workers(rng, monkeypatch):
    monkeypatch.setattr(draws, "CHUNK", 5000)  # several chunks
    p, y = rng.random(100), rng.integers(0, 2, 100)
    alone = BootstrapTest(n_resamples=300)(y, p, rng=5)
    with ThreadPoolExecutor(2) as pool:
        other = BootstrapTest(n_resamples=300)(y, p, rng=5, engine=pool)
    assert other.pvalue == alone.pvalue
    assert np.array_equal(other.null_distribution, alone.null_distribution)
    assert not np.array_equal(BootstrapTest(n_resamples=300)(y, p, rng=6).null_distribution, alone.null_distribution)


def test_degenerate_input(degenerate):
    if len(degenerate[0]) == 2:
        with pytest.raises(
            InputError, match=r"has no level here.*all 2 rows.*chance of 0.42.*use ExactTest\(SKCE\(\)\)"
        ):
            BootstrapTest(n_resamples=99)(*degenerate)
        return
    result = BootstrapTest(n_resamples=99)(*degenerate)
    assert 0.01 <= result.pvalue <= 1


def test_no_residuals_no_evidence():
    assert BootstrapTest(n_resamples=99)([0, 1, 1], [0.0, 1.0, 1.0]).pvalue == 1


def test_settings_are_checked():
    with pytest.raises(InputError, match="n_resamples must be a whole number of at least 1; got 0"):
        BootstrapTest(n_resamples=0)
