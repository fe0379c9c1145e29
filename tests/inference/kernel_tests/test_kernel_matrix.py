import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from calibrant import SKCE, Categorical, MultivariateNormal, Normal
from calibrant._compiled import choice
from calibrant._validate import InputError
from calibrant.inference import BootstrapTest
from calibrant.inference import monte_carlo as draws
from calibrant.inference.kernel_tests import kernel_matrix
from calibrant.inference.kernel_tests.kernel_matrix import KernelMatrix, _resampled
from calibrant.kernels import Cityblock, Energy, Exponential, Gaussian, Matern
from calibrant.residuals import Route


def problem(rng, n, k):
    predictions = Categorical(rng.dirichlet(np.ones(k), n))
    return predictions.sample(rng, 1)[0], predictions


def defined(y, predictions, kernel, w=None):
    """``w_i w_j k(p_i, p_j) (e_i - p_i).(e_j - p_j)``."""
    p = predictions.matrix
    r = np.eye(p.shape[1])[y] - p
    r = r if w is None else r * (w / w.mean())[:, None]
    return kernel(p, p) * (r @ r.T)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("n", [2, 700])
def test_entries_and_their_sums(n, k, weighted, rng):
    y, predictions = problem(rng, n, k)
    kernel, w = Exponential(0.4), rng.random(n) if weighted else None
    h = defined(y, predictions, kernel, w)
    matrix = KernelMatrix.of(SKCE(kernel), y, predictions, w)
    off = h - np.diag(np.diag(h))
    assert len(matrix) == n
    assert np.allclose(matrix.dense, h, rtol=1e-11, atol=1e-14)
    assert matrix.moments.diagonal == pytest.approx(np.diag(h), rel=1e-12)
    assert matrix.moments.row_sums == pytest.approx(off.sum(axis=1), rel=1e-9, abs=1e-12)
    assert float(matrix.moments.sum_of_squares) == pytest.approx((off**2).sum(), rel=1e-11)
    assert matrix.unbiased == pytest.approx(off.sum() / (n * (n - 1)), rel=1e-9)
    assert matrix.biased == pytest.approx(h.mean(), rel=1e-9)


@pytest.mark.parametrize(
    "kernel", [Exponential(0.3), Matern(1.5, 0.3), Matern(2.5, 0.3), Gaussian(0.3), Energy()], ids=repr
)
@pytest.mark.parametrize("path", ["stored", "sorted", "streamed"])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("weighted", [True, False])
def test_products_by_every_path(kernel, path, k, weighted, rng, monkeypatch):
    y, predictions = problem(rng, 300, k)
    w, v = rng.random(300) if weighted else None, rng.normal(size=(300, 5))
    expected = KernelMatrix.of(SKCE(kernel), y, predictions, w).dense @ v
    if path != "stored":
        monkeypatch.setattr(choice, "MAX_PLAIN_ROWS", 0 if path == "sorted" else 10**9)
        monkeypatch.setattr(kernel_matrix, "STORED", 0)
    matrix = KernelMatrix.of(SKCE(kernel), y, predictions, w)
    by_sorting = path == "sorted" and k == 2 and isinstance(kernel, Exponential | Matern)
    assert (matrix._order is not None) >= by_sorting
    assert matrix @ v == pytest.approx(expected, rel=1e-10, abs=1e-12)


def test_ties_on_the_line(rng, monkeypatch):
    monkeypatch.setattr(choice, "MAX_PLAIN_ROWS", 0)
    p, y = np.round(rng.random(200), 1), rng.integers(0, 2, 200)
    matrix = KernelMatrix.of(SKCE(Exponential(0.3)), y, Categorical(p), None)
    assert matrix._order is not None
    assert np.allclose(matrix @ np.eye(200), matrix.dense, rtol=1e-12, atol=1e-14)


def test_normals_and_the_estimator(rng):
    """The same U and V as the estimator finds, whichever way it goes."""
    predictions = Normal.example(rng, 2500)
    y = predictions.sample(rng, 1)[0]
    for n in (50, 2500):
        matrix = KernelMatrix.of(SKCE(Exponential(1.0), Gaussian(1.0)), y[:n], predictions[:n], None)
        for unbiased, value in ((True, matrix.unbiased), (False, matrix.biased)):
            estimator = SKCE(Exponential(1.0), Gaussian(1.0), unbiased=unbiased)
            assert value == pytest.approx(estimator(y[:n], predictions[:n]).value, rel=1e-9)


