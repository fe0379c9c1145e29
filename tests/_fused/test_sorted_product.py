import numpy as np
import pytest

from calibrant._fused.sorted_product import (
    energy_product,
    exponential_pair_sum,
    exponential_product,
    matern32_product,
    matern52_product,
)

KERNELS = {
    exponential_product: lambda u: np.exp(-u),
    matern32_product: lambda u: (1 + np.sqrt(3) * u) * np.exp(-np.sqrt(3) * u),
    matern52_product: lambda u: (1 + np.sqrt(5) * u + 5 * u**2 / 3) * np.exp(-np.sqrt(5) * u),
}


def rounded(n, values):
    """Rounding errors of sums of n terms, with room to spare."""
    return 1e-14 * np.sqrt(n) * np.abs(values)


def points(rng, n):
    return np.sort(rng.normal(size=n) * rng.choice([1e-3, 1, 30], size=n))


@pytest.mark.parametrize("product", KERNELS)
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize(("n", "q"), [(1, 1), (2, 3), (3, 1), (513, 2), (1200, 5)])
def test_the_product_is_that_of_the_matrix(rng, product, diagonal, n, q):
    x, v = points(rng, n), rng.normal(size=(n, q))
    k = KERNELS[product](np.abs(x[:, None] - x) / 0.7)
    if not diagonal:
        np.fill_diagonal(k, 0)
    assert (np.abs(product(x, v, 0.7, diagonal) - k @ v) <= rounded(n, k @ np.abs(v))).all()


@pytest.mark.parametrize("product", KERNELS)
@pytest.mark.parametrize("lengthscale", [1e-300, 1e-9, 1e-2, 1e9, 1e150])
def test_the_product_is_finite_for_extreme_lengthscales(rng, product, lengthscale):
    x, v = np.repeat(points(rng, 300), 2), rng.normal(size=(600, 2))
    with np.errstate(all="ignore"):
        k = np.nan_to_num(KERNELS[product](np.minimum(np.abs(x[:, None] - x) / lengthscale, 1e4)))
    assert (np.abs(product(x, v, lengthscale, True) - k @ v) <= rounded(600, k @ np.abs(v))).all()


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("shift", [-100.0, 0.0, 100.0])
@pytest.mark.parametrize("n", [1, 2, 3, 700])
def test_the_energy_product_is_that_of_the_matrix(rng, diagonal, shift, n):
    x, v = points(rng, n) + shift, rng.normal(size=(n, 3))
    k = (np.abs(x)[:, None] + np.abs(x) - np.abs(x[:, None] - x)) / 2
    if not diagonal:
        np.fill_diagonal(k, 0)
    assert (np.abs(energy_product(x, v, diagonal) - k @ v) <= rounded(n, k @ np.abs(v)) + 1e-13).all()


def test_the_energy_kernel_is_the_smaller_size_of_two_numbers_of_one_sign():
    x, v = np.array([-3.0, -1.0, 0.0, 2.0]), np.array([[1.0], [10.0], [100.0], [1000.0]])
    assert energy_product(x, v, True).ravel().tolist() == [13.0, 11.0, 0.0, 2000.0]
    assert energy_product(x, v, False).ravel().tolist() == [10.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize(("n", "q"), [(1, 1), (2, 1), (3, 4), (512, 1), (513, 1), (1300, 1), (1300, 7)])
def test_the_pair_sum_is_half_the_quadratic_form(rng, n, q):
    x, v = points(rng, n), rng.normal(size=(n, q))
    k = np.exp(-np.abs(x[:, None] - x) / 0.3)
    h = np.triu(k * (v @ v.T), 1)
    assert exponential_pair_sum(x, v, 0.3) == pytest.approx(h.sum(), abs=1e-14 * np.abs(h).sum(), rel=0)


def test_the_pair_sum_of_one_vector_may_be_flat(rng):
    x, v = points(rng, 600), rng.normal(size=600)
    assert exponential_pair_sum(x, v, 0.3) == exponential_pair_sum(x, v[:, None], 0.3)


def test_single_precision_is_computed_in_double(rng):
    x, v = points(rng, 600).astype(np.float32), rng.normal(size=(600, 2)).astype(np.float32)
    exact = exponential_product(x.astype(np.float64), v.astype(np.float64), 0.5, True)
    assert (exponential_product(x, v, 0.5, True) == exact).all()
    assert exponential_product(x, v, 0.5, True).dtype == np.float64
