"""Every registered closed form against Monte Carlo and, where the family has a density, against quadrature."""

import numpy as np
import pytest
from scipy.integrate import quad

from calibrant import Categorical, Ensemble, Laplace, Mixture, MultivariateNormal, Normal, Poisson
from calibrant.checks import check_expectation
from calibrant.distributions import Uniform
from calibrant.kernels import Energy, Exponential, Gaussian, Identity, LabelMatrix, Matern, expectation
from calibrant.kernels.closed_forms import registered

CASES = [
    (Gaussian(0.8), Normal),
    (Exponential(0.8), Normal),
    (Energy(), Normal),
    (Gaussian(0.8), Laplace),
    (Exponential(0.8), Laplace),
    (Gaussian(1.3), MultivariateNormal),
    (Gaussian(0.8), Mixture),
    (Exponential(0.8) + 0.5 * Gaussian(2.0), Mixture),
    (Matern(1.5, 1.0), Ensemble),
    (Energy(), Ensemble),
    (Matern(2.5, 1.3), Poisson),
    (Exponential(0.8), Uniform),
    (Energy(), Uniform),
    (Identity(), Categorical),
    (LabelMatrix(((1.0, 0.5, 0.2), (0.5, 1.0, 0.5), (0.2, 0.5, 1.0))), Categorical),
]


@pytest.mark.parametrize(("kernel", "family"), CASES, ids=lambda x: getattr(x, "__name__", repr(x)))
def test_against_draws(kernel, family, rng):
    check_expectation(kernel, family.example(rng, 2), family.example(rng, 2), rng)


def test_every_registered_form_is_in_the_list():
    covered = {(type(k), f) for k, f in CASES} | {(Gaussian, Mixture)}
    for kernel, p, q in registered():
        family = p if p.__name__ != "Distribution" else q
        assert any(issubclass(k, kernel) and issubclass(f, family) for k, f in covered), (kernel, p, q)


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
