import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from calibrant._compiled.cpu import normal_cross as cross_on_cpu  # noqa: E402
from calibrant._compiled.cpu import normal_moments as on_cpu  # noqa: E402
from calibrant._compiled.cuda_moments import normal_moments  # noqa: E402


def normals_of(rng, n, d):
    mu, s = rng.normal(size=(n, d)).round(1), rng.uniform(0.5, 2, size=n).round(1)
    return np.column_stack([mu, s]), mu, s, mu + s[:, None] * rng.normal(size=(n, d))


def kernel(x, lengthscale, gaussian):
    distance = np.sqrt(((x[:, None] - x) ** 2).sum(axis=2))
    return np.exp(-((distance / lengthscale) ** 2) / 2 if gaussian else -distance / lengthscale)


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (300, 1), (200, 2), (140, 5)])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 1e-13)])
def test_moments_of_normals_are_those_of_the_cpu(gpu, rng, n, d, gaussian, dtype, tolerance):
    data = normals_of(rng, n, d)
    rows, squares = normal_moments(*(torch.tensor(a, device=gpu) for a in data), 0.7, gaussian, 1.3, dtype)
    expected, scale = on_cpu(*data, 0.7, gaussian, 1.3), 4 * kernel(data[0], 0.7, gaussian)
    assert (np.abs(rows.cpu().numpy() - expected[0]) <= tolerance * scale.sum(axis=1)).all()
    assert float(squares) == pytest.approx(expected[1], rel=0, abs=tolerance * (scale**2).sum())


@pytest.mark.parametrize(("n", "first", "d"), [(2, 1, 1), (300, 170, 1), (290, 7, 2)])
def test_pairs_of_two_panels_of_normals(gpu, rng, n, first, d):
    data = normals_of(rng, n, d)
    tensors = [torch.tensor(a, device=gpu) for a in data]
    sums, squares = normal_moments(*tensors, 0.7, False, 1.3, torch.float64, first)
    along, down, square = cross_on_cpu([a[:first] for a in data], [a[first:] for a in data], 0.7, False, 1.3)
    assert np.abs(sums.cpu().numpy() - np.r_[along, down]).max() <= 1e-12 * n
    assert float(squares) == pytest.approx(2 * square, rel=1e-12)


@pytest.mark.parametrize("target", [1e-9, 0.01, 100.0, 1e9])
@pytest.mark.parametrize("lengthscale", [1e-200, 0.01, 1e9])
def test_extreme_lengthscales_of_normals(gpu, rng, lengthscale, target):
    data = normals_of(rng, 100, 1)
    rows, _ = normal_moments(*(torch.tensor(a, device=gpu) for a in data), lengthscale, False, target, torch.float32)
    assert np.abs(rows.cpu().numpy() - on_cpu(*data, lengthscale, False, target)[0]).max() < 1e-4
