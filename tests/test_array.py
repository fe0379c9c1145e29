import math
import subprocess
import sys
import warnings

import numpy as np
import pytest

from calibrant._array import (
    as_double,
    as_tensor,
    common,
    gammaln,
    is_array,
    is_floating,
    is_integer,
    is_jax,
    namespace,
    random_key,
    seeded,
    to_numpy,
)


def test_numpy_passes_without_a_copy():
    x = np.arange(3.0)
    assert to_numpy(x) is x


def test_torch_comes_to_the_host_without_its_gradient():
    torch = pytest.importorskip("torch")
    x = torch.tensor([0.25, 0.75], requires_grad=True)
    assert is_array(x)
    assert to_numpy(x).tolist() == [0.25, 0.75]


def test_what_is_an_array():
    assert is_array(np.ones(2))
    assert not is_array([1.0, 2.0])


def test_kinds_of_numbers(convert):
    integers, reals = convert(np.array([0, 1])), convert(np.array([0.5, 1.0]))
    if is_array(integers):
        assert is_integer(integers)
        assert not is_integer(reals)
        assert is_floating(reals)
        assert not is_floating(integers)


def test_double_precision_in_every_library(xp):
    for dtype in (xp.float32, xp.float64):
        x = as_double(xp.asarray([0.25, 0.5], dtype=dtype))
        assert x.dtype == namespace(x).float64
        assert to_numpy(x).tolist() == [0.25, 0.5]


def test_double_precision_without_a_copy():
    x = np.arange(3.0)
    assert as_double(x) is x


def test_double_precision_keeps_the_gradient():
    torch = pytest.importorskip("torch")
    x = torch.tensor([0.25, 0.75], requires_grad=True)
    (as_double(x) ** 2).sum().backward()
    assert x.grad.tolist() == [0.5, 1.5]


def test_jax_stays_in_single_precision_unless_told_otherwise():
    pytest.importorskip("jax")
    code = """
import jax, numpy
jax.config.update("jax_enable_x64", False)
from calibrant._array import as_double
assert as_double(jax.numpy.asarray([0.25])).dtype == numpy.float32
"""
    # Run apart: the setting holds for a whole process.
    subprocess.run([sys.executable, "-W", "error::UserWarning", "-c", code], check=True, timeout=60)


def test_logarithms_of_the_gamma_function_in_every_library(xp):
    x = [1e-300, 1e-3, 0.5, 1.0, 2.0, 7.25, 1e5, 1e300]
    found = gammaln(xp.asarray(x, dtype=xp.float64))
    assert isinstance(found, type(xp.asarray(x)))
    assert to_numpy(found) == pytest.approx([math.lgamma(value) for value in x], rel=1e-13, abs=1e-15)


def test_the_slope_of_the_logarithm_of_the_gamma_function():
    torch = pytest.importorskip("torch")
    x = torch.tensor([1.0, 1.5, 30.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(gammaln, (x,))


def test_libraries_draw_from_a_seed_and_go_on_as_before(rng):
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    expected = torch.rand(2)
    torch.manual_seed(1)
    drawn = []
    for _ in range(2):
        with seeded(torch.zeros(1), np.random.default_rng(5)):
            drawn.append(torch.rand(3).tolist())
    assert drawn[0] == drawn[1]
    assert torch.equal(torch.rand(2), expected)
    with seeded(None, rng):
        pass


def test_keys_of_jax():
    jax = pytest.importorskip("jax")
    first, second = (random_key(np.random.default_rng(5)) for _ in range(2))
    assert jax.random.uniform(first) == jax.random.uniform(second)
    assert is_jax(jax.numpy.zeros(1))


def test_what_is_no_array_of_jax():
    assert not is_jax(None)
    assert not is_jax(np.zeros(1))


def test_tensors_hold_the_numbers_of_the_host():
    pytest.importorskip("torch")
    found = as_tensor(np.array([1.5, 2.0]), "cpu")
    assert found.tolist() == [1.5, 2.0]
    assert str(found.device) == "cpu"


def test_quantised_tensors_are_what_they_stand_for():
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch is to give quantised tensors up
        short = torch.quantize_per_tensor(torch.tensor([0.2, 0.8]), 0.1, 0, torch.quint8)
        found = common(short)
    assert found.tolist() == pytest.approx([0.2, 0.8])
    assert found.dtype == torch.float32
