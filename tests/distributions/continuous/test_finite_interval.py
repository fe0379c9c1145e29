import numpy as np
import pytest

from calibrant._validate import InputError
from calibrant.distributions import Beta


@pytest.mark.parametrize("bad", [0.0, 1.0, 40.0, -0.1])
def test_targets_lie_strictly_between_zero_and_one(bad):
    with pytest.raises(
        InputError, match=f"y_true must lie strictly between 0 and 1, as the ends .* found {bad:g}: leave"
    ):
        Beta([1.0, 2.0], 1.0).as_targets([0.5, bad])


def test_draws_are_targets_however_close_to_the_ends(rng):
    batch = Beta([1e-3, 1e3, 1e-3], [1e-3, 1e-3, 1e3])
    draws = batch.sample(rng, 500)
    assert 0 < draws.min() <= draws.max() < 1
    assert np.isfinite(batch.log_prob(draws)).all()


def test_outside_nothing_happens():
    batch, y = Beta([0.5, 2.0], 3.0), np.array([[-0.5], [0.0], [1.0], [1.5]]) + np.zeros(2)
    assert np.all(batch.log_prob(y) == -np.inf)
    assert batch.cdf(y).tolist() == [[0, 0], [0, 0], [1, 1], [1, 1]]
    assert batch.crps(y[3]) - batch.crps(y[2]) == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize(("a", "b"), [(0.05, 7.0), (0.3, 0.4), (1.0, 1.0), (50.0, 20.0), (1e3, 3e3), (1e5, 1e5)])
def test_characteristic_functions_are_confluent_hypergeometric_functions(a, b):
    mpmath = pytest.importorskip("mpmath")
    w = np.array([0.0, 0.1, -3.0, 30.0, 500.0, 3e3])
    wanted = [complex(mpmath.hyp1f1(a, a + b, 1j * v, maxterms=10**6)) for v in w]
    found = Beta([a], [b]).cf(w)
    assert found[0][0] + 1j * found[1][0] == pytest.approx(np.array(wanted), abs=1e-12)


def test_characteristic_functions_of_the_uniform():
    w = np.array([0.5, 20.0, -7.0])
    found = Beta([1.0], 1.0).cf(w)
    assert found[0][0] + 1j * found[1][0] == pytest.approx((np.exp(1j * w) - 1) / (1j * w), abs=1e-14)


def test_tempering_leaves_the_mean():
    batch = Beta([0.3, 5.0], [2.0, 0.4])
    for temperature in (0.01, 7.0):
        assert batch.temper(temperature).mean == pytest.approx(batch.mean)


def test_moments_say_all():
    """Mean and standard deviation as coordinates tell any two predictions apart."""
    batch = Beta([2.0, 4.0, 1.0], [2.0, 4.0, 3.0])
    apart = np.linalg.norm(batch.coords[:, None] - batch.coords[None], axis=-1)
    assert apart[np.triu_indices(3, 1)].min() > 0.05
