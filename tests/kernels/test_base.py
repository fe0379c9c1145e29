"""Conformance of every kernel, so that a new one inherits its tests by joining the list."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad

from calibrant import SKCE, Ensemble, Laplace, Mixture, MultivariateNormal, Normal, kernels
from calibrant._validate import InputError
from calibrant.checks import check_kernel
from calibrant.distributions import Logistic
from calibrant.kernels import (
    Cityblock,
    Energy,
    Exponential,
    Gaussian,
    Identity,
    LabelMatrix,
    Matern,
    PerCoordinate,
    Product,
    Scaled,
    Sum,
    expectation,
)

KERNELS = [
    Gaussian(0.7),
    Gaussian(3.0),
    Exponential(0.7),
    Exponential(2.0, Cityblock()),
    Exponential(1.5, power=0.5),
    Exponential(1.5, power=1.7),
    Matern(1.5, 0.8),
    Matern(2.5, 0.8),
    Energy(),
    Gaussian(1.0) + Exponential(2.0),
    Gaussian(1.0) * Exponential(2.0),
    0.3 * Matern(1.5, 1.0),
    Identity(),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("d", [1, 3, 20])
def test_every_kernel_conforms(kernel, d, rng):
    check_kernel(kernel, rng.normal(size=(60, d)))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_ties_and_far_points(kernel):
    check_kernel(kernel, np.array([[0.0], [0.0], [1e-9], [1.0], [1.0], [500.0], [2000.0]]))


@pytest.mark.parametrize("kernel", [k for k in KERNELS if not isinstance(k, Identity)], ids=repr)
def test_every_array_library_gives_the_same_numbers(kernel, xp, rng):
    x, y = rng.normal(size=(7, 3)), rng.normal(size=(5, 3))
    other = np.asarray(kernel(xp.asarray(x), xp.asarray(y)))
    assert other == pytest.approx(kernel(x, y), rel=1e-12)


def test_sums_products_and_multiples():
    x = np.array([[0.0], [2.0]])
    a, b = Gaussian(1.0), Exponential(3.0)
    assert np.array_equal((a + b)(x, x), a(x, x) + b(x, x))
    assert np.array_equal((a * b)(x, x), a(x, x) * b(x, x))
    assert np.array_equal((2.5 * a)(x, x), 2.5 * a(x, x))
    assert np.array_equal((a * 2.5)(x, x), 2.5 * a(x, x))
    assert a + b == Sum((a, b))
    assert a * b == Product((a, b))


def test_open_length_scales_are_resolved_inside_compositions():
    points = np.array([[0.0], [1.0], [3.0]])
    kernel = (2.0 * Gaussian() + Exponential() * Matern()).resolve(points)
    assert kernel == 2.0 * Gaussian(2.0) + Exponential(2.0) * Matern(1.5, 2.0)
    assert Gaussian(5.0).resolve(points) == Gaussian(5.0)


def test_a_kernel_without_its_length_scale_says_so():
    with pytest.raises(InputError, match="has no length scale yet"):
        Gaussian()(np.zeros((1, 1)), np.zeros((1, 1)))


@pytest.mark.parametrize("kind", [Gaussian, Exponential, lambda s: Matern(1.5, s)])
@pytest.mark.parametrize("scale", [0, -1.0, float("inf"), float("nan"), "long"])
def test_length_scales_are_checked(kind, scale):
    with pytest.raises(InputError, match="lengthscale must be a positive number, or None"):
        kind(scale)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Exponential(1.0, power=2.1), "power must lie above 0 and at most at 2"),
        (lambda: Exponential(1.0, power=0), "power must lie above 0"),
        (lambda: Matern(0.5), "smoothness must be 1.5 or 2.5; got 0.5"),
        (lambda: -1.0 * Gaussian(), "a kernel can be multiplied by a positive number; got -1.0"),
        (
            lambda: LabelMatrix(((1.0, 2.0), (2.0, 1.0))),
            "matrix must be positive semi-definite; its smallest eigenvalue is -1",
        ),
        (lambda: LabelMatrix(((1.0, 0.5), (0.4, 1.0))), "matrix must be square and symmetric"),
    ],
)
def test_settings_are_checked(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_a_false_kernel_is_found_out():
    class Distance(kernels.Kernel):
        def __call__(self, x, y):
            return kernels.Euclidean()(x, y)

    with pytest.raises(AssertionError, match="not positive semi-definite"):
        check_kernel(Distance(), np.arange(5.0)[:, None])


def test_scaled_keeps_its_factor():
    assert Scaled(Gaussian(1.0), 2.0).factor == 2.0


@pytest.mark.parametrize("lengthscale", [1e-200, 1e-51, 1e51, 1e200])
@pytest.mark.parametrize("kernel", [Gaussian, Exponential, Matern])
def test_length_scales_whose_powers_are_no_numbers_are_refused(kernel, lengthscale):
    with pytest.raises(
        InputError, match="lengthscale must lie between 1e-50 and 1e[+]50.*: give the data in other units"
    ):
        kernel(lengthscale=lengthscale)


@pytest.mark.parametrize("lengthscale", [1e-50, 1e-25, 1e25, 1e50])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "kernel", [Gaussian(), Exponential(), Exponential(power=1.9), Matern(1.5), Matern(2.5)], ids=repr
)
def test_short_ones_tell_points_apart_and_long_ones_do_not(kernel, dtype, lengthscale):
    points = np.array([[0.0, 1.0], [0.0, 1.0], [2.0, 3.0]], dtype=dtype)
    matrix = replace(kernel, lengthscale=lengthscale)(points, points)
    expected = np.ones((3, 3)) if lengthscale > 1 else np.array([[1.0, 1, 0], [1, 1, 0], [0, 0, 1]])
    assert matrix == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("lengthscale", [1e-50, 1e50])
@pytest.mark.parametrize("kernel", [Gaussian(), Exponential(), Matern(1.5)], ids=repr)
def test_errors_are_numbers_at_all_of_them(kernel, lengthscale):
    rng = np.random.default_rng(0)
    mu, extreme = rng.normal(size=(20, 2)), replace(kernel, lengthscale=lengthscale)
    problems = [(mu[:, 0], family(mu[:, 1], 1.0)) for family in (Normal, Laplace, Logistic)]
    problems += [(mu, MultivariateNormal(mu + 1, 1.0)), (mu[:, 0], Ensemble(rng.normal(size=(20, 5))))]
    for y, predictions in problems:
        assert np.isfinite(SKCE(extreme, extreme)(y, predictions).value)


def test_only_kernels_that_vanish_somewhere_say_so():
    energy, gaussian = Energy(), Gaussian(1.0)
    assert (2.0 * energy).vanishes_at_origin
    assert (energy + energy).vanishes_at_origin
    assert (energy * gaussian).vanishes_at_origin
    assert not (energy + gaussian).vanishes_at_origin
    assert (energy + gaussian).has_free_origin
    assert not (energy * gaussian).has_free_origin
    assert (0.5 * gaussian * gaussian).is_stationary
    assert not energy.is_stationary


@pytest.mark.parametrize("family", [Normal, Laplace])
@pytest.mark.parametrize("kernel", [Gaussian(0.7), Exponential(0.7)], ids=repr)
def test_against_quadrature(kernel, family):
    p, q = family([0.3], 0.9), family([-0.4], 1.7)
    target = np.array([[1.1]])
    single = quad(lambda z: np.exp(p.log_prob(np.array([z]))[0]) * kernel(np.array([[z]]), target)[0, 0], -40, 40, points=[0.3, 1.1], epsabs=1e-13, limit=400)[0]  # fmt: skip
    assert expectation(kernel, p, q.point(target[0]))[0, 0] == pytest.approx(single, rel=1e-10)

    def inner(z):
        return expectation(kernel, p, q.point(np.array([z])))[0, 0] * np.exp(q.log_prob(np.array([z]))[0])

    double = quad(inner, -60, 60, points=[-0.4, 0.3], epsabs=1e-13, limit=400)[0]
    assert expectation(kernel, p, q)[0, 0] == pytest.approx(double, rel=1e-9)


@pytest.mark.parametrize("k", range(1, 13))
def test_laplace_forms_near_coincidence(k):
    """b = 1 + 10^-k: against the limit's Taylor expansion, which is exact to the distance squared."""
    kernel = Exponential(1.0)
    step = 10.0**-k

    def value(b):
        return expectation(kernel, Laplace([0.7], b), Laplace([0.0], 1.0))[0, 0]

    left, right, middle = value(1 - step), value(1 + step), value(1.0)
    assert middle == pytest.approx(0.3469889810242474, rel=1e-13)
    assert abs((left + right) / 2 - middle) < 0.5 * step**2 + 1e-15


