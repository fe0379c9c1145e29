"""Rows dealt into folds, so that what is fitted on some can be tried on others."""

import numpy as np

from calibrant._validate import InputError, check_count


def folds_of_rows(n: int, n_folds: int, seed: int = 0) -> np.ndarray:
    """The fold of each of n rows, from 0 on, as equal in size as can be, at random.

    What happened has no say. Were classes dealt evenly, a class that happened more often than predicted would have done so
    in every fold alike, and what is learned from some folds would seem to be confirmed by the others: the mean of
    calibration errors of calibrated predictions would be above 0.

    >>> folds_of_rows(6, 3).tolist()
    [0, 2, 2, 1, 0, 1]
    """
    check_count(n_folds, "folds", least=2)
    if n < n_folds:
        raise InputError(f"folds must not exceed the number of rows; got {n_folds} folds of {n} rows")
    return np.random.default_rng(seed).permutation(n) % n_folds
