from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import pytest

from calibrant import engines
from calibrant._compiled.choice import accounted
from calibrant._compiled.precision import precision_in_force, tell_of_shortening
from calibrant._validate import InputError
from calibrant.engines import precision


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


def test_what_is_shortened_is_noted_once_and_by_threads_too():
    with accounted() as account, ThreadPoolExecutor(1) as pool:
        tell_of_shortening()
        pool.submit(copy_context().run, tell_of_shortening).result()
        with precision("tf32x3"):
            tell_of_shortening()
        with precision("float64"):
            tell_of_shortening()
    assert [note[: note.index(" on the GPU")] for note in account.notes] == [
        "pairs of rows were computed in single precision",
        "pairs of rows were computed in the precision tf32x3",
    ]
    tell_of_shortening()  # to nobody
    assert len(account.notes) == 2
