from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import pytest

from calibrant import engines
from calibrant._fused.precision import precision, precision_in_force
from calibrant._validate import InputError


def test_it_holds_inside_the_block_alone():
    assert precision_in_force() == "float32"
    with engines.precision("tf32x3"):
        assert precision_in_force() == "tf32x3"
        with precision("float64"):
            assert precision_in_force() == "float64"
        assert precision_in_force() == "tf32x3"
    assert precision_in_force() == "float32"


def test_errors_end_it_too():
    with pytest.raises(KeyError), precision("float64"):
        raise KeyError
    assert precision_in_force() == "float32"


def test_other_threads_have_their_own():
    with precision("float64"), ThreadPoolExecutor(1) as pool:
        assert pool.submit(precision_in_force).result() == "float32"
        assert pool.submit(copy_context().run, precision_in_force).result() == "float64"


@pytest.mark.parametrize("name", ["bf16", None, 32])
def test_an_unknown_precision_is_refused(name):
    with (
        pytest.raises(InputError, match=f"precision must be one of 'float32', 'tf32x3', 'float64'; got {name!r}"),
        precision(name),
    ):
        pass
