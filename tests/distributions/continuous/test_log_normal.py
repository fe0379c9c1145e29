import itertools

import numpy as np
import pytest
from scipy.integrate import quad

from calibrant import SKCE, InputError, LogNormal, Normal, evaluate


def wave(loc, scale, w):
    """``E exp(i w Y)`` by parts: what oscillates is cut off where too little is left."""
    normal = Normal([loc], scale)

    def part(f):
        edges = np.linspace(loc - 9 * scale, loc + 9 * scale, 400)

        def g(x):
            return f(w * np.exp(x)) * np.exp(normal.log_prob(np.array([x]))[0])

        return sum(quad(g, a, b, epsabs=1e-15, limit=200)[0] for a, b in itertools.pairwise(edges))

    return part(np.cos) + 1j * part(np.sin)


@pytest.mark.parametrize(("loc", "scale"), [(0.0, 0.05), (0.4, 0.3), (-0.5, 0.7)])
def test_characteristic_function_is_an_integral(loc, scale):
    w = np.array([0.0, 0.7, -3.0])
    found = LogNormal([loc], scale).cf(w)
    for i, v in enumerate(w):
        assert found[0][0, i] + 1j * found[1][0, i] == pytest.approx(wave(loc, scale, v), abs=1e-11)


@pytest.mark.parametrize("scale", [0.01, 0.4, 1.0, 2.0, 3.0])
def test_characteristic_functions_are_those_of_high_precision(scale):
    """Along another path: at right angles to the real axis, or one standard deviation off it."""
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 30
    angle = mpmath.mpf(min(np.pi / 2, scale))
    for w in (0.03, 1.0, 30.0):

        def f(t, w=w):
            turned = mpmath.expj(angle) * mpmath.exp(scale * t)
            return mpmath.exp(1j * w * turned - (t + 1j * angle / scale) ** 2 / 2)

        wanted = complex(mpmath.quad(f, np.linspace(-12, 12, 33).tolist()) / mpmath.sqrt(2 * mpmath.pi))
        found = LogNormal([0.0], scale).cf(np.array([w]))
        assert found[0][0, 0] + 1j * found[1][0, 0] == pytest.approx(wanted, abs=1e-13)


def test_many_rows_are_taken_in_parts(rng, monkeypatch):
    batch, w = LogNormal.example(rng, 20), np.linspace(-3, 3, 7)
    whole = batch.cf(w)
    monkeypatch.setattr("calibrant.distributions.continuous.positive.CHUNK", 1)
    assert np.array_equal(batch.cf(w), whole)


def test_huge_predictions_have_characteristic_functions_without_size():
    found = LogNormal([700.0, 0.0], [1.0, 40.0]).cf(np.array([1.0, 1e6]))
    assert np.all(np.isfinite(found))
    assert np.abs(found[0][0]).max() < 1e-12


def test_moments_beyond_numbers_are_infinite():
    batch = LogNormal([0.0], 60.0)
    assert batch.mean.tolist() == batch.std.tolist() == [np.inf]


def test_tempering_leaves_the_median():
    batch = LogNormal([0.7], 0.5)
    hot = batch.temper(4.0)
    assert hot.quantile(np.array([0.5])) == pytest.approx(batch.quantile(np.array([0.5])))
    assert hot.scale == pytest.approx([1.0])


def test_points_have_no_spread():
    point = LogNormal([0.0, 1.0], 1.0).point(np.array([1.0, np.e]))
    assert point.loc.tolist() == [0.0, 1.0]
    assert point.scale.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("loc", [2.0, 20.0])
def test_the_unit_of_targets_changes_no_kernel_error(rng, loc):
    """Medians that are close to each other and far from one: a log-normal law that is moved is none."""
    n = 300
    near, scale = 0.01 * rng.normal(size=n), rng.uniform(0.4, 0.6, n)
    y = LogNormal(near, scale).sample(rng, 1)[0]
    here = SKCE()(y, LogNormal(near, scale))
    there = SKCE()(y * np.exp(loc), LogNormal(near + loc, scale))
    assert there.value == pytest.approx(here.value, rel=1e-6)
    assert abs(here.value) < 4 * here.standard_error


@pytest.mark.parametrize(("loc", "scale"), [(0.0, 1e-90), (0.0, 50.0)])
def test_reports_on_extreme_parameters(rng, loc, scale):
    """Losses of which the squares are no numbers, and scores that are infinite in every resample."""
    found = evaluate(np.abs(rng.normal(size=20)), LogNormal(np.full(20, loc), np.full(20, scale)), n_resamples=99)
    assert found.to_dict()["n"] == 20


def test_medians_beyond_all_numbers_have_no_length_scale(rng):
    with pytest.raises(InputError, match="lengthscale must be a positive number"):
        SKCE()(np.abs(rng.normal(size=20)), LogNormal(np.full(20, 700.0), np.full(20, 30.0)))


def test_a_moved_one_is_none():
    assert LogNormal([0.0], [1.0]).shifted(1.0) is NotImplemented
