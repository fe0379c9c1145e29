import numpy as np
import pytest

from calibrant._array import is_array, is_floating, is_integer, to_numpy


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
