"""Exact intervals of proportions."""

from typing import TypeAlias

import numpy as np
from scipy.special import betaincinv

from calibrant.results import Interval

Band: TypeAlias = tuple[np.ndarray, np.ndarray]
"""Lower and upper ends."""


def clopper_pearson(frequency: np.ndarray, rows: np.ndarray, tail: float) -> Band:
    """The exact interval of a binomial chance, from the frequency in so many rows; fractions of rows are allowed.

    Also of the mean of chances that differ from row to row, which vary less (Hoeffding 1956). Rows of unequal weight count
    as ``(sum w)^2 / sum w^2``. Clopper & Pearson (1934).

    >>> low, high = clopper_pearson(np.array([0.0, 0.3]), np.array([10, 10]), 0.025)
    >>> low.round(4), high.round(4)
    (array([0.    , 0.0667]), array([0.3085, 0.6525]))
    """
    happened = np.clip(frequency, 0, 1) * rows
    failed = rows - happened
    low = betaincinv(np.where(happened > 0, happened, 1), failed + 1, tail)
    high = betaincinv(happened + 1, np.where(failed > 0, failed, 1), 1 - tail)
    return np.where(happened > 0, low, 0.0), np.where(failed > 0, high, 1.0)


def equal_rows(weights: np.ndarray | None, n: int) -> int:
    """How many rows of equal weight tell as much, ``(sum w)^2 / sum w^2``: n without weights.

    >>> equal_rows(None, 7), equal_rows(np.array([1.0, 1.0, 0.0, 2.0]), 4)
    (7, 3)
    """
    return n if weights is None else max(1, round(float(weights.sum() ** 2 / (weights**2).sum())))


def interval_of_share(successes: int, trials: int, level: float = 0.95) -> Interval:
    """Clopper and Pearson's interval of one share.

    >>> print(interval_of_share(0, 20))
    0 to 0.1684
    """
    low, high = clopper_pearson(np.array(successes / trials), np.array(trials), (1 - level) / 2)
    return Interval(float(low), float(high), level, "Clopper-Pearson")
