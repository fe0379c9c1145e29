import numpy as np
import pytest

from calibrant._validate import InputError
from calibrant.recalibration.folds import folds_of_rows


@pytest.mark.parametrize(("n", "folds"), [(5, 5), (23, 4), (100, 7)])
def test_folds_are_equal_in_size_and_classes_are_dealt_evenly(n, folds, rng):
    y = rng.integers(0, 3, n)
    fold = folds_of_rows(y, folds)
    sizes = np.bincount(fold, minlength=folds)
    assert sizes.max() - sizes.min() <= 1
    for c in range(3):
        counts = np.bincount(fold[y == c], minlength=folds)
        assert counts.max() - counts.min() <= 1


def test_the_seed_decides():
    y = np.zeros(50, dtype=int)
    assert np.array_equal(folds_of_rows(y, 5, 1), folds_of_rows(y, 5, 1))
    assert not np.array_equal(folds_of_rows(y, 5, 1), folds_of_rows(y, 5, 2))


def test_rows_are_not_dealt_in_their_order(rng):
    for y in (np.zeros(60, dtype=int), rng.normal(size=60), rng.normal(size=(60, 2))):
        fold = folds_of_rows(y, 3)
        assert np.bincount(fold).tolist() == [20, 20, 20]
        assert not np.array_equal(fold, np.arange(60) % 3)


def test_bad_input():
    with pytest.raises(InputError, match="folds must not exceed the number of rows; got 5 folds of 4 rows"):
        folds_of_rows(np.zeros(4), 5)
    with pytest.raises(InputError, match="folds must be a whole number of at least 2; got 1"):
        folds_of_rows(np.zeros(4), 1)
