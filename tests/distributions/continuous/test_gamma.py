import numpy as np
import pytest

from calibrant import Gamma


def test_shape_one_is_exponential():
    batch, y = Gamma([1.0], 2.0), np.array([[1e-9], [0.3], [5.0]])
    assert batch.log_prob(y) == pytest.approx(np.log(2) - 2 * y)
    assert batch.cdf(y) == pytest.approx(-np.expm1(-2 * y), rel=1e-13)
    assert batch.crps(y[:, 0][:1]) == pytest.approx([1 / 4], abs=1e-8)  # E Y - E|Y - Y'| / 2 at zero


def test_characteristic_function():
    w = np.array([0.0, 0.5, -7.0, 1e8])
    found = Gamma([0.3, 2.5], [2.0, 0.5]).cf(w)
    wanted = [(1 - 1j * w / rate) ** -shape for shape, rate in ((0.3, 2.0), (2.5, 0.5))]
    assert found[0] + 1j * found[1] == pytest.approx(np.array(wanted), abs=1e-14)


def test_equal_shapes_have_the_wasserstein_distance():
    batch = Gamma([2.0, 2.0], [1.0, 3.0])
    q = batch.quantile((np.arange(200_000) + 0.5) / 200_000)
    assert np.linalg.norm(np.diff(batch.coords, axis=0)) == pytest.approx(
        np.sqrt(((q[0] - q[1]) ** 2).mean()), rel=1e-4
    )


def test_tempering_leaves_the_mean_at_every_temperature():
    batch = Gamma([0.3, 5.0], 2.0)
    for temperature in (0.01, 7.0, 1e3):
        assert batch.temper(temperature).mean == pytest.approx(batch.mean)
        assert batch.temper(temperature).std == pytest.approx(batch.std * temperature**0.5)
