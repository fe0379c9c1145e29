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
