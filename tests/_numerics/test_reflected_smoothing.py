"""Masses on a grid, and their cosine sums, against the definitions."""

import numpy as np
import pytest
from scipy.fft import idct
from scipy.stats import norm

from calibrant._numerics.reflected_smoothing import GridPlaces, ReflectedKernels, cosine_sums, damping


def test_shares_keep_the_total_and_the_mean(rng):
    scores, weights = np.append(rng.random(50), [0.0, 1.0, 0.25]), rng.random(53)
    mass = GridPlaces.of(scores, 8).mass(weights)
    assert mass.sum() == pytest.approx(weights.sum(), rel=1e-14)
    assert mass @ np.linspace(0, 1, 9) == pytest.approx(weights @ scores, rel=1e-14)


def test_the_matrix_does_the_same(rng):
    scores, weights, values = rng.random(40), rng.random(40), rng.normal(size=40)
    places = GridPlaces.of(scores, 16)
    assert places.matrix(weights) @ values == pytest.approx(places.mass(weights * values), abs=1e-14)


def test_cosine_sums_are_those_of_the_nodes(rng):
    mass, k = rng.normal(size=(2, 9)), np.arange(9)
    right = mass @ np.cos(np.pi * np.linspace(0, 1, 9)[:, None] * k)
    assert cosine_sums(mass) == pytest.approx(right, abs=1e-13)


def test_damped_cosines_are_the_reflected_gaussian():
    """One mass, against a Gaussian and its mirror images, summed."""
    cells, h = 256, 0.1
    t, mass = np.linspace(0, 1, cells + 1), np.zeros(cells + 1)
    mass[60] = 1.0
    images = np.concatenate([2 * np.arange(-3, 4) + t[60], 2 * np.arange(-3, 4) - t[60]])
    right = norm.pdf((t[:, None] - images) / h).sum(axis=1) / h
    found = idct(2 * cosine_sums(mass) * damping(np.array([h]), cells + 1)[0], type=1) * cells
    assert found == pytest.approx(right, abs=1e-10)


@pytest.mark.parametrize(("first", "count"), [(0, 129), (0, 10), (60, 1), (90, 20), (119, 10)])
def test_kernels_between_nodes_are_sums_over_mirror_images(first, count, rng):
    h, mass = np.array([0.9, 0.3, 0.1]), rng.random(count)
    kernels = ReflectedKernels(h, 128, first, count)
    t = (first + np.arange(count)) / 128
    images = np.concatenate([2 * np.arange(-6, 7)[:, None] + t, 2 * np.arange(-6, 7)[:, None] - t])
    right = norm.pdf((t[:, None, None] - images) / h[:, None, None, None]).sum(axis=2) / h[:, None, None] / 128
    assert np.array([kernels.around(i) for i in range(count)]).transpose(1, 0, 2) == pytest.approx(right, abs=1e-13)
    assert kernels.own == pytest.approx(np.diagonal(right, axis1=1, axis2=2), abs=1e-13)
    assert kernels(mass) == pytest.approx(right @ mass, abs=1e-12)
