"""Power-exponential predictions: shapes that have other names, integrals, and the middle of what is nearly a box."""

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gamma

from calibrant import SKCE, Laplace, Normal
from calibrant._validate import InputError
from calibrant.distributions import PowerExponential
from calibrant.distributions.quadrature import crps_by_cells
from calibrant.recalibration import Temperature
from calibrant.residuals import Route, residuals

W = np.array([0.0, 1e-3, 0.3, 2.0, 10.0, 100.0])
SHAPES = (0.1, 0.5, 1.0, 1.5, 2.0, 3.0, 10.0, 100.0, 1000.0)


def of_shape(shape):
    return PowerExponential([0.3], 0.7, shape)


@pytest.mark.parametrize(("shape", "other"), [(1.0, Laplace([0.3], 0.7)), (2.0, Normal([0.3], 0.7 / 2**0.5))])
def test_two_shapes_have_names_of_their_own(shape, other):
    ours, y = of_shape(shape), np.linspace(-4, 4, 33)[:, None]
    for name in ("log_prob", "cdf", "crps"):
        assert getattr(ours, name)(y) == pytest.approx(getattr(other, name)(y), rel=1e-12)
    u = np.array([1e-12, 0.01, 0.5, 0.6, 0.999])
    assert ours.quantile(u) == pytest.approx(other.quantile(u), rel=1e-12)
    assert ours.std == pytest.approx(other.std, rel=1e-14)
    assert np.abs(np.array(ours.cf(W)) - np.array(other.cf(W))).max() < 2e-12


@pytest.mark.parametrize("shape", SHAPES)
def test_the_characteristic_function_is_an_integral(shape):
    """Of the density on the line, and for heavy tails on the imaginary line, where nothing oscillates."""

    def integrand(r, w):
        if shape < 1:
            return (1j * np.exp(-w * r - (1j * r) ** shape)).real
        return np.cos(w * r) * np.exp(-(r**shape))

    found = np.array(PowerExponential([0.0], 1.0, shape).cf(W))
    for i, w in enumerate(W[2:], start=2):
        ends = [0, 1e-9, 1e-6, 1e-4, 1e-2, 0.1] if shape < 1 else [0]
        last = 700 / w if shape < 1 else 40 ** (1 / shape)
        edges = [*ends, *np.linspace(max(ends[-1], 1e-3), last, max(4, int(w * last / 3)))]
        total = sum(quad(integrand, a, b, args=(w,), epsabs=1e-13)[0] for a, b in itertools.pairwise(edges))
        assert found[0, 0, i] == pytest.approx(total / gamma(1 + 1 / shape), abs=1e-10)
    assert found[0, 0, 0] == pytest.approx(1, abs=1e-11)
    assert np.all(found[1] == 0)


def test_rows_that_differ_in_shape_and_scale_do_not_disturb_each_other(rng):
    batch = PowerExponential.example(rng, 40)
    together = np.array(batch.cf(W[2:5]))
    alone = np.concatenate([np.array(batch[i : i + 1].cf(W[2:5])) for i in range(40)], axis=1)
    assert np.abs(together - alone).max() < 1e-11


@pytest.mark.parametrize("shape", SHAPES[1:])
def test_the_ranked_score_is_an_integral(shape):
    batch = of_shape(shape)
    for y in (0.3, 0.31, 0.9, 1.2, -4.0):
        assert batch.crps(np.array([y])) == pytest.approx(crps_by_cells(batch, np.array([y])), rel=1e-7)


@pytest.mark.parametrize("shape", SHAPES)
def test_levels_and_quantiles_belong_together(shape):
    u = np.array([1e-12, 1e-3, 0.3, 0.499, 0.5, 0.501, 0.99, 1 - 1e-9])
    batch = of_shape(shape)
    q = batch.quantile(u)[0]
    assert batch.cdf(q[:, None])[:, 0] == pytest.approx(u, rel=1e-11)
    assert np.all(np.diff(q) > 0)


def wasserstein(batch):
    return quad(lambda u: np.diff(batch.quantile(np.array([u]))[:, 0])[0] ** 2, 0, 1, points=[0.5], limit=800)[0] ** 0.5


@pytest.mark.parametrize("shape", [0.7, 1.0, 2.0, 8.0])
def test_coordinates_of_one_shape_have_the_wasserstein_distance(shape):
    batch = PowerExponential([0.3, -1.0], [0.5, 2.0], shape)
    assert np.linalg.norm(np.diff(batch.coords, axis=0)) == pytest.approx(wasserstein(batch), rel=1e-6)


def test_coordinates_of_several_shapes_nearly_have_it():
    for shapes in ((1.0, 2.0), (2.0, 10.0), (1.0, 4.0)):
        batch = PowerExponential([0.0, 0.0], 1.0, shapes)
        assert np.linalg.norm(np.diff(batch.coords, axis=0)) == pytest.approx(wasserstein(batch), rel=0.1)


def test_the_kernel_error_of_shape_two_is_that_of_normal_predictions(rng):
    loc, scale = rng.normal(size=50), rng.uniform(0.5, 2, 50)
    y = rng.normal(loc, 1.2 * scale)
    found = SKCE()(y, PowerExponential(loc, 2**0.5 * scale, 2.0))
    assert found.route == "spectral; plain"
    lengthscale = found.estimator.on_targets  # resampled by other draws
    wanted = SKCE(on_targets=lengthscale)(y, Normal(loc, scale))
    assert found.value == pytest.approx(wanted.value, rel=1e-8)


def test_routes_agree(rng):
    batch = PowerExponential.example(rng, 8)
    y = batch.sample(rng, 1)[0]
    from calibrant.kernels import Gaussian

    exact, nodes = (residuals(Gaussian(1.0), y, batch, route) for route in (Route.SPECTRAL, Route.QUANTILE))
    assert np.abs(exact.inner(exact) - nodes.inner(nodes)).max() < 3e-3


def test_a_temperature_is_a_factor_of_the_scale(rng):
    batch = PowerExponential(rng.normal(size=4_000), 1.0, 1.5)
    assert batch.temper(8.0).scale == pytest.approx(np.full(4_000, 4.0))
    fitted = Temperature().fit(batch.temper(2.0).sample(rng, 1)[0], batch, folds=0)
    # the variance of |z|^b is that of a gamma variable with shape 1 / b: a standard error of sqrt(b / n)
    assert fitted.map.temperature == pytest.approx(2.0, abs=5 * 2.0 * (1.5 / 4_000) ** 0.5)


def test_shapes_beyond_computing_are_refused():
    with pytest.raises(InputError, match="shape must be positive; found 0 in row 1"):
        PowerExponential([0.0, 0.0], 1.0, [1.0, 0.0])
    with pytest.raises(InputError, match=r"shape must lie between 0.1 and 1000; found 0.05 in row 0: cut it off there"):
        PowerExponential([0.0], 1.0, [0.05])
    with pytest.raises(InputError, match="scale must be positive; found -1 in row 0"):
        PowerExponential([0.0], [-1.0], 2.0)
