import numpy as np
import pytest

from calibrant.kernels import Energy, Exponential, Matern

KERNELS = [Exponential(0.8), Matern(1.5, 0.8), Matern(2.5, 0.8), Energy(), 0.3 * Matern(1.5, 0.8)]


def points(n, rng):
    return np.sort(np.concatenate([rng.normal(size=n - n // 3).round(1), 1000 * rng.random(n // 3)]))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("n", [1, 2, 3, 64, 257])
@pytest.mark.parametrize("diagonal", [True, False])
@pytest.mark.parametrize("power", [1, 2])
def test_products_in_every_library(kernel, xp, n, diagonal, power, rng):
    x, v = points(n, rng), rng.normal(size=(n, 3))
    matrix = kernel(x[:, None], x[:, None]) ** power * (1 if diagonal else 1 - np.eye(n))
    product = np.asarray(kernel.product(xp.asarray(x), xp.asarray(v), diagonal=diagonal, power=power))
    assert np.abs(product - matrix @ v).max() <= 1e-12 * max(np.abs(matrix).sum(axis=1).max(), 1)


def test_gradients_flow_through_the_doubling():
    torch = pytest.importorskip("torch")
    x = torch.linspace(0, 3, 20, dtype=torch.float64)
    v = torch.randn(20, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    for kernel in KERNELS:
        (v * kernel.product(x, v, diagonal=False)).sum().backward()
        matrix = kernel(x[:, None], x[:, None]) * (1 - torch.eye(20))
        assert torch.allclose(v.grad, 2 * matrix @ v.detach(), rtol=1e-10)
        v.grad = None


def test_other_powers_have_no_fast_product():
    assert Exponential(1.0, power=1.5).product(np.zeros(2), np.ones((2, 1)), diagonal=True) is NotImplemented
