import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from calibrant._compiled.cpu import (
    feature_cross,
    feature_moments,
    normal_cross,
    normal_moments,
    pair_sums,
    running_sums,
)

SIZES = [(1, 1, 1), (2, 3, 2), (3, 2, 5), (127, 4, 1), (128, 1, 4), (129, 10, 10), (300, 33, 7)]
SCALES = [1e-200, 1e-6, 0.4, 30.0, 1e8]


def kernel(x, lengthscale, gaussian):
    """Direct differences, all pairs."""
    distance = np.sqrt(((x[:, None] - x) ** 2).sum(axis=2))
    with np.errstate(over="ignore"):
        return np.exp(-((distance / lengthscale) ** 2) / 2 if gaussian else -distance / lengthscale)


def normal_matrix(x, mu, s, y, lengthscale, gaussian, target):
    """The definition, all pairs, and its kernel."""

    def expected(a, b, variance):
        spread = 1 + variance / target**2
        squared = ((a[:, None] - b) ** 2).sum(axis=2)
        return np.exp(-squared / (2 * target**2) / spread) / spread ** (mu.shape[1] / 2)

    v = s[:, None] ** 2
    inner = expected(y, y, 0 * v) - expected(mu, y, v) - expected(y, mu, s**2) + expected(mu, mu, v + s**2)
    k = kernel(x, lengthscale, gaussian)
    return k * inner, k


def assert_moments(result, h, scale):
    """Against a full matrix; the tolerance is relative to the ``scale`` of the terms that cancel in each entry."""
    off, size = h - np.diag(np.diag(h)), scale - np.diag(np.diag(scale))
    rows, squares = result
    assert (np.abs(rows - off.sum(axis=1)) <= 1e-13 * size.sum(axis=1)).all()
    assert squares == pytest.approx((off**2).sum(), rel=0, abs=1e-13 * (size**2).sum())


def rows_of(rng, n, d, q):
    """Rows with duplicates and near duplicates, as softmax outputs have them."""
    x, r = rng.dirichlet(np.full(d, 0.3), size=n) if d > 1 else rng.uniform(size=(n, 1)), rng.normal(size=(n, q))
    x[n // 2 : n // 2 + n // 4] = x[: n // 4]
    x[n // 2 : n // 2 + n // 8] += 1e-12 * rng.normal(size=(n // 8, d))
    return x, r


def normals_of(rng, n, d=1):
    mu, s = rng.normal(size=(n, d)).round(1), rng.uniform(0.5, 2, size=n).round(1)
    return np.column_stack([mu, s]), mu, s, mu + s[:, None] * rng.normal(size=(n, d))


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize(("n", "d", "q"), SIZES)
def test_moments_of_features_are_those_of_the_matrix(rng, n, d, q, gaussian):
    x, r = rows_of(rng, n, d, q)
    k = kernel(x, 0.4, gaussian)
    assert_moments(feature_moments(x, r, 0.4, gaussian), k * (r @ r.T), k * (np.abs(r) @ np.abs(r).T))


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("lengthscale", SCALES)
def test_extreme_lengthscales_and_distances_give_zero_or_one(rng, lengthscale, gaussian):
    x, r = rows_of(rng, 150, 3, 2)
    x[:20] *= 1e6
    k = kernel(x, lengthscale, gaussian)
    assert_moments(feature_moments(x, r, lengthscale, gaussian), k * (r @ r.T), k * (np.abs(r) @ np.abs(r).T))


def test_near_identical_rows_keep_their_distance():
    x, r = np.full((2, 10), 0.1), np.ones((2, 1))
    x[1, 0] += 1e-9
    assert 1 - feature_moments(x, r, 1e-6, False)[0][0] == pytest.approx(1 - np.exp(-1e-3), rel=1e-6)


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (2, 1), (3, 2), (128, 3), (300, 1), (300, 4), (200, 10)])
def test_moments_of_normals_are_those_of_the_matrix(rng, n, d, gaussian):
    data = normals_of(rng, n, d)
    assert_moments(normal_moments(*data, 0.7, gaussian, 1.3), *normal_matrix(*data, 0.7, gaussian, 1.3))


@pytest.mark.parametrize("target", [1e-9, 0.01, 100.0, 1e9])
@pytest.mark.parametrize("lengthscale", [1e-200, 0.01, 100.0, 1e9])
def test_extreme_lengthscales_of_normals(rng, lengthscale, target):
    data = normals_of(rng, 140)
    expected = normal_matrix(*data, lengthscale, False, target)
    assert_moments(normal_moments(*data, lengthscale, False, target), *expected)


