import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from calibrant import SKCE, Normal
from calibrant._validate import InputError
from calibrant.inference import BlockTest
from calibrant.kernels import Exponential, Gaussian

OLS = json.loads((Path(__file__).parents[2] / "golden" / "ols.json").read_text())
UNIT = SKCE(Exponential(1.0), Gaussian(1.0))


def binary_500():
    rng = np.random.default_rng(1234)
    p = rng.dirichlet((1, 1), 500)
    return (1 - (rng.random(500) < p[:, 0])).astype(int), p


@pytest.mark.parametrize(
    ("block", "z", "pvalue"),
    [(2, -1.7089859890287746, 0.9562732275861167), (10, -2.176525107607392, 0.9852419908179161)],
)
def test_500_binary_predictions(block, z, pvalue):
    result = BlockTest(SKCE(Exponential(1 / 3)), block)(*binary_500())
    assert result.statistic == pytest.approx(z, rel=1e-11)
    assert result.pvalue == pytest.approx(pvalue, abs=1e-11)


def least_squares_z(block):
    """From the closed form, entry by entry."""
    mu, s, y = np.array(OLS["loc"]), OLS["scale"], np.array(OLS["y"])

    def mean(a, b, variance):
        return np.exp(-((a[:, None] - b[None, :]) ** 2) / (2 * (1 + variance))) / np.sqrt(1 + variance)

    inner = mean(y, y, 0) - mean(mu, y, s**2) - mean(y, mu, s**2) + mean(mu, mu, 2 * s**2)
    h = np.exp(-np.abs(mu[:, None] - mu[None, :])) * inner
    parts = [h[i : i + block, i : i + block] for i in range(0, len(y) - block + 1, block)]
    eta = np.array([(part.sum() - np.trace(part)) / (block * (block - 1)) for part in parts])
    return np.sqrt(len(eta)) * eta.mean() / eta.std(ddof=1)


@pytest.mark.parametrize(("block", "z"), [(2, -0.8169889078606576), (7, 2.982816141069098), (10, 3.228812758066654)])
def test_least_squares(block, z):
    result = BlockTest(UNIT, block)(OLS["y"], Normal(OLS["loc"], OLS["scale"]))
    assert result.statistic == pytest.approx(z, rel=1e-10)
    assert result.statistic == pytest.approx(least_squares_z(block), rel=1e-10)
    assert result.pvalue == pytest.approx(norm.sf(z), rel=1e-9)


@pytest.mark.parametrize("block", [2, 7, 10])
def test_the_spread_of_pairs_is_the_second_pvalue_of_the_paper(block):
    """``Phi(-sqrt(m B (B-1)) U / (sqrt2 sigma))``, with sigma from the pairs within blocks, entry by entry."""
    h = UNIT.matrix(OLS["y"], Normal(OLS["loc"], OLS["scale"]))
    parts = [h[i : i + block, i : i + block] for i in range(0, len(h) - block + 1, block)]
    entries = np.array([part[~np.eye(block, dtype=bool)] for part in parts])
    m, size = len(parts), block * (block - 1)
    z = np.sqrt(m * size) * entries.mean() / (np.sqrt(2) * np.sqrt((entries**2).mean()))
    result = BlockTest(UNIT, block, "pairs")(OLS["y"], Normal(OLS["loc"], OLS["scale"]))
    assert result.statistic == pytest.approx(z, rel=1e-11)
    assert result.pvalue == pytest.approx(norm.sf(z), rel=1e-9)


def test_blocks_have_sqrt_n_rows_unless_told(rng):
    p, y = rng.random(110), rng.integers(0, 2, 110)
    default = BlockTest()(y, p)
    assert default == BlockTest()(y, p)
    assert default.statistic == BlockTest(block=10)(y, p).statistic == BlockTest(SKCE(block=10))(y, p).statistic
    assert BlockTest(SKCE(block=5), block=10)(y, p).statistic == default.statistic
    assert default.estimate.estimator.block == 10


def test_the_result_says_which_rows_are_left_out(rng):
    result = BlockTest(block=10)(rng.integers(0, 2, 45), rng.random(45))
    assert result.notes[0] == "the last 5 rows do not fill a block of 10 and are left out"


