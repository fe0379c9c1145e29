import numpy as np
import pytest
from scipy.spatial.distance import cdist

from calibrant.kernels import Cityblock, Euclidean


@pytest.mark.parametrize("metric", [Euclidean(), Cityblock()], ids=repr)
@pytest.mark.parametrize("d", [1, 5, 16, 17, 60])
def test_distances_are_those_of_scipy(metric, d, rng):
    x, y = rng.normal(size=(9, d)), rng.normal(size=(7, d))
    assert metric(x, y) == pytest.approx(cdist(x, y, metric.name), rel=1e-12)
    assert metric.squared(x, y) == pytest.approx(cdist(x, y, metric.name) ** 2, rel=1e-12)


def test_near_points_keep_their_digits():
    x = np.array([[0.3, 0.7], [0.3 + 1e-9, 0.7 - 1e-9]])
    assert Euclidean()(x, x)[0, 1] == pytest.approx(2**0.5 * 1e-9, rel=1e-6)
    assert Euclidean()(x, x)[0, 0] == 0


def test_equal_points_have_a_gradient():
    torch = pytest.importorskip("torch")
    x = torch.tensor([[1.0, 2.0], [1.0, 2.0]], dtype=torch.float64, requires_grad=True)
    Euclidean()(x, x).sum().backward()
    assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize("offset", [1e3, 1e6, 2.0**30])
@pytest.mark.parametrize("metric", [Euclidean(), Cityblock()], ids=repr)
def test_many_coordinates_keep_their_digits_far_from_zero(metric, offset):
    rng = np.random.default_rng(0)
    x, y = (np.round(rng.normal(size=(n, 30)) * 2**16) / 2**16 for n in (40, 50))
    assert metric(x + offset, y + offset) == pytest.approx(metric(x, y), rel=1e-11)


def test_points_close_to_each_other_and_far_from_the_others_keep_their_digits():
    """Two groups, 1e6 apart: products around their middle have no digit left within a group."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=(30, 20)), rng.normal(size=(30, 20)) + 1e6])
    assert Euclidean()(x, x) == pytest.approx(cdist(x, x), rel=1e-9)
    assert np.all(np.diag(Euclidean()(x, x)) == 0)


@pytest.mark.parametrize("offset", [0.0, 280.0])
def test_single_precision_is_that_of_the_same_numbers_in_double(offset):
    x = np.float32(np.random.default_rng(0).normal(size=(40, 30)) + offset)
    found = Euclidean()(x, x)
    assert found.dtype == np.float32
    assert found == pytest.approx(cdist(x.astype(float), x.astype(float)), rel=1e-6)


def test_tensors_lose_digits_relative_to_their_spread_alone():
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(np.float32(np.random.default_rng(0).normal(size=(40, 30)) + 280))
    exact = cdist(x.double().numpy(), x.double().numpy())
    assert np.abs(Euclidean()(x, x).numpy() - exact).max() < 1e-3 * np.median(exact)
    assert np.abs(Euclidean()(x, x).numpy() - exact)[exact > 0].max() < 1e-5 * np.median(exact)
