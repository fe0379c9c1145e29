import numpy as np
import pytest

from calibrant import Categorical, Ensemble, Laplace, Mixture, MultivariateNormal, Normal, Quantiles
from calibrant._validate import InputError
from calibrant.distributions import Truncated
from calibrant.estimators.kernel_errors.kernel_problem import (
    KernelForm,
    coordinates,
    resolve_kernels,
    resolve_problem,
    target_kernel,
)
from calibrant.kernels import Cityblock, Energy, Exponential, Gaussian, Identity, MixtureWasserstein


def test_default_kernels_on_targets(rng):
    predictions = Normal.example(rng, 50)
    kernel = target_kernel(None, predictions)
    assert isinstance(kernel, Gaussian)
    medians = []
    for _ in range(50):
        y = predictions.sample(rng, 1)[0]
        medians.append(np.median(np.abs(y[:, None] - y)[np.triu_indices(50, 1)]))
    assert min(medians) <= kernel.lengthscale <= max(medians)
    assert target_kernel(None, Categorical([0.2, 0.4])) == Identity()


@pytest.mark.parametrize("family", [Normal, MultivariateNormal, Ensemble, Mixture])
@pytest.mark.parametrize("n", [40, 3000])
def test_open_length_scales_do_not_depend_on_the_order_of_rows(family, n, rng):
    predictions = family.example(rng, n)
    order = rng.permutation(n)
    assert target_kernel(None, predictions[order]) == target_kernel(None, predictions)
    assert target_kernel(None, predictions) != target_kernel(None, family.example(rng, n))


def on_grid(x, step=2.0**-16):
    """Numbers that no offset below 2^36 rounds."""
    return np.round(x / step) * step


MOVED = {
    "normal": lambda mu, s, o: Normal(mu[:, 0] + o, s),
    "laplace": lambda mu, s, o: Laplace(mu[:, 0] + o, s),
    "vectors": lambda mu, s, o: MultivariateNormal(mu + o, s),
    "members": lambda mu, s, o: Ensemble(mu + o),
    "mixture": lambda mu, s, o: Mixture([Normal(mu[:, 0] + o, s), Normal(mu[:, 1] + o, s)]),
    "quantiles": lambda mu, s, o: Quantiles(np.sort(mu, axis=1) + o, [0.1, 0.3, 0.5, 0.7, 0.9]),
    "truncated": lambda mu, s, o: Truncated(Normal(mu[:, 0] + o, s), mu[:, 0] + o - 1, np.inf),
}


@pytest.mark.parametrize("n", [60, 3000])
@pytest.mark.parametrize("family", MOVED)
def test_open_length_scales_do_not_depend_on_where_predictions_lie(family, n, rng):
    mu, s = on_grid(rng.normal(size=(n, 5))), on_grid(rng.uniform(0.5, 1.5, n))
    first, *others = (MOVED[family](mu, s, offset) for offset in (0.0, 1.0, 1e3, 1e6, 2.0**30))
    on_predictions, on_targets, _ = resolve_kernels(Exponential(), None, first)
    for predictions in others:
        found = resolve_kernels(Exponential(), None, predictions)
        assert found[0].lengthscale == pytest.approx(on_predictions.lengthscale, rel=1e-6)
        assert found[1].lengthscale == pytest.approx(on_targets.lengthscale, rel=1e-6)


def test_rounding_moves_no_length_scale(rng):
    """Where an offset rounds the predictions, rows change places with neighbours alone."""
    mu, s = rng.normal(size=2000), rng.uniform(0.5, 1.5, 2000)
    right = target_kernel(None, Normal(mu, s)).lengthscale
    assert target_kernel(None, Normal(mu + 2.0**30, s)).lengthscale == pytest.approx(right, rel=1e-6)
    single = Normal(mu.astype(np.float32), s.astype(np.float32))
    assert target_kernel(None, single).lengthscale == pytest.approx(right, rel=1e-5)


def test_length_scales_of_classes_come_from_their_own_digits(rng):
    p = rng.dirichlet(np.ones(4), 3000)
    found, *_ = resolve_kernels(Exponential(), None, Categorical(p))
    assert found == Exponential().resolve(p)


def test_length_scales_of_many_rows_come_from_some(rng):
    predictions = Normal.example(rng, 5000)
    y = predictions.sample(rng, 1)[0]
    median = np.median(np.abs(y[:, None] - y[:2000]))
    assert target_kernel(None, predictions).lengthscale == pytest.approx(median, rel=0.1)
    assert target_kernel(Gaussian(2.0), predictions) == Gaussian(2.0)


def test_two_classes_are_points_on_a_line(rng):
    p = rng.dirichlet(np.ones(2), 20)
    line = coordinates(Categorical(p), Exponential(1.0), Identity())
    assert line.shape == (20, 1)
    assert Exponential(1.0)(line, line) == pytest.approx(Exponential(1.0)(p, p), rel=1e-12)
    assert coordinates(Categorical(p), Exponential(1.0, Cityblock()), Identity()).shape == (20, 2)


def test_metrics_may_embed(rng):
    parts = [Normal.example(rng, 5) for _ in range(3)]
    points = coordinates(Mixture(parts), Exponential(1.0, MixtureWasserstein(3)), Gaussian(1.0))
    assert points.shape == (5, 9)  # weights, and two coordinates of each component


def test_mixtures_are_embedded_by_the_kernel_on_targets(rng):
    """The Euclidean distance of the coordinates is the maximum mean discrepancy."""
    from calibrant.kernels import expectation

    mixture, kernel = Mixture.example(rng, 6), Gaussian(0.8)
    points = coordinates(mixture, Exponential(1.0), kernel)
    inner = expectation(kernel, mixture, mixture)
    squared = np.diag(inner)[:, None] - 2 * inner + np.diag(inner)
    assert ((points[:, None] - points) ** 2).sum(axis=2) == pytest.approx(squared, abs=1e-12)


def test_kernels_without_features_lend_mixtures_those_of_a_gaussian_of_their_length_scale(rng):
    mixture = Mixture([Laplace.example(rng, 6), Laplace.example(rng, 6)])
    points = coordinates(mixture, Exponential(1.0), Exponential(0.8))
    assert points.tolist() == coordinates(mixture, Exponential(1.0), Gaussian(0.8)).tolist()


def test_no_coordinates_is_an_error(rng):
    with pytest.raises(InputError, match="Mixture predictions have no coordinates for Exponential"):
        coordinates(Mixture.example(rng, 4), Exponential(1.0), Energy())


def test_vectors_are_compared_by_their_mean_embedding(rng):
    """Of members far from each other and of members at the same place."""
    near, far = np.zeros((1, 3, 2)), np.full((1, 3, 2), 50.0)
    points = coordinates(Ensemble(np.concatenate([near, near, far])), Exponential(1.0), Gaussian(1.0))
    gaps = np.linalg.norm(points - points[0], axis=1)
    assert gaps[:2].tolist() == [0, 0]
    assert gaps[2] == pytest.approx(2**0.5, rel=0.1)


def test_rows_can_be_cut_and_weights_have_mean_one(rng):
    p, y, w = rng.dirichlet(np.ones(3), 9), rng.integers(0, 3, 9), rng.random(9)
    kernel, _, rows = resolve_problem(Exponential(1.0), None, None, y, Categorical(p), w)
    assert rows.weights.mean() == pytest.approx(1.0)
    whole = KernelForm(kernel)(rows, rows)
    assert KernelForm(kernel)(rows[2:5], rows[5:]) == pytest.approx(whole[2:5, 5:], rel=1e-14)
