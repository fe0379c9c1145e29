import numpy as np
import pytest

from calibrant import Bernoulli, Categorical, Ensemble, Mixture, MultivariateNormal, Normal
from calibrant.estimators.kernel_errors.random_features import target_features
from calibrant.kernels import Energy, Gaussian, Identity, LabelMatrix, Matern
from calibrant.residuals import Route, residuals


@pytest.mark.parametrize("kernel", [Identity(), LabelMatrix(((1.0, 0.5, 0.0), (0.5, 1.0, 0.5), (0.0, 0.5, 1.0)))])
def test_classes(kernel, rng):
    predictions = Categorical(rng.dirichlet(np.ones(3), 20))
    y = predictions.sample(rng, 1)[0]
    features = target_features(kernel, predictions, rng)
    residual = features.of_targets(y) - features.expected
    expected = residuals(kernel, y, predictions)
    assert residual @ residual.T == pytest.approx(expected.inner(expected), abs=1e-6)
    assert features.squares(y) == pytest.approx(np.diag(expected.inner(expected)), abs=1e-12)


@pytest.mark.parametrize("family", [Normal, Ensemble, Mixture])
def test_smooth_kernels_have_exact_features(family, rng):
    predictions = family.example(rng, 20)
    y = predictions.sample(rng, 1)[0]
    features = target_features(Gaussian(2.0), predictions, rng)
    residual = features.of_targets(y) - features.expected
    expected = residuals(Gaussian(2.0), y, predictions)
    assert residual @ residual.T == pytest.approx(expected.inner(expected), abs=1e-5)
    assert features.squares(y) == pytest.approx(np.diag(expected.inner(expected)), abs=1e-5)


@pytest.mark.parametrize(
    ("kernel", "family"), [(Matern(1.5, 1.0), Normal), (Gaussian(1.0), MultivariateNormal), (Gaussian(0.001), Normal)]
)
def test_others_have_random_ones(kernel, family, rng):
    """Inner products of residuals, each within [-4, 4] per feature, by the mean over many draws of 64."""
    predictions = family.example(rng, 10)
    y = predictions.sample(rng, 1)[0]
    route = Route.QUANTILE if isinstance(kernel, Matern) else None
    expected = residuals(kernel, y, predictions, route)
    grams = []
    for _ in range(400):
        features = target_features(kernel, predictions, rng)
        residual = features.of_targets(y) - features.expected
        grams.append(residual @ residual.T)
    assert features.width == 128
    error = 5 * np.std(grams, axis=0) / 20 + 2e-3  # 128 quantiles stand for a prediction
    assert np.all(np.abs(np.mean(grams, axis=0) - expected.inner(expected)) < error)
    assert error.max() < 0.15


def test_none(rng):
    assert target_features(Energy(), Normal.example(rng, 3), rng) is NotImplemented
    assert target_features(Gaussian(1.0), Categorical([0.2, 0.4]), rng) is NotImplemented
    assert target_features(Gaussian(1.0), Bernoulli.example(rng, 3), rng) is NotImplemented


@pytest.mark.parametrize(
    ("kernel", "family"),
    [(Identity(), Categorical), (LabelMatrix(((1, 0.5, 0), (0.5, 1, 0.5), (0, 0.5, 1))), Categorical)]
    + [(Gaussian(2.0), family) for family in (Normal, MultivariateNormal)],
)
def test_many_resamples_have_the_features_of_each(kernel, family, rng):
    predictions = family.example(rng, 30)
    drawn = predictions.sample(rng, 7)
    features = target_features(kernel, predictions, rng).of_targets
    np.testing.assert_array_equal(features.of_resamples(drawn), np.stack([features(y) for y in drawn], axis=1))
