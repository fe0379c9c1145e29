import numpy as np
import pytest

from calibrant._validate import InputError
from calibrant.recalibration.base import folds_of_rows


@pytest.mark.parametrize(("n", "folds"), [(5, 5), (23, 4), (100, 7)])
def test_folds_are_equal_in_size(n, folds):
    sizes = np.bincount(folds_of_rows(n, folds), minlength=folds)
    assert len(sizes) == folds
    assert sizes.max() - sizes.min() <= 1


def test_the_seed_decides():
    assert np.array_equal(folds_of_rows(50, 5, 1), folds_of_rows(50, 5, 1))
    assert not np.array_equal(folds_of_rows(50, 5, 1), folds_of_rows(50, 5, 2))


def test_rows_are_not_dealt_in_their_order():
    assert not np.array_equal(folds_of_rows(60, 3), np.arange(60) % 3)


def test_bad_input():
    with pytest.raises(InputError, match="folds must not exceed the number of rows; got 5 folds of 4 rows"):
        folds_of_rows(4, 5)
    with pytest.raises(InputError, match="folds must be a whole number of at least 2; got 1"):
        folds_of_rows(4, 1)
