import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from calibrant._compiled import cuda_moments as moments  # noqa: E402
from calibrant._compiled.cpu import feature_moments as on_cpu  # noqa: E402
from calibrant._compiled.cuda_launch import Shape  # noqa: E402

SIZES = [(1, 1, 1), (2, 3, 2), (127, 4, 1), (129, 10, 10), (300, 3, 2), (200, 33, 18)]
TOLERANCE = {torch.float32: 1e-6, torch.float64: 1e-13}


def kernel(x, lengthscale, gaussian):
    distance = np.sqrt(((x[:, None] - x) ** 2).sum(axis=2))
    return np.exp(-((distance / lengthscale) ** 2) / 2 if gaussian else -distance / lengthscale)


def rows_of(rng, n, d, q):
    """Rows with duplicates and near duplicates, as softmax outputs have them."""
    x, r = rng.dirichlet(np.full(d, 0.3), size=n) if d > 1 else rng.uniform(size=(n, 1)), rng.normal(size=(n, q))
    x[n // 2 : n // 2 + n // 4] = x[: n // 4]
    x[n // 2 : n // 2 + n // 8] += 1e-9 * rng.normal(size=(n // 8, d))
    return x, r


def assert_moments(result, expected, scale, tolerance):
    """Errors are relative to the scale of the terms that cancel."""
    rows, squares = result
    assert (np.abs(rows.cpu().numpy() - expected[0]) <= tolerance * (scale.sum(axis=1) + 1e-30)).all()
    assert float(squares) == pytest.approx(expected[1], rel=0, abs=tolerance * (scale**2).sum() + 1e-30)
    assert rows.dtype == squares.dtype == torch.float64


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize(("n", "d", "q"), SIZES)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_moments_of_features_are_those_of_the_cpu(gpu, rng, n, d, q, gaussian, dtype):
    x, r = rows_of(rng, n, d, q)
    result = moments.feature_moments(torch.tensor(x, device=gpu), torch.tensor(r, device=gpu), 0.4, gaussian, dtype)
    scale = kernel(x, 0.4, gaussian) * (np.abs(r) @ np.abs(r).T)
    assert_moments(result, on_cpu(x, r, 0.4, gaussian), scale, TOLERANCE[dtype])


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("lengthscale", [1e-200, 1e-6, 30.0, 1e8])
def test_at_extreme_lengthscales_rows_that_coincide_have_kernel_one(gpu, rng, lengthscale, gaussian):
    x, r = np.repeat(rng.normal(size=(50, 3)), 3, axis=0), rng.normal(size=(150, 2))
    tensors = torch.tensor(x, device=gpu), torch.tensor(r, device=gpu)
    result = moments.feature_moments(*tensors, lengthscale, gaussian, torch.float32)
    with np.errstate(over="ignore"):
        scale = kernel(x, lengthscale, gaussian) * (np.abs(r) @ np.abs(r).T)
    assert_moments(result, on_cpu(x, r, lengthscale, gaussian), scale, 1e-6)


def corners(rng, n, k, y):
    """Predictions of k classes, some exactly zero and one, some one part in 10^12 from that, a few wrong."""
    p = np.eye(k)[np.where(rng.random(n) < 0.9, y, rng.integers(0, k, n))]
    p[n // 3 : 2 * n // 3] = (1 - 1e-12) * p[n // 3 : 2 * n // 3] + 1e-12 / k
    p[: n // 4] = rng.dirichlet(np.full(k, 0.05), n // 4)
    return p / p.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("labels", ["all", "one", "once"])
@pytest.mark.parametrize("gaussian", [False, True])
def test_confident_predictions_are_right_in_every_row(gpu, rng, labels, gaussian):
    n, k = 331, 4
    y = {"all": rng.integers(0, k, n), "one": np.full(n, 2), "once": np.r_[0, np.full(n - 1, 1)]}[labels]
    x = corners(rng, n, k, y)
    r = np.eye(k)[y] - x
    tensors = torch.tensor(x, device=gpu), torch.tensor(r, device=gpu)
    result = moments.feature_moments(*tensors, 0.4, gaussian, torch.float32)
    scale = kernel(x, 0.4, gaussian) * (np.linalg.norm(r, axis=1)[:, None] * np.linalg.norm(r, axis=1))
    assert_moments(result, on_cpu(x, r, 0.4, gaussian), scale, 1e-6)


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize(("n", "first"), [(2, 1), (131, 3), (300, 256), (431, 129)])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_pairs_of_two_panels_are_those_of_a_corner_of_the_matrix(gpu, rng, monkeypatch, n, first, gaussian, dtype):
    monkeypatch.setitem(moments.SHAPES, "features", (Shape(64, 128, 4, chunk=256),))
    x, r = rows_of(rng, n, 3, 2)
    x += 100.0  # which filling rows are not near
    scale = (kernel(x, 0.4, gaussian) * (np.abs(r) @ np.abs(r).T))[:first, first:]
    h = (kernel(x, 0.4, gaussian) * (r @ r.T))[:first, first:]
    tensors = torch.tensor(x, device=gpu), torch.tensor(r, device=gpu)
    sums, squares = moments.feature_moments(*tensors, 0.4, gaussian, dtype, first)
    sizes, expected = (np.r_[part.sum(axis=1), part.sum(axis=0)] for part in (scale, h))
    tolerance = {torch.float32: 2e-5, torch.float64: 1e-11}[dtype]  # of coordinates around 100
    assert (np.abs(sums.cpu().numpy() - expected) <= tolerance * sizes).all()
    assert float(squares) == pytest.approx(2 * (h**2).sum(), rel=0, abs=tolerance * 2 * (scale**2).sum())


def test_chunks_of_columns_are_each_met_once(gpu, rng, monkeypatch):
    monkeypatch.setitem(moments.SHAPES, "features", (Shape(64, 128, 4, chunk=256),))
    x, r = rows_of(rng, 900, 3, 2)
    result = moments.feature_moments(
        torch.tensor(x, device=gpu), torch.tensor(r, device=gpu), 0.4, False, torch.float64
    )
    scale = kernel(x, 0.4, False) * (np.abs(r) @ np.abs(r).T)
    assert_moments(result, on_cpu(x, r, 0.4, False), scale, 1e-13)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("n", "d", "q"), [(1, 1, 1), (150, 3, 5), (130, 20, 70)])
def test_products_with_the_kernel_matrix(gpu, rng, n, d, q, dtype):
    x, v = rng.normal(size=(n, d)), rng.normal(size=(n, q))
    k = kernel(x, 2.0, False)
    product = moments.matmul(torch.tensor(x, device=gpu), torch.tensor(v, device=gpu), 2.0, False, dtype)
    assert (np.abs(product.cpu().numpy() - k @ v) <= TOLERANCE[dtype] * (k @ np.abs(v))).all()


@pytest.mark.parametrize("size", [2, 7, 64, 150, 300])
def test_sums_within_blocks(gpu, rng, size):
    x, r = rng.normal(size=(320, 3)), rng.normal(size=(320, 2))
    h = kernel(x, 1.0, True) * (r @ r.T)
    np.fill_diagonal(h, 0.0)
    blocks = [h[i : i + size, i : i + size].sum() for i in range(0, 320 // size * size, size)]
    sums = moments.block_sums(torch.tensor(x, device=gpu), torch.tensor(r, device=gpu), 1.0, True, size, torch.float64)
    assert np.allclose(sums.cpu().numpy(), blocks, rtol=1e-12)
