"""How many steps of a row lie below a number: the class that a uniform number picks."""

import numpy as np

from calibrant.distributions.base import matched
from calibrant.typing import Array

FEW = 32
"""Up to so many steps, comparing with each in turn is faster than bisection, which looks them up one by one."""

CACHED = 1 << 16
"""Numbers that are looked up at a time: they and the steps of their rows stay in the cache."""


def steps_below(steps: np.ndarray, u: np.ndarray, count: int) -> np.ndarray:
    """How many of each row's first ``count`` sorted steps ``(n, width)`` are at most u ``(m, n)``, in the smallest integers.

    The width is a power of two; steps behind the first ones are infinite. O(m n log count), or O(m n count) of few steps.

    >>> steps_below(np.array([[0.2, 0.7, np.inf, np.inf]]), np.array([[0.1], [0.2], [0.9]]), 2)[:, 0]
    array([0, 1, 2], dtype=uint8)
    """
    found = np.empty(u.shape, dtype=np.min_scalar_type(count))
    size = max(1, CACHED // max(len(u), 1))
    for start in range(0, u.shape[1], size):
        rows = slice(start, start + size)
        if count > FEW:
            found[:, rows] = bisected(steps[rows], u[:, rows])
        else:
            found[:, rows] = _in_turn(steps[rows, :count].T.copy(), u[:, rows].copy(), found.dtype)
    return found


def _in_turn(steps: np.ndarray, u: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The same for steps ``(count, n)``, one after the other."""
    found = np.zeros(u.shape, dtype)
    for step in steps:
        found += step <= u
    return found


def bisected(steps: Array, u: Array) -> Array:
    """How many of each row's sorted steps ``(n, width)`` are at most u ``(m, n)``, in any library.

    The width is a power of two, and the last step is infinite: it is never looked at.

    >>> bisected(np.array([[0.2, np.inf]]), np.array([[0.1], [0.2]]))[:, 0]
    array([0, 1])
    """
    n, width = steps.shape
    row, found = (matched(x, steps) for x in (np.arange(n) * width, np.zeros(u.shape, dtype=np.intp)))
    every, step = steps.reshape(-1), width // 2
    while step:  # in all rows at once
        found += step * (every[row + found + (step - 1)] <= u)
        step //= 2
    return found
