import numpy as np
import pytest

from calibrant import Bernoulli, Categorical, Ensemble, Mixture, MultivariateNormal, Normal
from calibrant.estimators.target_features import target_features
from calibrant.kernels import Energy, Gaussian, Identity, LabelMatrix, Matern
from calibrant.residuals import residuals


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
def test_smooth_kernels_have_exact_waves(family, rng):
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
    """Inner products within five standard errors of 64 waves."""
    predictions = family.example(rng, 20)
    y = predictions.sample(rng, 1)[0]
    features = target_features(kernel, predictions, rng)
    residual = features.of_targets(y) - features.expected
    expected = residuals(kernel, y, predictions)
    assert features.width == 128
    assert np.abs(residual @ residual.T - expected.inner(expected)).max() < 5 * 2 / 8


def test_none(rng):
    assert target_features(Energy(), Normal.example(rng, 3), rng) is NotImplemented
    assert target_features(Gaussian(1.0), Categorical([0.2, 0.4]), rng) is NotImplemented
    assert target_features(Gaussian(1.0), Bernoulli.example(rng, 3), rng) is NotImplemented
