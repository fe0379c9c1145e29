"""Quantiles from a distribution function, to the last digit."""

from collections.abc import Callable

import numpy as np


def least_reaching(
    cdf: Callable[[np.ndarray], np.ndarray], levels: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """The least number between ``low`` and ``high`` with ``cdf >= level``, ``(n, m)``, by bisection.

    ``cdf`` takes values ``(m, n)``; ends are ``(n, m)``, and levels are or ``(m,)``. At most 64 steps.

    >>> least_reaching(lambda y: y**2, np.array([0.25]), np.zeros((1, 1)), np.ones((1, 1)))
    array([[0.5]])
    """
    first, last = (ordered(np.asarray(end, dtype=np.float64)) for end in (low, high))
    while np.any(first < last):
        middle = (first & last) + ((first ^ last) >> 1)  # their mean, without overflow
        below = levels > cdf(ordered(middle).T).T
        first, last = np.where(below, middle + 1, first), np.where(below, last, middle)
    return ordered(last)


def ordered(x: np.ndarray) -> np.ndarray:
    """Double precision as whole numbers in the same order, and back: neighbours differ by one."""
    bits = x.view(np.int64)
    flipped = np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)
    return flipped if x.dtype == np.float64 else flipped.view(np.float64)
