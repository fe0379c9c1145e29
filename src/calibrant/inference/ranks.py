"""Ranks in a pool of statistics: ties count, and rounding makes ties."""

import numpy as np

from calibrant._validate import InputError

ROUNDING = 1e-12
"""Statistics closer than this, relative to the largest, count as ties: rounding must not decide a p-value."""


def at_least(pool: np.ndarray) -> np.ndarray:
    """How many of the pool are at least as large as each.

    >>> at_least(np.array([1.0, 3.0, 3.0, 2.0]))
    array([4, 2, 2, 3])
    """
    ordered, slack = _ordered(pool)
    return len(pool) - np.searchsorted(ordered, pool - slack, side="left")


def at_most(pool: np.ndarray) -> np.ndarray:
    """How many of the pool are at most as large as each."""
    ordered, slack = _ordered(pool)
    return np.searchsorted(ordered, pool + slack, side="right")


def nearer_tail(pool: np.ndarray) -> np.ndarray:
    """The rank of the nearer tail, ranked again, so that a tail that cannot be reached costs nothing."""
    nearer = np.minimum(at_least(pool), at_most(pool))
    return np.searchsorted(np.sort(nearer), nearer, side="right")


def upper_rank(observed: float, null: np.ndarray) -> float:
    """``(1 + #{T* >= T}) / (M + 1)``, the p-value of a statistic among draws of it.

    >>> upper_rank(2.0, np.array([1.0, 2.0, 3.0]))
    0.75
    """
    pool = np.append(null, observed)
    return float(at_least(pool)[-1] / len(pool))


def rounding_of(pool: np.ndarray) -> float:
    """Differences up to this are ties."""
    return ROUNDING * float(np.abs(pool[np.isfinite(pool)]).max(initial=0))


def _ordered(pool: np.ndarray) -> tuple[np.ndarray, float]:
    if missing := int(np.isnan(pool).sum()):
        raise InputError(f"the statistic is not a number for {missing:,} of {len(pool):,} sets of targets")
    return np.sort(pool), rounding_of(pool)
