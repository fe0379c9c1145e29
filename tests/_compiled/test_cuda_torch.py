import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from calibrant._compiled import cpu, cuda, cuda_torch  # noqa: E402
from calibrant._validate import InputError  # noqa: E402


def test_tiles_of_torch_have_the_moments_of_the_cpu(rng, monkeypatch):
    monkeypatch.setattr(cuda_torch, "TILE", 64)
    x, r = rng.dirichlet(np.ones(5), 150), rng.normal(size=(150, 3))
    for gaussian in (False, True):
        rows, squares = cuda_torch.feature_moments(torch.tensor(x), torch.tensor(r), 0.3, gaussian, torch.float64)
        expected = cpu.feature_moments(x, r, 0.3, gaussian)
        assert np.allclose(rows, expected[0], rtol=1e-11)
        assert float(squares) == pytest.approx(expected[1], rel=1e-12)


@pytest.mark.parametrize("d", [1, 16, 17, 40])
def test_distances_of_few_and_of_many_coordinates(rng, d):
    a, b = rng.normal(size=(30, d)), rng.normal(size=(20, d))
    b[:5] = a[:5]
    expected = np.sqrt(((a[:, None] - b) ** 2).sum(axis=2))
    found = cuda_torch.distances(torch.tensor(a), torch.tensor(b)).numpy()
    assert np.allclose(found, expected, rtol=1e-12, atol=1e-300)
    assert (found[range(5), range(5)] == 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_many_coordinates_keep_the_digits_of_rows_near_each_other(rng, dtype):
    a = rng.dirichlet(np.full(40, 0.05), 30)
    b = a[:20] + 1e-3 * rng.normal(size=(20, 40))
    expected = np.sqrt(((a[:, None] - b) ** 2).sum(axis=2))
    found = cuda_torch.distances(torch.tensor(a, dtype=dtype), torch.tensor(b, dtype=dtype)).numpy()
    assert np.allclose(found, expected, rtol=1e-4 if dtype is torch.float32 else 1e-13, atol=0)


def test_the_part_of_pairs_that_are_near(rng):
    x = torch.tensor(rng.normal(size=(3000, 30)))
    assert cuda_torch.near_pairs(x) == 0
    assert cuda_torch.near_pairs(torch.cat([x[:1500], x[:1500]])) < 1e-3
    assert 0.4 < cuda_torch.near_pairs(torch.cat([x[:1], x[1:2]]).repeat_interleave(700, dim=0)) < 0.6


def test_extreme_lengthscales(rng):
    x, r = np.repeat(rng.normal(size=(50, 20)), 3, axis=0), rng.normal(size=(150, 2))
    for lengthscale in (1e-200, 1e8):
        with np.errstate(over="ignore"):
            expected = cpu.feature_moments(x, r, lengthscale, False)[0]
        rows, _ = cuda_torch.feature_moments(torch.tensor(x), torch.tensor(r), lengthscale, False, torch.float32)
        assert np.allclose(rows, expected, atol=1e-4)


@pytest.mark.parametrize("d", [1, 3])
def test_the_same_of_normals(rng, monkeypatch, d):
    monkeypatch.setattr(cuda_torch, "TILE", 64)
    mu, s = rng.normal(size=(150, d)), rng.uniform(0.5, 2, 150)
    data = np.column_stack([mu, s]), mu, s, rng.normal(size=(150, d))
    rows, squares = cuda_torch.normal_moments(*map(torch.tensor, data), 0.7, False, 1.3, torch.float64)
    expected = cpu.normal_moments(*data, 0.7, False, 1.3)
    assert np.allclose(rows, expected[0], rtol=1e-10)
    assert float(squares) == pytest.approx(expected[1], rel=1e-12)


@pytest.mark.parametrize(("n", "first"), [(2, 1), (150, 64), (201, 70), (131, 130)])
def test_tiles_of_two_panels(rng, monkeypatch, n, first):
    monkeypatch.setattr(cuda_torch, "TILE", 64)
    data = rng.normal(size=(n, 2)), rng.normal(size=(n, 1)), rng.uniform(0.5, 2, n), rng.normal(size=(n, 1))
    panels = [part[:first] for part in data], [part[first:] for part in data]
    for name, width, settings in (("feature", 2, (0.7, False)), ("normal", 4, (0.7, False, 1.3))):
        found = getattr(cuda_torch, f"{name}_moments")
        sums, squares = found(*map(torch.tensor, data[:width]), *settings, torch.float64, first)
        along, down, square = getattr(cpu, f"{name}_cross")(*(part[:width] for part in panels), *settings)
        assert np.allclose(sums, np.r_[along, down], rtol=1e-11, atol=1e-12)
        assert float(squares) == pytest.approx(2 * square, rel=1e-12)


@pytest.mark.parametrize(("n", "d"), [(1, 1), (150, 3), (130, 20)])
def test_products_with_the_kernel_matrix(rng, monkeypatch, n, d):
    monkeypatch.setattr(cuda_torch, "TILE", 64)
    x, v = rng.normal(size=(n, d)), rng.normal(size=(n, 3))
    kernel = np.exp(-np.sqrt(((x[:, None] - x) ** 2).sum(axis=2)) / 2)
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        found = cuda_torch.matmul(torch.tensor(x), torch.tensor(v), 2.0, False, dtype)
        assert found.dtype == torch.float64
        assert np.allclose(found, kernel @ v, atol=tolerance * n)


def test_tiles_that_do_not_fit_are_halved_and_that_is_said(rng, monkeypatch):
    plain = cuda_torch._in_tiles

    def in_tiles(tile, n, first, device, size):
        if size > 64:
            raise torch.cuda.OutOfMemoryError
        return plain(tile, n, first, device, size)

    monkeypatch.setattr(cuda_torch, "_in_tiles", in_tiles)
    x, r = torch.tensor(rng.normal(size=(200, 2))), torch.tensor(rng.normal(size=(200, 2)))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        rows, _ = cuda_torch.feature_moments(x, r, 1.0, False, torch.float64)
    steps = ["256 rows: 128 now", "128 rows: 64 now"]
    assert [str(warning.message) for warning in said] == [f"the GPU has no memory for tiles of {s}" for s in steps]
    assert np.allclose(rows, cpu.feature_moments(x.numpy(), r.numpy(), 1.0, False)[0], rtol=1e-11)


def test_a_device_without_memory_for_the_least_tiles_says_so(monkeypatch):
    def in_tiles(*_):
        raise torch.cuda.OutOfMemoryError("out of memory")

    monkeypatch.setattr(cuda_torch, "_in_tiles", in_tiles)
    with pytest.raises(torch.cuda.OutOfMemoryError, match="out of memory"):
        cuda_torch.feature_moments(torch.zeros((50, 1)), torch.zeros((50, 1)), 1.0, False, torch.float64)
    monkeypatch.setattr(cuda, "has_triton", lambda: False)
    with pytest.raises(InputError, match="no memory for sums over pairs of 50 rows: free"):
        cuda.feature_moments(torch.zeros((50, 1)), torch.zeros((50, 1)), 1.0, False)
