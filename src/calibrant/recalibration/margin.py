"""Whether a map is better than a simpler one by more than chance."""

import numpy as np

from calibrant._validate import InputError
from calibrant.recalibration.base import mean_change


def check_margin(margin: float) -> None:
    """Refuse what is no number of standard errors."""
    if not 0 <= margin < np.inf:
        raise InputError(f"margin must be a number of standard errors, at least 0; got {margin!r}")


def gain_beyond(
    margin: float, before: np.ndarray, after: np.ndarray, share: np.ndarray, spread: np.ndarray | float = 0.0
) -> float:
    """By how much a mean of losses falls if that is more than ``margin`` standard errors, else 0; shares of rows sum to 1.

    The standard error is the one that rows show or, if it is larger, that of rows with the variances ``spread``.

    >>> before, after, share = np.ones(4), np.array([0.8, 0.9, 0.9, 0.8]), np.full(4, 0.25)
    >>> [round(gain_beyond(2, before, after, share, spread), 2) for spread in (0.0, 0.1)]
    [0.15, 0.0]
    """
    change, shown = map(float, mean_change(before, after, share))
    error = max(shown, float(np.sqrt((share**2 * spread).sum())))
    return -change if -change > margin * error or change == -np.inf else 0.0


def expected_spread(change: np.ndarray, f: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Variances of what a loss changes by, ``(n, k)`` for each outcome, if outcomes have the mean of two probabilities.

    Of rows that are nearly sure, all show the same small change until one of them goes wrong, so their own spread tells too
    little. Midway between both maps neither is favoured.

    >>> expected_spread(np.array([[-0.01, 3.0]]), np.array([[0.99, 0.01]]), np.array([[0.99, 0.01]])).round(3)
    array([0.09])
    """
    chances = np.maximum((f + g) / 2, 0.0)
    mean = (chances * change).sum(axis=1)
    return np.asarray((chances * (change - mean[:, None]) ** 2).sum(axis=1))


def spread_of_log_loss(f: np.ndarray, g: np.ndarray) -> np.ndarray:
    """The same of the log loss, ``(n,)``, from probabilities f to g ``(n, k)``."""
    logs = (np.log(np.maximum(part, np.finfo(np.float64).tiny)) for part in (f, g))
    return expected_spread(np.subtract(*logs), f, g)