@pytest.mark.parametrize("spread", ["blocks", "pairs"])
@pytest.mark.parametrize("name", ["binary", "classes", "normal-1"])
def test_level(name, spread, rejections, bounds):
    """Many blocks of two; with fewer and larger ones the mean is skewed, and the level too small."""
    low, high = bounds(400)
    assert low <= rejections(BlockTest(SKCE() if "normal" not in name else UNIT, 2, spread), name, 100, 400) <= high


@pytest.mark.parametrize(
    ("name", "n", "block", "share"),
    [
        ("normal-1", 4, 2, 0.128),
        ("normal-1", 16, 4, 0.038),
        ("normal-1", 64, 8, 0.030),
        ("normal-10", 4, 2, 0.102),
        ("normal-10", 16, 4, 0.066),
    ],
)
def test_published_levels(name, n, block, share, rejections, published):
    """Distorted at four rows, and with blocks of sqrt(n) in one dimension."""
    assert published(rejections(BlockTest(UNIT, block), name, n, 400), 400, share)


def test_errors_are_found(rng):
    p, y = rng.random(1000), rng.integers(0, 2, 1000)
    assert BlockTest()(y, p).pvalue < 1e-3


class TestDegenerateInput:
    @pytest.mark.parametrize(("y", "pvalue", "z"), [(1, 0, np.inf), (0, 0, np.inf)])
    def test_blocks_that_agree_on_an_error(self, y, pvalue, z):
        result = BlockTest(block=5)(np.full(80, y), np.full(80, 0.3))
        assert (result.pvalue, result.statistic) == (pvalue, z)
        assert "all blocks agree" in result.notes[0]

    def test_blocks_that_agree_but_for_rounding(self):
        p = np.concatenate([np.roll([0.1, 0.37, 0.73, 0.2, 0.61], i) for i in range(5)])
        error = BlockTest(block=5)(np.ones(25, int), p).estimate.standard_error
        assert 0 < error < 1e-15
        assert BlockTest(block=5)(np.ones(25, int), p).statistic == np.inf

    def test_blocks_that_agree_on_none(self):
        certain = np.array([0, 1] * 10)
        result = BlockTest()(certain, certain.astype(float))
        assert (result.pvalue, result.statistic) == (1, -np.inf)

    def test_blocks_that_agree_on_less_than_none(self):
        assert BlockTest(block=2)([0, 1] * 10, np.full(20, 0.5)).pvalue == 1

    @pytest.mark.parametrize("n", [2, 3])
    def test_too_few_rows(self, n):
        with pytest.raises(InputError, match=f"needs two blocks of 2 rows; y_true has {n}: use ExactTest"):
            BlockTest()([0, 1, 1][:n], [0.3, 0.4, 0.5][:n])

    def test_a_constant_prediction(self, rng):
        assert 0 < BlockTest(block=2)(rng.integers(0, 2, 40), np.full(40, 0.5)).pvalue <= 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"block": 1}, "block must be a whole number of at least 2; got 1"),
        ({"estimator": SKCE(unbiased=False)}, "estimator must be an unbiased SKCE; got SKCE"),
        ({"estimator": 3}, "estimator must be an unbiased SKCE; got 3"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(InputError, match=message):
        BlockTest(**settings)


def test_weights_are_refused():
    with pytest.raises(InputError, match="block takes no sample_weight"):
        BlockTest(block=2)([0, 1, 1, 0], [0.5, 0.5, 0.5, 0.5], sample_weight=[1.0, 2, 1, 1])


def test_blocks_are_those_of_an_engine(travelling):
    y, p = binary_500()
    there, alone = (BlockTest(SKCE(Exponential(1 / 3)), 10)(y, p, engine=e) for e in (travelling, None))
    assert (there.statistic, there.pvalue) == (alone.statistic, alone.pvalue)
    assert len(travelling.sizes) > 5


def test_few_blocks_are_said_to_be_few(rng):
    y, p = rng.integers(0, 2, 40), rng.uniform(0.3, 0.7, 40)
    assert any("4 blocks are few for a normal law" in note for note in BlockTest(block=10)(y, p).notes)
    assert not any("blocks are few" in note for note in BlockTest(block=5)(y, p).notes)
