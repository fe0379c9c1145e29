import numpy as np
import pytest

from calibrant._compiled.running_sums import running_sums

POLYNOMIALS = [(1.0,), (1.0, 1.0), (1.0, 1.0, 1 / 3), (0.5, -1.0, 0.2, 2.0, 0.1)]


def points(rng, n):
    return np.sort(rng.normal(size=n) * rng.choice([1e-3, 1, 30], size=n))


def matrix(x, coefficients):
    s = np.minimum(np.abs(x[:, None] - x), 1e4)
    k = sum(c * s**m for m, c in enumerate(coefficients)) * np.exp(-s)
    np.fill_diagonal(k, 0)
    return k


@pytest.mark.parametrize("coefficients", POLYNOMIALS)
@pytest.mark.parametrize(("n", "q"), [(1, 1), (2, 3), (3, 1), (513, 2), (1200, 5)])
def test_sums_are_those_of_the_matrix(rng, coefficients, n, q):
    x, v = points(rng, n), rng.normal(size=(n, q))
    k = matrix(x, coefficients)
    error = np.abs(running_sums(x, v, np.array(coefficients)) - k @ v)
    assert (error <= 1e-13 * np.sqrt(n) * (matrix(x, np.abs(coefficients)) @ np.abs(v))).all()


@pytest.mark.parametrize("coefficients", POLYNOMIALS)
@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e9, 1e250])
def test_sums_are_finite_at_any_range(rng, coefficients, scale):
    x, v = np.repeat(points(rng, 300), 2) * scale, rng.normal(size=(600, 2))
    result = running_sums(x, v, np.array(coefficients))
    assert np.abs(result - matrix(x, coefficients) @ v).max() <= 1e-10


def test_single_precision_is_computed_in_double(rng):
    x, v = points(rng, 600).astype(np.float32), rng.normal(size=(600, 2)).astype(np.float32)
    exact = running_sums(x.astype(np.float64), v.astype(np.float64), np.ones(1))
    assert (running_sums(x, v, np.ones(1)) == exact).all()
    assert exact.dtype == np.float64