def test_two_equal_normals_by_hand():
    # mu = y = 0, s = t = 1: g = 1/2 and h = 1 - 2 / sqrt(2) + 1 / sqrt(3).
    h = 1 - np.sqrt(2) + 1 / np.sqrt(3)
    zero = np.zeros((2, 1))
    rows, squares = normal_moments(zero, zero, np.ones(2), zero, 1.0, True, 1.0)
    assert [*rows, squares] == pytest.approx([h, h, 2 * h**2], rel=1e-14)


@pytest.mark.parametrize("gaussian", [False, True])
def test_the_order_of_rows_does_not_matter(rng, gaussian):
    x, r = rows_of(rng, 1000, 8, 3)
    order = rng.permutation(1000)
    size = np.abs(r) @ np.abs(r).T
    rows, squares = feature_moments(x, r, 0.4, gaussian)
    rows2, squares2 = feature_moments(x[order], r[order], 0.4, gaussian)
    assert squares2 == pytest.approx(squares, rel=1e-13)
    assert (np.abs(rows2 - rows[order]) <= 1e-14 * size[order].sum(axis=1)).all()


def test_several_python_threads_may_call_at_once(rng):
    # numba's workqueue layer would abort the process here.
    x, r = rows_of(rng, 1000, 2, 2)
    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(lambda _: feature_moments(x, r, 0.4, False)[1], range(20)))) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_may_call_after_its_parent():
    # numba's OpenMP layer would abort the child here. Run apart: pytest itself must not fork with threads alive.
    code = """
import os, numpy as np
from calibrant._compiled.cpu import feature_moments
x = np.linspace(0, 1, 600)[:, None]
expected = feature_moments(x, x, 0.4, False)[1]
child = os.fork()
if child == 0:
    os._exit(0 if feature_moments(x, x, 0.4, False)[1] == expected else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60)


def test_single_precision_is_computed_in_double(rng):
    x, r = (a.astype(np.float32) for a in rows_of(rng, 200, 3, 2))
    double = feature_moments(x.astype(np.float64), r.astype(np.float64), 0.4, False)
    assert feature_moments(x, r, 0.4, False)[1] == double[1]


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("n", [1, 100, 128, 300])
def test_sums_over_two_sets_are_a_corner_of_the_matrix(rng, n, gaussian):
    x, r = rows_of(rng, 301, 3, 2)
    h = kernel(x, 0.4, gaussian) * (r @ r.T)
    found = feature_cross((x[:n], r[:n]), (x[n:], r[n:]), 0.4, gaussian)
    assert_corner(found, h[:n, n:], (np.abs(r) @ np.abs(r).T).max())


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("n", [1, 100, 128, 300])
def test_sums_over_two_sets_of_normals_are_a_corner_of_the_matrix(rng, n, gaussian):
    rows = normals_of(rng, 301, 2)
    h, _ = normal_matrix(*rows, 0.7, gaussian, 1.3)
    found = normal_cross(tuple(x[:n] for x in rows), tuple(x[n:] for x in rows), 0.7, gaussian, 1.3)
    assert_corner(found, h[:n, n:], 4.0)


def assert_corner(found, h, size):
    along, down, squares = found
    assert along == pytest.approx(h.sum(axis=1), rel=0, abs=1e-13 * size * h.shape[1])
    assert down == pytest.approx(h.sum(axis=0), rel=0, abs=1e-13 * size * h.shape[0])
    assert squares == pytest.approx((h**2).sum(), rel=0, abs=1e-13 * size**2 * h.size)


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


def test_single_precision_is_computed_in_double_of_running_sums(rng):
    x, v = points(rng, 600).astype(np.float32), rng.normal(size=(600, 2)).astype(np.float32)
    exact = running_sums(x.astype(np.float64), v.astype(np.float64), np.ones(1))
    assert (running_sums(x, v, np.ones(1)) == exact).all()
    assert exact.dtype == np.float64


@pytest.mark.parametrize("n", [1, 2, 513, 1300])
def test_pairs_of_one_column_have_the_digits_of_several(rng, n):
    # One column has a loop of its own.
    x, v, c = points(rng, n), rng.normal(size=(n, 1)), np.array([0.7])
    assert (pair_sums(x, v, c) == pair_sums(x, np.repeat(v, 2, axis=1), c)).all()
    assert pair_sums(x, v, c)[0] == pytest.approx((matrix(x, c) @ v * v).sum() / 2, rel=0, abs=1e-13 * n)
