"""Rows dealt into folds, so that what is fitted on some can be tried on others."""

import numpy as np

from calibrant._validate import InputError, check_count


def folds_of_rows(targets: np.ndarray, n_folds: int, seed: int = 0) -> np.ndarray:
    """The fold of each row, from 0 on, as equal in size as can be; classes are dealt evenly.

    The order of the rows matters only through the seed: rows of a class are shuffled, then dealt one fold after the
    other, and the next class goes on where the last one ended. Real targets are dealt in one shuffle.

    >>> folds_of_rows(np.array([0, 0, 1, 1, 1, 0]), 3).tolist()
    [1, 2, 1, 0, 2, 0]
    """
    check_count(n_folds, "folds", least=2)
    n = len(targets)
    if n < n_folds:
        raise InputError(f"folds must not exceed the number of rows; got {n_folds} folds of {n} rows")
    shuffled = np.random.default_rng(seed).permutation(n)
    if targets.ndim == 1 and targets.dtype.kind in "iub":
        shuffled = shuffled[np.argsort(targets[shuffled], kind="stable")]
    fold = np.empty(n, dtype=np.int64)
    fold[shuffled] = np.arange(n) % n_folds
    return fold


def numbered_by_rows(targets: np.ndarray) -> np.ndarray:
    """Class numbers in the order in which classes first happen, so that folds do not depend on their names.

    >>> numbered_by_rows(np.array([2, 0, 2, 1])).tolist()
    [0, 1, 0, 2]
    """
    _, first, which = np.unique(targets, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[which]
