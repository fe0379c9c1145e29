import numpy as np
import pytest

from calibrant import Categorical, Ensemble, Mixture, MultivariateNormal, Normal
from calibrant._validate import InputError
from calibrant.distributions.wasserstein import MixtureWasserstein
from calibrant.estimators.kernel_problem import KernelForm, coordinates, resolve_problem, target_kernel
from calibrant.kernels import Cityblock, Energy, Exponential, Gaussian, Identity, Matern


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
    assert points.shape == (5, 6)


def test_mixtures_are_embedded_by_the_kernel_on_targets(rng):
    """The Euclidean distance of the coordinates is the maximum mean discrepancy."""
    from calibrant.expectation import expectation

    mixture, kernel = Mixture.example(rng, 6), Gaussian(0.8)
    points = coordinates(mixture, Exponential(1.0), kernel)
    inner = expectation(kernel, mixture, mixture)
    squared = np.diag(inner)[:, None] - 2 * inner + np.diag(inner)
    assert ((points[:, None] - points) ** 2).sum(axis=2) == pytest.approx(squared, abs=1e-12)


def test_no_coordinates_is_an_error(rng):
    with pytest.raises(InputError, match="Mixture predictions have no coordinates for Exponential"):
        coordinates(Mixture.example(rng, 4), Exponential(1.0), Matern(1.5, 1.0))
    with pytest.raises(InputError, match="Ensemble predictions have no coordinates"):
        coordinates(Ensemble(rng.normal(size=(4, 3, 2))), Exponential(1.0), Energy())
    assert coordinates(Ensemble(rng.normal(size=(4, 3, 2))), Exponential(1.0), Gaussian(1.0)).shape == (4, 512)


def test_rows_can_be_cut_and_weights_have_mean_one(rng):
    p, y, w = rng.dirichlet(np.ones(3), 9), rng.integers(0, 3, 9), rng.random(9)
    kernel, _, rows = resolve_problem(Exponential(1.0), None, None, y, Categorical(p), w)
    assert rows.weights.mean() == pytest.approx(1.0)
    whole = KernelForm(kernel)(rows, rows)
    assert KernelForm(kernel)(rows[2:5], rows[5:]) == pytest.approx(whole[2:5, 5:], rel=1e-14)
