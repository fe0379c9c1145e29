"""Exact sums over pieces against integrals of the quantile function and of the distribution function."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad

from calibrant import Quantiles
from calibrant.distributions import Histogram

LEVELS = [0.1, 0.3, 0.5, 0.7, 0.9]
INF = np.inf
FANS = {
    "exponential": Quantiles([[0.0, 0.5, 2.0, 2.1, 7.0], [-3.0, -2.0, -1.0, 0.0, 1.0]], LEVELS),
    "flat": Quantiles([[0.0, 0.5, 2.0, 2.1, 7.0], [-3.0, -2.0, -1.0, 0.0, 1.0]], LEVELS, tails="flat"),
    "bounded": Quantiles([[0.0, 0.5, 2.0, 2.1, 7.0], [-3.0, -2.0, -1.0, 0.0, 1.0]], LEVELS, tails=(-4.0, [8.0, 1.0])),
    "atoms": Quantiles([[0.0, 0.0, 2.0, 2.0, 7.0], [1.0, 1.0, 1.0, 1.0, 1.0]], LEVELS),
    "half bounded": Quantiles([[0.0, 0.5, 2.0, 2.1, 7.0], [0.0, 0.0, 0.0, 1.0, 4.0]], LEVELS, tails=(0.0, INF)),
    "histogram": Histogram([-INF, -0.5, 0.5, 2.0, 4.0, INF], [[0.1, 0.2, 0.2, 0.4, 0.1], [0.1, 0.2, 0.2, 0.2, 0.3]]),
}


@pytest.fixture(params=FANS)
def fan(request):
    return FANS[request.param]


def over_levels(f, row):
    """``integral f(Q(u)) du`` piece by piece; in tails over the logarithm of what is left."""

    def at(u):
        return f(row.quantile(np.array([u]))[0, 0])

    inside = sum(quad(at, a, b, epsabs=1e-12)[0] for a, b in pairwise(LEVELS))
    low, high = LEVELS[0], 1 - LEVELS[-1]
    inside += quad(lambda t: low * np.exp(-t) * at(low * np.exp(-t)), 0, 28, epsabs=1e-11, limit=200)[0]
    return inside + quad(lambda t: high * np.exp(-t) * at(1 - high * np.exp(-t)), 0, 28, epsabs=1e-11, limit=200)[0]


def rows(batch):
    return [batch[i : i + 1] for i in range(len(batch))]


def test_moments(fan):
    for i, row in enumerate(rows(fan)):
        mean = over_levels(lambda y: y, row)
        assert fan.mean[i] == pytest.approx(mean, abs=1e-10)
        assert fan.std[i] ** 2 == pytest.approx(over_levels(lambda y, mean=mean: (y - mean) ** 2, row), abs=1e-8)


def test_characteristic_function(fan):
    w = np.array([0.0, 1e-6, 0.3, 2.0, 11.0])
    for i, row in enumerate(rows(fan)):
        for j, part in enumerate((np.cos, np.sin)):
            exact = [over_levels(lambda y: part(f * y), row) for f in w]  # noqa: B023
            assert row.cf(w)[j][0] == pytest.approx(exact, abs=1e-10)
            assert fan.cf(w)[j][i] == pytest.approx(exact, abs=1e-10)


def crps_by_integral(row, y):
    """``integral (F(x) - [y <= x])^2 dx`` between nodes, the target and far ends."""
    ends = np.unique([*row.kinks[0], y, *row.quantile(np.array([1e-12, 1 - 1e-12]))[0], y - 5, y + 5])

    def square(x):
        return (row.cdf(np.array([x]))[0] - (y <= x)) ** 2

    return sum(quad(square, a, b, epsabs=1e-12)[0] for a, b in pairwise(ends))


@pytest.mark.parametrize("y", [-20.0, -4.0, -0.1, 0.0, 0.3, 1.0, 2.0, 2.05, 7.0, 7.5, 8.0, 40.0])
def test_crps_is_its_integral(fan, y):
    found = fan.crps(np.full(2, y))
    assert found == pytest.approx([crps_by_integral(row, y) for row in rows(fan)], rel=1e-9, abs=1e-11)
    stack = fan.crps(np.full((3, 4, 2), y))
    assert stack.shape == (3, 4, 2)
    assert np.all(stack == found)


def test_crps_is_the_energy_form(fan, rng):
    """``E|Y - y| - E|Y - Y'| / 2`` by draws."""
    a, b = (fan.sample(rng, 200_000) for _ in range(2))
    y = np.array([0.7, 0.2])
    terms = np.abs(a - y) - np.abs(a - b) / 2
    assert np.all(np.abs(terms.mean(axis=0) - fan.crps(y)) < 5 * terms.std(axis=0) / np.sqrt(len(a)) + 1e-12)