def test_mixtures_are_sums_over_all_pairs_of_components(rng):
    a, b, c = (Normal.example(rng, 3) for _ in range(3))
    kernel = Gaussian(1.0)
    mixture = Mixture([a, b, c], [0.2, 0.3, 0.5])
    expected = sum(
        u * v * expectation(kernel, x, y)
        for u, x in zip((0.2, 0.3, 0.5), (a, b, c), strict=True)
        for v, y in zip((0.2, 0.3, 0.5), (a, b, c), strict=True)
    )
    assert expectation(kernel, mixture, mixture) == pytest.approx(expected, rel=1e-13)


def test_what_has_no_closed_form_is_not_implemented(rng):
    normal = Normal.example(rng, 2)
    assert expectation(Matern(1.5, 1.0), normal, normal) is NotImplemented
    assert expectation(Exponential(1.0, power=1.5), normal, normal) is NotImplemented
    assert expectation(Gaussian(1.0) + Matern(1.5, 1.0), normal, normal) is NotImplemented
    assert expectation(2.0 * Matern(1.5, 1.0), normal, normal) is NotImplemented


def test_every_array_library(xp, rng):
    loc, scale = rng.normal(size=4), rng.uniform(0.5, 2, 4)
    for kernel in (Gaussian(0.8), Exponential(0.8)):
        for family in (Normal, Laplace):
            ours = expectation(kernel, family(loc, scale), family(loc, scale).point(loc * 2))
            other = family(xp.asarray(loc), xp.asarray(scale))
            assert np.asarray(expectation(kernel, other, other.point(xp.asarray(loc * 2)))) == pytest.approx(
                ours, rel=1e-12
            )


def test_kernels_of_kernels_ask_those_inside():
    plain, city = Gaussian(1.0), Exponential(1.0, metric=Cityblock())
    assert (plain + plain).is_euclidean
    assert not (plain + city).is_euclidean
    assert (2 * city).has_product
    assert not (2 * plain).has_product
    assert (2 * Energy()).has_free_origin is Energy().has_free_origin is True
    assert Identity().reach == np.inf


def test_kernels_without_running_sums_say_so(rng):
    x, v = np.sort(rng.random(5)), rng.random((5, 1))
    smooth = Exponential(1.0, power=1.5)
    assert not smooth.has_product
    assert smooth.pair_sums(x, v) is NotImplemented
    assert smooth.product(x, v, diagonal=True) is NotImplemented
    assert Matern(lengthscale=1.0, metric=PerCoordinate((1.0,))).product(x, v, diagonal=True) is NotImplemented
