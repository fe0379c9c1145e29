"""The fold of each row, by the names of the caller."""

import numpy as np
import pytest

from calibrant import InputError
from calibrant.reports.core.folds import Folds, as_folds


def test_names_are_those_of_the_caller():
    folds = as_folds(["b"] * 20 + ["a"] * 20, 40)
    assert [folds.names[code] for code in folds.codes[[0, 39]]] == ["b", "a"]


def test_some_rows_of_folds_are_folds():
    assert isinstance(as_folds(np.arange(60) % 3, 60)[np.arange(10)], Folds)


def test_twenty_rows_of_each_are_enough():
    assert len(as_folds(np.arange(60) % 3, 60)) == 3
    with pytest.raises(InputError, match="folds has 3 different labels in 59 rows.*20 or more on average"):
        as_folds(np.arange(59) % 3, 59)
