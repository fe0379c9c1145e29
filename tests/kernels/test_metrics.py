import numpy as np
import pytest
from scipy.spatial.distance import cdist

from calibrant import SKCE, Ensemble, MultivariateNormal, Normal
from calibrant._validate import InputError
from calibrant.checks import check_kernel
from calibrant.kernels import Cityblock, Euclidean, Exponential, Gaussian, Matern, PerCoordinate, expectation
from calibrant.residuals import Route, residuals


@pytest.mark.parametrize("metric", [Euclidean(), Cityblock()], ids=repr)
@pytest.mark.parametrize("d", [1, 5, 16, 17, 60])
def test_distances_are_those_of_scipy(metric, d, rng):
    x, y = rng.normal(size=(9, d)), rng.normal(size=(7, d))
    assert metric(x, y) == pytest.approx(cdist(x, y, metric.name), rel=1e-12)
    assert metric.squared(x, y) == pytest.approx(cdist(x, y, metric.name) ** 2, rel=1e-12)


def test_near_points_keep_their_digits():
    x = np.array([[0.3, 0.7], [0.3 + 1e-9, 0.7 - 1e-9]])
    assert Euclidean()(x, x)[0, 1] == pytest.approx(2**0.5 * 1e-9, rel=1e-6)
    assert Euclidean()(x, x)[0, 0] == 0


def test_equal_points_have_a_gradient():
    torch = pytest.importorskip("torch")
    x = torch.tensor([[1.0, 2.0], [1.0, 2.0]], dtype=torch.float64, requires_grad=True)
    Euclidean()(x, x).sum().backward()
    assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize("offset", [1e3, 1e6, 2.0**30])
@pytest.mark.parametrize("metric", [Euclidean(), Cityblock()], ids=repr)
def test_many_coordinates_keep_their_digits_far_from_zero(metric, offset):
    rng = np.random.default_rng(0)
    x, y = (np.round(rng.normal(size=(n, 30)) * 2**16) / 2**16 for n in (40, 50))
    assert metric(x + offset, y + offset) == pytest.approx(metric(x, y), rel=1e-11)


