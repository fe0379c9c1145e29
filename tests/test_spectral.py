import numpy as np
import pytest

from calibrant import Ensemble, Laplace, Mixture, MultivariateNormal, Normal
from calibrant.expectation import expectation
from calibrant.kernels import Energy, Gaussian, Matern
from calibrant.spectral import mean_embedding, residual_features


@pytest.mark.parametrize("family", [Normal, Laplace, Mixture, Ensemble])
def test_the_embedding_has_the_distance_of_mean_embeddings(family, rng):
    batch = family.example(rng, 8)
    kernel = Gaussian(1.3)
    points = mean_embedding(kernel, batch)
    inner = expectation(kernel, batch, batch)
    squared = np.diagonal(inner)[:, None] + np.diagonal(inner)[None, :] - 2 * inner
    found = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=-1)
    assert found == pytest.approx(squared, abs=1e-11)


@pytest.mark.parametrize("family", [MultivariateNormal, Ensemble])
def test_vectors_are_seen_by_random_waves(family, rng):
    """The squared distance is a mean over 256 frequencies, each with a spread of at most 4."""
    batch = family.example(rng, 8) if family is MultivariateNormal else Ensemble(rng.normal(size=(8, 5, 2)))
    kernel = Gaussian(1.3)
    points = mean_embedding(kernel, batch)
    assert np.array_equal(points, mean_embedding(kernel, batch))
    inner = expectation(kernel, batch, batch)
    squared = np.diagonal(inner)[:, None] + np.diagonal(inner)[None, :] - 2 * inner
    found = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=-1)
    assert np.abs(found - squared).max() < 5 * 0.5 / 16


def test_what_has_no_features(rng):
    assert residual_features(Matern(1.5, 1.0), np.zeros(2), Normal([0.0, 1.0], 1.0)) is NotImplemented
    vectors = MultivariateNormal.example(rng, 2)
    assert residual_features(Gaussian(1.0), np.zeros((2, 3)), vectors) is NotImplemented
    assert mean_embedding(Energy(), vectors) is NotImplemented
    assert residual_features(Gaussian(1e-6), np.zeros(2), Normal([0.0, 1.0], 1.0)) is NotImplemented
