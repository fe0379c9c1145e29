import warnings

import pytest

torch = pytest.importorskip("torch")

from calibrant._compiled.memory import GPUMemoryError, in_smaller, memory_for  # noqa: E402
from calibrant._validate import InputError  # noqa: E402


def fits(most):
    def work(size):
        if size > most:
            raise torch.cuda.OutOfMemoryError("out of memory")
        return size

    return work


def test_what_does_not_fit_is_halved_and_that_is_said():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert in_smaller(fits(30), 100, 1, "tiles of {:,} rows") == 25
    words = [
        "the GPU has no memory for tiles of 100 rows: 50 now",
        "the GPU has no memory for tiles of 50 rows: 25 now",
    ]
    assert [str(warning.message) for warning in said] == words
    assert {warning.category for warning in said} == {RuntimeWarning}


def test_what_fits_is_not_spoken_of():
    assert in_smaller(fits(100), 100, 1, "{}") == 100


def test_below_the_least_there_is_an_error():
    with (
        pytest.warns(RuntimeWarning, match="no memory for tiles of"),
        pytest.raises(torch.cuda.OutOfMemoryError, match="out of memory"),
    ):
        in_smaller(fits(3), 20, 16, "tiles of {:,} rows")


def test_the_error_says_what_to_do():
    with (
        pytest.raises(
            GPUMemoryError, match=r"no memory for pairs of 1,000 rows: free .* fewer rows, or .*y_pred.cpu\(\)"
        ) as found,
        memory_for("pairs", 1000),
    ):
        raise torch.cuda.OutOfMemoryError
    assert isinstance(found.value, InputError)
    with pytest.raises(KeyError), memory_for("pairs"):
        raise KeyError
