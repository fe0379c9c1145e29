import numpy as np
import pytest
from scipy.optimize import approx_fprime

from calibrant.recalibration.scaling.softmax_regression import DiagonalForm, FullForm, SoftmaxLoss, fitted_log_odds

N, K = 30, 4


def form_of(name, x, w):
    return DiagonalForm(x) if name == "diagonal" else FullForm(x, w)


@pytest.fixture(params=["diagonal", "full"])
def loss(request, rng):
    x, w = rng.normal(size=(N, K)) - 1, rng.gamma(1, 1, N)
    form = form_of(request.param, x, w / w.sum())
    width = 2 if request.param == "diagonal" else K + 1
    penalty = np.full((K, width), 0.3)
    penalty[:, -1] = 0.02
    np.fill_diagonal(penalty, 0.1)
    return SoftmaxLoss(form, x, rng.integers(K, size=N), w / w.sum(), penalty)


def test_gradient_is_the_slope_of_the_loss(loss, rng):
    at = rng.normal(size=loss.penalty.shape)
    slope = approx_fprime(at.ravel(), lambda x: loss.at(x.reshape(at.shape)).loss, 1e-7)
    np.testing.assert_allclose(loss.at(at).gradient.ravel(), slope, atol=2e-6)


def test_curvature_is_the_change_of_the_gradient(loss, rng):
    at, towards = rng.normal(size=(2, *loss.penalty.shape))
    change = (loss.at(at + 1e-6 * towards).gradient - loss.at(at - 1e-6 * towards).gradient) / 2e-6
    np.testing.assert_allclose(loss.at(at).curvature(towards), change, atol=1e-8)


def test_rows_in_parts_add_up(loss, rng, monkeypatch):
    at, towards = rng.normal(size=(2, *loss.penalty.shape))
    whole = loss.at(at)
    monkeypatch.setattr("calibrant._array.CACHED", 7 * K)
    parts = loss.at(at)
    assert parts.loss == pytest.approx(whole.loss, rel=1e-13)
    np.testing.assert_allclose(parts.gradient, whole.gradient, atol=1e-14)
    np.testing.assert_allclose(parts.curvature(towards), whole.curvature(towards), atol=1e-14)
    np.testing.assert_allclose(parts.rough_inverse(towards), whole.rough_inverse(towards), rtol=1e-10)


def test_products_in_single_precision_are_near(loss, rng, monkeypatch):
    at, towards = rng.normal(size=(2, *loss.penalty.shape))
    double = loss.at(at)
    monkeypatch.setattr("calibrant.recalibration.scaling.softmax_regression.MIN_NUMBERS", 0)
    single = loss.at(at)
    assert single.is_single
    assert not double.is_single
    assert single.loss == double.loss
    np.testing.assert_array_equal(single.gradient, double.gradient)
    off = np.abs(single.curvature(towards) - double.curvature(towards))
    assert 0 < off.max() < 1e-6


def test_rough_inverse_is_exact_for_single_classes(rng):
    """With one variance a class in all rows, the block of each class is what is inverted."""
    x, w = rng.normal(size=(N, K)), np.full(N, 1 / N)
    level = rng.random(K) + 0.1
    columns = np.column_stack([x, np.ones(N)])
    ridge = np.full((K, K + 1), 0.3)
    ridge[:, K], ridge[np.arange(K), np.arange(K)] = 0.02, 0.0
    full, diagonal, rows = FullForm(x, w), DiagonalForm(x), slice(None)
    divided = full.rough_inverse(full.spread(rows, w[:, None] * level), ridge)
    rest = rng.normal(size=(K, K + 1))
    for c in range(K):
        block = level[c] * (columns.T * w) @ columns + np.diag(ridge[c])
        np.testing.assert_allclose(divided(rest)[c], np.linalg.solve(block, rest[c]), rtol=1e-6)
    two = diagonal.rough_inverse(diagonal.spread(rows, w[:, None] * level), ridge[:, :2])(rest[:, :2])
    for c in range(K):
        own = columns[:, [c, K]]
        block = level[c] * (own.T * w) @ own + np.diag(ridge[c, :2])
        np.testing.assert_allclose(two[c], np.linalg.solve(block, rest[c, :2]), rtol=1e-6)


def test_columns_that_say_nothing_keep_the_known_coefficient(rng):
    x = rng.normal(size=200)
    observed = rng.random(200) < 0.3
    columns = np.stack([np.ones(200), x, 3 * x - 2, x**2], axis=1)
    found = fitted_log_odds(columns, np.array([0.0, 1.0, 0.7, 0.0]), observed, np.full(200, 1 / 200), 200.0)
    assert found.values[2] == 0.7
    without = fitted_log_odds(columns[:, [0, 1, 3]], np.array([0.0, 1.0, 0.0]), observed, np.full(200, 1 / 200), 200.0)
    np.testing.assert_allclose(columns @ found.values, columns[:, [0, 1, 3]] @ without.values, atol=1e-8)
