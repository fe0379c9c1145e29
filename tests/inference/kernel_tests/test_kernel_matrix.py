import pickle
from dataclasses import replace

import numpy as np
import pytest

from calibrant import SKCE, Categorical, MultivariateNormal, Normal
from calibrant._compiled import choice
from calibrant.inference.kernel_tests import kernel_matrix
from calibrant.inference.kernel_tests.kernel_matrix import KernelMatrix
from calibrant.kernels import Energy, Exponential, Gaussian, Matern
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