def test_draws_of_rows_and_columns_are_made_symmetric(rng):
    predictions = MultivariateNormal.example(rng, 20)
    y = predictions.sample(rng, 1)[0]
    estimator = SKCE(Exponential(1.0), Exponential(1.0))
    matrix = KernelMatrix.of(estimator, y, predictions, None)
    assert matrix.rows.residuals.route is Route.SAMPLED
    assert np.array_equal(matrix.dense, matrix.dense.T)
    off = matrix.dense.sum() - np.trace(matrix.dense)
    assert matrix.unbiased == pytest.approx(off / (20 * 19), rel=1e-9)


def test_every_library(xp, rng, monkeypatch):
    y, predictions = problem(rng, 60, 3)
    v = rng.normal(size=(60, 2))
    expected = defined(y, predictions, Exponential(0.4)) @ v
    there = Categorical(xp.asarray(predictions.probs))
    for stored in (4096, 0):
        monkeypatch.setattr(kernel_matrix, "STORED", stored)
        product = KernelMatrix.of(SKCE(Exponential(0.4)), xp.asarray(y), there, None) @ v
        assert isinstance(product, np.ndarray)
        assert product == pytest.approx(expected, rel=1e-10, abs=1e-13)


def test_single_precision(rng, monkeypatch):
    torch = pytest.importorskip("torch")
    y, predictions = problem(rng, 60, 3)
    v = rng.normal(size=(60, 2))
    expected = defined(y, predictions, Exponential(0.4)) @ v
    monkeypatch.setattr(kernel_matrix, "STORED", 0)
    for probs in (torch.tensor(predictions.probs, dtype=torch.float32), predictions.probs.astype(np.float32)):
        labels = torch.tensor(y) if isinstance(probs, torch.Tensor) else y
        product = KernelMatrix.of(SKCE(Exponential(0.4)), labels, Categorical(probs), None) @ v
        assert product.dtype == np.float64
        assert product == pytest.approx(expected, abs=1e-4)


def test_zero_residuals():
    right = KernelMatrix.of(SKCE(), np.array([0, 1]), Categorical([0.0, 1.0]), None)
    wrong = KernelMatrix.of(
        replace(SKCE(), on_predictions=Gaussian(1e-3)), np.array([1, 0]), Categorical([0.0, 1.0]), None
    )
    assert right.is_zero
    assert not wrong.is_zero


@pytest.mark.parametrize("weighted", [True, False])
def test_products_on_a_gpu_are_made_there(gpu, rng, monkeypatch, weighted):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(kernel_matrix, "STORED", 0)
    monkeypatch.setattr(kernel_matrix, "Pairwise", None)  # no tiles
    y, predictions = problem(rng, 150, 4)
    kernel, w, v = Exponential(0.4), rng.random(150) if weighted else None, rng.normal(size=(150, 3))
    there = Categorical(torch.tensor(predictions.probs, device=gpu))
    matrix = KernelMatrix.of(SKCE(kernel), torch.tensor(y.astype(np.int64), device=gpu), there, w)
    product = matrix @ v
    assert isinstance(product, np.ndarray)
    assert np.allclose(product, defined(y, predictions, kernel, w) @ v, atol=1e-4)


@pytest.mark.parametrize("k", [2, 3])
def test_an_engine_changes_no_digit(k, rng, travelling, monkeypatch):
    monkeypatch.setattr(kernel_matrix, "STORED", 0)
    monkeypatch.setattr(choice, "MAX_PLAIN_ROWS", 10**9)
    y, predictions = problem(rng, 600, k)
    v = rng.normal(size=(600, 2))
    alone = KernelMatrix.of(SKCE(Exponential(0.4)), y, predictions, None)
    there = KernelMatrix.of(SKCE(Exponential(0.4)), y, predictions, None, travelling)
    assert travelling.maps == 1
    assert np.array_equal(there.moments.row_sums, alone.moments.row_sums)
    assert np.array_equal(there.multiplying(travelling)(v), alone @ v)
    assert travelling.maps == 2


def test_quick_products_need_no_engine(rng, travelling):
    y, predictions = problem(rng, 300, 3)
    matrix, v = KernelMatrix.of(SKCE(Exponential(0.4)), y, predictions, None), rng.normal(size=(300, 2))
    assert np.array_equal(matrix.multiplying(travelling)(v), matrix @ v)
    assert travelling.maps == 0


def test_sums_travel_with_the_matrix(rng):
    y, predictions = problem(rng, 50, 3)
    matrix = KernelMatrix.of(SKCE(Exponential(0.4)), y, predictions, None)
    assert pickle.loads(pickle.dumps(matrix)).unbiased == matrix.unbiased


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
