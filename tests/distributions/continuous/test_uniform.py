from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad

from calibrant._validate import InputError
from calibrant.distributions import Uniform
from calibrant.distributions.continuous.finite_interval import _mean_decay, _mean_decay_within
from calibrant.kernels import Energy, Exponential, expectation


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (2.0, 1.0)])
def test_ends_are_in_order(low, high):
    with pytest.raises(InputError, match=f"low must lie below high; found {low:g} and {high:g} in row 1"):
        Uniform([0.0, low], [1.0, high])


def test_targets_may_lie_outside():
    batch = Uniform([0.0, 0.0, 0.0, 0.0], 2.0)
    y = batch.as_targets([-1.0, 0.0, 2.0, 3.0])
    assert batch.log_prob(y) == pytest.approx([-np.inf, -np.log(2), -np.log(2), -np.inf])
    assert batch.cdf(y).tolist() == [0, 0, 1, 1]
    assert batch.crps(y) == pytest.approx([1 + 2 / 3, 2 / 3, 2 / 3, 1 + 2 / 3])


def test_characteristic_function():
    w = np.array([0.0, 0.5, -7.0, 1e-200])
    found = Uniform([-1.0], 3.0).cf(w)
    v = w[1:3]
    assert (found[0] + 1j * found[1])[0, 1:3] == pytest.approx((np.exp(3j * v) - np.exp(-1j * v)) / (4j * v), abs=1e-15)
    assert found[0][0, [0, 3]].tolist() == [1.0, 1.0]


def test_wide_and_far_ranges_stay_numbers():
    batch = Uniform([-1e308, 1e15], [5e307, 1e15 + 1])
    assert np.isfinite(batch.coords).all()
    assert batch.quantile(np.array([0.5])).tolist() == [[-2.5e307], [1e15 + 0.5]]


def test_any_temperature_leaves_it_as_it_is():
    batch = Uniform([0.0], 1.0)
    assert batch.temper(7.0) is batch


def test_points_have_no_width():
    point = Uniform([0.0, 1.0], 4.0).point(np.array([3.0, 9.0]))
    assert point.low.tolist() == point.high.tolist() == [3.0, 9.0]


RANGES = [
    ((0.3, 1.4), (2.0, 5.0)),  # apart
    ((0.3, 1.4), (1.4, 5.0)),  # touching
    ((0.3, 1.4), (1.1, 5.0)),  # in part the same
    ((-2.0, 5.0), (0.1, 0.4)),  # one within the other
    ((-2.0, 5.0), (-2.0, 0.4)),
    ((-2.0, 5.0), (-2.0, 5.0)),  # the same
    ((0.7, 0.7), (0.1, 0.9)),  # a point within
    ((0.7, 0.7), (1.1, 1.9)),  # a point outside
    ((0.7, 0.7), (0.7, 1.9)),
    ((0.7, 0.7), (0.7, 0.7)),  # two points
    ((0.7, 0.7), (-0.4, -0.4)),
    ((0.0, 1e-9), (0.0, 1e-9)),  # narrow
    ((0.0, 1e-9), (5e-10, 1.0)),
    ((0.5, 0.5 + 1e-9), (0.0, 1.0)),
    ((0.0, 1e3), (-300.0, 2e3)),  # wide
]


def batch(ends):
    return Uniform._trusted(*(np.array([end]) for end in ends))


def average(f, x, y):
    """``E f(X, Y)``, cut where the ranges begin and end."""

    def one(ends, g):
        (a, b), others = ends, sorted({*x, *y, 0.0})
        if a == b:
            return g(a)
        cuts = [a, *(z for z in others if a < z < b), b]
        return sum(quad(g, low, high, epsabs=0, epsrel=1e-12)[0] for low, high in pairwise(cuts)) / (b - a)

    def inner(s):
        cuts = {*x, *y, 0.0, s}
        (c, d) = y
        if c == d:
            return f(s, c)
        edges = [c, *sorted(z for z in cuts if c < z < d), d]
        return sum(quad(lambda t: f(s, t), low, high, epsabs=0, epsrel=1e-12)[0] for low, high in pairwise(edges)) / (
            d - c
        )

    return one(x, inner)


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
@pytest.mark.parametrize(("x", "y"), RANGES)
def test_closed_forms_are_integrals(x, y):
    p, q = batch(x), batch(y)
    wanted = average(lambda s, t: np.exp(-abs(s - t) / 0.8), x, y)
    assert expectation(Exponential(0.8), p, q)[0, 0] == pytest.approx(wanted, rel=1e-10, abs=1e-200)
    assert expectation(Exponential(0.8), q, p)[0, 0] == pytest.approx(wanted, rel=1e-10, abs=1e-200)
    wanted = average(lambda s, t: (abs(s) + abs(t) - abs(s - t)) / 2, x, y)
    assert expectation(Energy(), p, q)[0, 0] == pytest.approx(wanted, rel=1e-9, abs=1e-12 * max(map(abs, (*x, *y))))


def test_means_of_decay_do_not_jump_where_the_series_ends():
    h = np.array([0.0, 1e-300, 1e-8, 0.5 - 1e-12, 0.5 + 1e-12, 800.0])
    for mean, wanted in (
        (_mean_decay, lambda x: -np.expm1(-x) / x),
        (_mean_decay_within, lambda x: 2 * (x + np.expm1(-x)) / x**2),
    ):
        found = mean(h)
        assert found[:2].tolist() == [1.0, 1.0]
        assert found[3] == pytest.approx(found[4], rel=1e-11)
        assert found[3:] == pytest.approx(wanted(h[3:]), rel=1e-14)


def test_other_powers_have_no_closed_form():
    assert expectation(Exponential(1.0, power=1.5), batch((0.0, 1.0)), batch((0.0, 1.0))) is NotImplemented


def test_every_library_gives_the_same_closed_forms(xp, rng):
    ours = Uniform.example(rng, 4)
    other, y = Uniform(xp.asarray(ours.low), xp.asarray(ours.high)), rng.normal(size=4)
    for kernel in (Exponential(0.8), Energy()):
        for q, r in ((other, ours), (other.point(xp.asarray(y)), ours.point(y))):
            found = expectation(kernel, other, q)
            assert isinstance(found, type(xp.asarray(y)))
            assert np.asarray(found) == pytest.approx(expectation(kernel, ours, r), rel=1e-12, abs=1e-14)


def test_gradients_are_finite_differences():
    torch = pytest.importorskip("torch")
    at = np.array([-0.2, 0.3, 1.0, 2.0])
    x = torch.tensor(at, requires_grad=True)

    def total(low, high):
        found = Uniform(low, high)
        return sum(expectation(kernel, found, found).sum() for kernel in (Exponential(0.8), Energy()))

    total(x[:2], x[2:]).backward()
    slopes = [(total(*np.split(at + h, 2)) - total(*np.split(at - h, 2))) / 2e-6 for h in 1e-6 * np.eye(4)]
    assert x.grad.numpy() == pytest.approx(slopes, rel=1e-5)
