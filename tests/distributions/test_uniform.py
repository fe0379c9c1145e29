import numpy as np
import pytest

from calibrant import Uniform
from calibrant._validate import InputError


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