def test_points_close_to_each_other_and_far_from_the_others_keep_their_digits():
    """Two groups, 1e6 apart: products around their middle have no digit left within a group."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=(30, 20)), rng.normal(size=(30, 20)) + 1e6])
    assert Euclidean()(x, x) == pytest.approx(cdist(x, x), rel=1e-9)
    assert np.all(np.diag(Euclidean()(x, x)) == 0)


@pytest.mark.parametrize("offset", [0.0, 280.0])
def test_single_precision_is_that_of_the_same_numbers_in_double(offset):
    x = np.float32(np.random.default_rng(0).normal(size=(40, 30)) + offset)
    found = Euclidean()(x, x)
    assert found.dtype == np.float32
    assert found == pytest.approx(cdist(x.astype(float), x.astype(float)), rel=1e-6)


def test_tensors_lose_digits_relative_to_their_spread_alone():
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(np.float32(np.random.default_rng(0).normal(size=(40, 30)) + 280))
    exact = cdist(x.double().numpy(), x.double().numpy())
    assert np.abs(Euclidean()(x, x).numpy() - exact).max() < 1e-3 * np.median(exact)
    assert np.abs(Euclidean()(x, x).numpy() - exact)[exact > 0].max() < 1e-5 * np.median(exact)


UNITS = np.array([1.0, 10.0, 0.3])


@pytest.mark.parametrize(
    "kernel",
    [Gaussian(UNITS), Exponential([1.0, 10.0, 0.3]), Matern(2.5, UNITS), Exponential(UNITS, Cityblock())],
    ids=repr,
)
def test_length_scales_of_coordinates_divide_them(kernel, rng):
    x = rng.normal(size=(40, 3)) * UNITS
    check_kernel(kernel, x)
    one = type(kernel)(**{**vars(kernel), "metric": kernel.metric.metric})
    assert kernel(x, x[:7]) == pytest.approx(one(x / UNITS, x[:7] / UNITS), rel=1e-14)
    assert kernel.is_stationary
    assert not kernel.is_euclidean


@pytest.mark.parametrize("full", [False, True])
def test_length_scales_of_coordinates_of_predictions_and_targets(full, rng):
    """The same as in units in which all length scales are one."""
    units, loc, scale = np.array([1.0, 10.0]), rng.normal(size=(60, 2)), rng.uniform(0.5, 2, (60, 2))
    given = {"covariance": np.einsum("ni,ij->nij", scale**2, np.eye(2))} if full else {"scale": scale}
    predictions, plain = MultivariateNormal(loc, **given), MultivariateNormal(loc / units, scale=scale / units)
    y = predictions.sample(rng, 1)[0]
    found = SKCE(Exponential(1.0), Gaussian(units))(y, predictions)
    assert found.route.startswith("closed")
    same = SKCE(Exponential(1.0, PerCoordinate([1.0, 0.1] * 2)), Gaussian(1.0))(y / units, plain)
    assert found.value == pytest.approx(same.value, rel=1e-11)


def test_an_open_length_scale_beside_units_of_coordinates(rng):
    x = rng.normal(size=(30, 2)) * [1.0, 10.0]
    found = Gaussian(metric=PerCoordinate([1.0, 10.0])).resolve(x).unit
    assert found == Gaussian().resolve(x / [1.0, 10.0]).unit


def test_random_features_of_length_scales_of_coordinates(rng):
    x = np.array([[0.0, 0.0], [0.7, -4.0]])
    kernel = Gaussian([1.0, 10.0])
    frequencies = kernel.frequencies(np.random.default_rng(0), 40_000, 2)
    assert np.cos(frequencies @ (x[0] - x[1])).mean() == pytest.approx(kernel(x, x)[0, 1], abs=0.01)
    assert Exponential([1.0, 2.0], Cityblock()).frequencies(rng, 3, 2) is NotImplemented


def test_closed_forms_are_for_their_own_distances(rng):
    """Sums of differences are no Euclidean distances: such kernels take draws of normals, and all members of ensembles."""
    normal = MultivariateNormal(rng.normal(size=(3, 2)), scale=np.ones(3))
    kernel = Gaussian(1.0, Cityblock())
    assert expectation(kernel, normal, normal) is NotImplemented
    found = residuals(kernel, rng.normal(size=(3, 2)), normal)
    assert found.route is Route.SAMPLED
    drawn = Ensemble(np.moveaxis(normal.sample(rng, 3000), 0, 1))
    by_hand = np.mean([kernel(drawn.members[0, i::7], drawn.members[1, :400]).mean() for i in range(7)])
    assert expectation(kernel, drawn, drawn)[0, 1] == pytest.approx(by_hand, rel=0.1)
    on_a_line = Normal([0.0, 1.0], 1.0)
    same = expectation(Gaussian(1.0), on_a_line, on_a_line)
    assert np.array_equal(expectation(kernel, on_a_line, on_a_line), same)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian([1.0, 0.0]), "every one of lengthscales must be a positive number"),
        (lambda: Gaussian([]), "lengthscales must be a list of numbers, one per coordinate; got"),
        (lambda: Gaussian(["a"]), "lengthscales must be a list of numbers, one per coordinate; got"),
        (lambda: Gaussian("1"), "lengthscale must be a positive number, or None for the median distance; got '1'"),
        (lambda: PerCoordinate([1.0], PerCoordinate([1.0])), "metric must be Euclidean.. or Cityblock"),
        (
            lambda: Gaussian([1.0])(np.zeros((2, 3)), np.zeros((2, 3))),
            "1 length scales for 3 coordinates: give one for each",
        ),
        (
            lambda: SKCE(Gaussian(1.0), Gaussian([1.0, 2.0]))([0.0, 1.0], Normal([0.0, 0.5], 1.0)),
            "2 length scales for 1 coordinate: give one for each, or one number",
        ),
    ],
)
def test_length_scales_that_are_none(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_points_of_two_libraries_are_refused(rng):
    torch = pytest.importorskip("torch")
    with pytest.raises(InputError, match="x is a ndarray and y is a Tensor: give both in one library"):
        Gaussian(1.0)(rng.random((3, 1)), torch.ones(2, 1))
