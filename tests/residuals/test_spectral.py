import numpy as np
import pytest

from calibrant import Ensemble, Laplace, LogNormal, Mixture, MultivariateNormal, Normal, StudentT
from calibrant.distributions import Beta
from calibrant.kernels import Energy, Gaussian, Matern, expectation
from calibrant.residuals import residuals
from calibrant.residuals.spectral import TAILS, extent, mean_embedding, residual_features, spectral_features


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


def test_light_tails_are_covered_all_but_a_trillionth_of_them():
    batch, y = Beta([2.0, 3.0], 4.0), np.array([0.1, 0.5])
    waves = spectral_features(Gaussian(0.2), batch, y)
    assert waves.expected.shape == (2, 2 * len(waves.nodes))
    assert np.array_equal(waves(y), residual_features(Gaussian(0.2), y, batch))
    assert waves.of_points(y) - waves.expected == pytest.approx(waves(y), abs=1e-15)


@pytest.mark.parametrize(
    ("batch", "tail"), [(StudentT([30.0], 0.0, 1.0), 0), (StudentT([6.0], 0.0, 1.0), 1), (StudentT([3.0], 0.0, 1.0), 2)]
)
def test_heavy_tails_are_cut_where_few_enough_frequencies_reach(batch, tail):
    low, high = extent(batch, TAILS[tail][0])
    waves = spectral_features(Gaussian(1.0), batch, np.zeros(1))
    assert len(waves.nodes) == len(Gaussian(1.0).spectrum(high - low)[0])


def test_few_rows_may_take_more_frequencies():
    batch, y = LogNormal(np.zeros(3), 2.0), np.ones(3)
    waves = spectral_features(Gaussian(0.5), batch, y)
    assert len(waves.nodes) > TAILS[-1][1]
    many = LogNormal(np.zeros(10_000), 2.0)
    assert spectral_features(Gaussian(0.5), many, y) is NotImplemented


def test_targets_far_away_cost_no_more_than_near_ones():
    """One is as far as nine length scales from all others, wherever it is."""
    batch = Normal([0.0, 0.0, 0.0], 1.0)
    near, far, farther = (
        spectral_features(Gaussian(1.0), batch, np.array([y, y + 1, 0.3])) for y in (16.0, 500.0, 1e12)
    )
    assert len(near.nodes) <= len(far.nodes) == len(farther.nodes) < 1.5 * len(near.nodes)
    for y, waves in ((500.0, far), (1e12, farther)):
        features = waves(np.array([y, y + 1, 0.3]))
        inner = features @ features.T
        assert np.diag(inner)[:2] == pytest.approx(np.full(2, 1 + 3**-0.5), abs=1e-12)  # no prediction thought of them
        assert inner[0, 1] == pytest.approx(np.exp(-0.5) + 3**-0.5, abs=1e-12)
    whole = Gaussian(1.0)
    y = np.array([16.0, 40.0, 0.3])
    exact = residuals(whole, y, batch)
    features = residual_features(whole, y, batch)
    assert features @ features.T == pytest.approx(exact.inner(exact), abs=1e-11)


def test_a_tail_that_is_cut_off_costs_no_more_than_its_probability():
    """Against the same with all of it covered."""
    assert [tail for tail, _ in TAILS] == [1e-12, 1e-9, 1e-6]
    batch, y = StudentT([3.0, 4.0, 3.5], [0.0, 1.0, 2.0], 1.0), np.array([0.3, -2.0, 15.0])
    kernel = Gaussian(1.0)
    features = residual_features(kernel, y, batch)
    nodes, weights = kernel.spectrum(extent(batch, 1e-12)[1] * 2)
    parts = batch.cf(nodes)
    phase = y[:, None] * nodes
    exact = np.concatenate([(np.cos(phase) - parts[0]), (np.sin(phase) - parts[1])], axis=1) * np.sqrt(
        np.tile(weights, 2)
    )
    assert np.abs(features @ features.T - exact @ exact.T).max() < 2e-6
