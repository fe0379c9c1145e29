import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from calibrant._compiled import cuda_products  # noqa: E402
from calibrant._compiled.cpu import feature_moments as on_cpu  # noqa: E402


def kernel(x, lengthscale, gaussian):
    distance = np.sqrt(((x[:, None] - x) ** 2).sum(axis=2))
    return np.exp(-((distance / lengthscale) ** 2) / 2 if gaussian else -distance / lengthscale)


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize(("n", "d", "q"), [(1, 1, 1), (300, 3, 2), (200, 10, 10), (140, 40, 25)])
def test_moments_by_tensor_cores_are_those_of_the_cpu(gpu, rng, n, d, q, gaussian):
    x, r = rng.dirichlet(np.ones(d), n), rng.normal(size=(n, q))
    rows, squares = cuda_products.feature_moments(
        torch.tensor(x, device=gpu), torch.tensor(r, device=gpu), 0.4, gaussian
    )
    expected, scale = on_cpu(x, r, 0.4, gaussian), kernel(x, 0.4, gaussian) * (np.abs(r) @ np.abs(r).T)
    assert (np.abs(rows.cpu().numpy() - expected[0]) <= 1e-5 * scale.sum(axis=1)).all()
    assert float(squares) == pytest.approx(expected[1], rel=0, abs=1e-5 * (scale**2).sum())


@pytest.mark.parametrize(("n", "first", "d", "q"), [(2, 1, 1, 1), (301, 130, 10, 10), (270, 13, 40, 25)])
def test_pairs_of_two_panels_by_tensor_cores(gpu, rng, n, first, d, q):
    x, r = rng.dirichlet(np.ones(d), n), rng.normal(size=(n, q))
    tensors = torch.tensor(x, device=gpu), torch.tensor(r, device=gpu)
    sums, squares = cuda_products.feature_moments(*tensors, 0.4, False, first=first)
    corner = kernel(x, 0.4, False)[:first, first:]
    h, scale = corner * (r @ r.T)[:first, first:], corner * (np.abs(r) @ np.abs(r).T)[:first, first:]
    expected, sizes = (np.r_[part.sum(axis=1), part.sum(axis=0)] for part in (h, scale))
    assert (np.abs(sums.cpu().numpy() - expected) <= 1e-5 * sizes).all()
    assert float(squares) == pytest.approx(2 * (h**2).sum(), rel=0, abs=1e-5 * (scale**2).sum())


def test_rows_that_coincide_lose_a_thousandth(gpu, rng):
    x, r = np.repeat(rng.dirichlet(np.ones(5), 4), 40, axis=0), rng.normal(size=(160, 3))
    rows, _ = cuda_products.feature_moments(torch.tensor(x, device=gpu), torch.tensor(r, device=gpu), 0.4, False)
    scale = kernel(x, 0.4, False) * (np.abs(r) @ np.abs(r).T)
    error = np.abs(rows.cpu().numpy() - on_cpu(x, r, 0.4, False)[0]) / scale.sum(axis=1)
    assert error.max() < 5e-3