def test_levels_and_values_are_inverse(fan, rng):
    u = rng.random(200)
    found = fan.quantile(u)
    for i, row in enumerate(rows(fan)):
        assert np.all(row.cdf(found[i][:, None])[:, 0] >= u - 1e-14)
        assert np.all(row.below(found[i][:, None])[:, 0] <= u + 1e-14)


def test_nodes_have_their_levels_without_rounding(fan):
    if not isinstance(fan, Quantiles):
        return
    for value, level in zip(fan.values.T, LEVELS, strict=True):
        reached, below = fan.cdf(value), fan.below(value)
        assert np.all(below <= level)
        assert np.all(reached >= level)
    # nothing but repeated values has a probability of its own
    between = np.array([[0.25, -2.5], [1.3, -0.5], [5.0, 0.5]])
    assert np.array_equal(fan.cdf(between), fan.below(between))


def test_single_values_with_a_probability():
    fan = FANS["atoms"]
    # 0 holds the levels up to 0.3, lower tail included; 2 those from 0.5 to 0.7; the second row is certain
    assert fan.cdf(np.array([[0.0, 1.0], [2.0, 0.9]])).tolist() == [[0.3, 1.0], [0.7, 0.0]]
    assert fan.below(np.array([[0.0, 1.0], [2.0, 0.9]])).tolist() == [[0.0, 0.0], [0.5, 0.0]]
    assert np.exp(fan.log_prob(np.array([0.0, 1.0]))) == pytest.approx([0.3, 1.0])
    assert np.exp(fan.log_prob(np.array([2.0, 1.0]))) == pytest.approx([0.2, 1.0])
    assert np.exp(fan.log_prob(np.array([1.0, 1.5]))) == pytest.approx([0.2 / 2, 0.0])
    assert fan.log_prob(np.array([-1.0, 0.0])).tolist() == [-INF, -INF]
    assert fan.std[1] == 0


def test_density_is_the_slope(fan):
    y, step = np.array([[-3.3, -3.3], [0.2, -2.2], [1.1, 0.3], [3.0, 0.8], [7.4, 3.3], [9.0, 5.0]]), 1e-6
    slope = (fan.cdf(y + step) - fan.cdf(y - step)) / (2 * step)
    assert np.exp(fan.log_prob(y)) == pytest.approx(slope, rel=1e-6, abs=1e-9)


def test_density_at_nodes_and_ends():
    fan = FANS["bounded"]
    assert np.exp(fan.log_prob(np.array([0.0, -3.0]))) == pytest.approx([0.2 / 0.5, 0.2])  # that on the right
    assert np.exp(fan.log_prob(np.array([8.0, 0.0]))) == pytest.approx([0.1, 0.2])  # at the end, that on the left
    assert fan.log_prob(np.array([8.1, -4.1])).tolist() == [-INF, -INF]


def test_levels_zero_and_one_are_the_ends():
    ends = np.array([0.0, 1.0])
    assert FANS["exponential"].quantile(ends)[0].tolist() == [-INF, INF]
    assert FANS["flat"].quantile(ends)[0].tolist() == [0.0, 7.0]
    assert FANS["bounded"].quantile(ends)[0].tolist() == [-4.0, 8.0]
    assert FANS["half bounded"].quantile(ends).tolist() == [[0.0, INF], [0.0, INF]]
    assert np.isfinite(FANS["exponential"].sample(np.random.default_rng(0), 10_000)).all()


def test_infinite_targets():
    fan = FANS["exponential"]
    assert fan.cdf(np.array([[-INF, INF]])).tolist() == [[0.0, 1.0]]
    assert fan.log_prob(np.array([-INF, INF])).tolist() == [-INF, -INF]
