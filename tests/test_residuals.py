import numpy as np
import pytest

from calibrant import Categorical, Ensemble, Laplace, Mixture, MultivariateNormal, Normal
from calibrant._validate import InputError
from calibrant.kernels import Energy, Exponential, Gaussian, Identity, LabelMatrix, Matern
from calibrant.residuals import Route, residuals


def four_terms(kernel, y, p, rng, draws=4000):
    """Inner products from independent draws."""
    a, b = (p.sample(rng, draws).T for _ in range(2))
    n = len(y)
    out = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            yi, yj = y[i : i + 1, None], y[j : j + 1, None]
            x, z = a[i][:, None], b[j][:, None]
            pairs = np.mean([kernel(x[s : s + 50], z[s : s + 50]).mean() for s in range(0, draws, 50)])
            out[i, j] = kernel(yi, yj)[0, 0] - kernel(x, yj).mean() - kernel(yi, z).mean() + pairs
    return out


@pytest.mark.parametrize(
    ("kernel", "predictions", "route"),
    [
        (Identity(), Categorical, Route.FEATURES),
        (Gaussian(1.0), Normal, Route.CLOSED),
        (Exponential(1.0), Normal, Route.CLOSED),
        (Matern(1.5, 1.0), Normal, Route.QUANTILE),
        (Energy(), Laplace, Route.QUANTILE),
        (Gaussian(1.0), Mixture, Route.CLOSED),
        (Matern(2.5, 1.0), Mixture, Route.QUANTILE),
        (Matern(2.5, 1.0), Ensemble, Route.CLOSED),
        (Matern(2.5, 1.0), MultivariateNormal, Route.SAMPLED),
    ],
)
def test_the_best_route_is_taken(kernel, predictions, route, rng):
    batch = predictions.example(rng, 4)
    assert residuals(kernel, batch.as_targets(batch.sample(rng, 1)[0]), batch).route is route


@pytest.mark.parametrize("route", [Route.CLOSED, Route.SPECTRAL, Route.QUANTILE, Route.SAMPLED])
@pytest.mark.parametrize("family", [Normal, Laplace])
def test_routes_agree(route, family, rng):
    batch = family.example(rng, 12)
    y = batch.sample(rng, 1)[0]
    reference = residuals(Gaussian(1.0), y, batch)
    other = residuals(Gaussian(1.0), y, batch, route)
    assert other.route is route
    tolerance = {Route.CLOSED: 1e-15, Route.SPECTRAL: 1e-11, Route.QUANTILE: 3e-3, Route.SAMPLED: 0.25}[route]
    assert np.abs(reference.inner(reference) - other.inner(other)).max() < tolerance


def test_draws_for_rows_and_columns_are_independent(rng):
    """So the diagonal is unbiased too: averaged over many rows it meets the closed form."""
    batch = Normal(np.zeros(400), 1.0)
    y = batch.sample(rng, 1)[0]
    exact = np.diagonal(residuals(Gaussian(1.0), y, batch).inner(residuals(Gaussian(1.0), y, batch)))
    drawn = residuals(Gaussian(1.0), y, batch, Route.SAMPLED)
    error = np.array([(drawn[i : i + 1].inner(drawn[i : i + 1]))[0, 0] for i in range(400)]) - exact
    assert abs(error.mean()) < 4 * error.std() / 20


def test_against_independent_draws(rng):
    batch = Normal([0.0, 1.0], [1.0, 0.5])
    y = np.array([0.3, 1.4])
    made = residuals(Gaussian(0.9), y, batch)
    assert made.inner(made) == pytest.approx(four_terms(Gaussian(0.9), y, batch, rng), abs=0.03)


def test_label_features_are_one_hot_minus_probabilities():
    p = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
    made = residuals(Identity(), np.array([2, 0]), Categorical(p))
    assert made.features == pytest.approx(np.eye(3)[[2, 0]] - p)
    matrix = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.5], [0.2, 0.5, 1.0]])
    ordinal = residuals(LabelMatrix(matrix), np.array([2, 0]), Categorical(p))
    difference = np.eye(3)[[2, 0]] - p
    assert ordinal.inner(ordinal) == pytest.approx(difference @ matrix @ difference.T, rel=1e-13)


def test_two_classes_need_one_feature(rng):
    p, y = rng.random(10), rng.integers(0, 2, 10)
    scalar = residuals(Identity(), y, Categorical(p))
    assert scalar.features.shape == (10, 1)
    full = np.eye(2)[y] - np.stack([1 - p, p], axis=1)
    assert scalar.inner(scalar) == pytest.approx(full @ full.T, rel=1e-13)


def test_unknown_pairs_list_what_exists(rng):
    with pytest.raises(
        InputError,
        match=r"Gaussian\(.*\) has no expectation under Categorical predictions; closed forms: .*Gaussian with Normal",
    ):
        residuals(Gaussian(1.0), np.array([0]), Categorical([[0.2, 0.8]]))
    with pytest.raises(InputError, match="by the route 'spectral'"):
        residuals(Matern(1.5, 1.0), np.zeros(1), Normal([0.0], 1.0), Route.SPECTRAL)
    with pytest.raises(InputError, match="the label matrix is for 2 classes; y_pred has 3"):
        residuals(LabelMatrix(np.eye(2)), np.array([0]), Categorical([[0.2, 0.3, 0.5]]))


def test_slices_keep_their_rows(rng):
    batch = Mixture.example(rng, 6)
    y = batch.sample(rng, 1)[0]
    made = residuals(Gaussian(1.0), y, batch)
    whole = made.inner(made)
    assert made[2:5].inner(made[:2]) == pytest.approx(whole[2:5, :2], rel=1e-13)
    assert len(made[2:5]) == 3


@pytest.mark.parametrize("route", [Route.CLOSED, Route.SPECTRAL])
def test_many_members_are_taken_by_their_waves(route, rng):
    """The same inner products as sums over all pairs of members."""
    y, predictions = rng.normal(size=30), Ensemble(rng.normal(size=(30, 12)))
    best = residuals(Gaussian(0.7), y, predictions)
    assert best.route is Route.SPECTRAL
    assert best.inner(best) == pytest.approx(_inner(residuals(Gaussian(0.7), y, predictions, route)), abs=1e-10)
    assert residuals(Gaussian(0.7), y, Ensemble(rng.normal(size=(30, 3)))).route is Route.CLOSED


def test_quantiles_are_taken_by_their_waves(rng):
    y, predictions = rng.normal(size=20), Normal(rng.normal(size=20), 1.0)
    found = residuals(Gaussian(0.7), y, predictions, Route.QUANTILE)
    nodes = Ensemble(predictions.quantile((np.arange(128) + 0.5) / 128))
    assert found.features is not None
    assert _inner(found) == pytest.approx(_inner(residuals(Gaussian(0.7), y, nodes, Route.CLOSED)), abs=1e-10)


def _inner(found):
    return found.inner(found)
