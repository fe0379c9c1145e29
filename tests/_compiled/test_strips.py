import math

import mpmath
import numpy as np
import pytest

from calibrant._compiled.compiling import aligned, compiled
from calibrant._compiled.cpu import exp_negative


@compiled
def exponentials(x):
    out = np.empty_like(x)
    for i in range(len(x)):
        out[i] = exp_negative(x[i])
    return out


@pytest.fixture
def arguments(rng):
    return -np.concatenate(
        [rng.uniform(0, 708, 200_000), rng.uniform(0, 1, 200_000), 10.0 ** rng.uniform(-300, 0, 1000)]
    )


def test_the_exponential_is_accurate_to_the_last_digits(arguments):
    # NumPy's own is within one unit in the last place.
    assert np.max(np.abs(exponentials(arguments) / np.exp(arguments) - 1)) <= 5e-16


def test_the_exponential_agrees_with_many_digits(rng):
    for x in -rng.uniform(0, 700, 2000):
        with mpmath.workdps(40):
            exact = mpmath.exp(mpmath.mpf(float(x)))
            assert abs(mpmath.mpf(exp_negative(float(x))) / exact - 1) <= 2.3e-16


def test_the_exponential_of_zero_is_one():
    assert exp_negative(0.0) == exp_negative(-0.0) == 1.0


def test_the_exponential_vanishes_far_out():
    assert exp_negative(-708.0) == pytest.approx(math.exp(-708.0), rel=1e-15)
    assert exponentials(np.array([-708.0000001, -709.0, -1e4, -1e300, -np.inf])).tolist() == [0.0] * 5


def test_compiling_does_without_a_folder_for_the_cache(monkeypatch):
    calls = []

    def refuse(function, *, cache, **options):
        calls.append(cache)
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return function

    monkeypatch.setattr("calibrant._compiled.compiling.njit", refuse)
    assert compiled(math.floor) is math.floor
    assert calls == [True, False]


@pytest.mark.parametrize("shape", [(1,), (3,), (5, 7), (2, 3, 128)])
def test_rows_that_loops_read_begin_where_a_line_of_the_cache_does(shape):
    # Several, as allocators may hit a line by chance.
    several = [aligned(*shape) for _ in range(8)]
    assert all(x.ctypes.data % 64 == 0 and x.shape == shape and not x.any() for x in several)
    assert all(x.flags.c_contiguous for x in several)
