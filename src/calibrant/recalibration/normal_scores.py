"""Levels of targets on the scale of a standard normal variable, where both tails have room."""

import numpy as np
from scipy.special import ndtr, ndtri

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.ensemble import Ensemble
from calibrant.distributions.levels import HAIR, SYMMETRIC, above
from calibrant.distributions.location_scale import LocationScale
from calibrant.distributions.quantiles import fan_of

LOWEST, HIGHEST = np.finfo(np.float64).tiny, 1 - np.finfo(np.float64).epsneg
"""The levels next to 0 and 1, 37.5 standard deviations below and 8.2 above: what is not certain goes no farther."""

PARTS = (np.arange(8) + 0.5) / 8
"""The share of the way from the least to the largest level of a count, of the levels that stand for it."""


def normal_scores(predictions: Distribution, y: np.ndarray, *, strictly: bool = False) -> np.ndarray:
    """``Phi^-1(F(y))`` of each row's targets, infinite where levels are 0 or 1; of ``P(Y < y)`` if ``strictly``.

    >>> from calibrant import Normal
    >>> normal_scores(Normal([0.0, 1.0], 2.0), np.array([60.0, 3.0]))
    array([30.,  1.])
    """
    lower = ndtri(np.clip(to_numpy(predictions.below(y) if strictly else predictions.cdf(y)), 0, 1))
    if not isinstance(predictions, SYMMETRIC):
        return lower
    upper = -ndtri(above(predictions, y))
    return np.where(lower < 0, lower, upper)


def at_normal_scores(predictions: Distribution, z: np.ndarray) -> np.ndarray:
    """The targets ``(n, m)`` that have the normal scores z, ``(m,)``, in every row.

    >>> from calibrant import Normal
    >>> at_normal_scores(Normal([0.0, 1.0], 2.0), np.array([-1.0, 30.0])).round(9)
    array([[-2., 60.],
           [-1., 61.]])
    """
    if isinstance(predictions, LocationScale) and isinstance(predictions, SYMMETRIC):
        below = to_numpy(predictions.quantile(np.where(np.isinf(z), 0, np.maximum(ndtr(-np.abs(z)), LOWEST))))
        return np.where(z <= 0, below, 2 * predictions.host[0][:, None] - below)
    levels = np.clip(ndtr(z) * (1 - HAIR), LOWEST, HIGHEST)
    return to_numpy(predictions.quantile(np.where(np.isinf(z), ndtr(z), levels)))


def mid_scores(predictions: Distribution, y: np.ndarray) -> np.ndarray:
    """Normal scores of targets; among m members of an ensemble, of the middle of their rank, ``(rank + 1/2) / (m + 1)``."""
    if isinstance(predictions, Ensemble):
        m = 1 / predictions.coincidence
        return ndtri((m * to_numpy(predictions.cdf(y)) + 0.5) / (m + 1))
    return normal_scores(predictions, y)


def spread_scores(predictions: Distribution, y: np.ndarray) -> np.ndarray:
    """Normal scores of targets, ``(1, n)``; of targets with a probability of their own, ``(8, n)`` over their levels.

    A count has all levels from ``P(Y < y)`` to ``P(Y <= y)``, and those of a calibrated forecast fill (0, 1) evenly only if
    all of them count: the middles of eight equal parts stand for them. So do they between two quantiles, where nothing else was
    forecast. Czado, Gneiting & Held (2009).

    >>> from calibrant import Poisson
    >>> ndtr(spread_scores(Poisson([1.0]), np.array([0.0]))[:, 0]).round(2)  # P(Y = 0) is 0.37
    array([0.02, 0.07, 0.11, 0.16, 0.21, 0.25, 0.3 , 0.34])
    """
    if isinstance(predictions, Ensemble) or type(predictions).below is Distribution.below:
        return mid_scores(predictions, y)[None]
    if (fan := fan_of(predictions)) is not None:
        low, high = fan.levels_around(y)
    else:
        low, high = (to_numpy(f(y)).astype(np.float64) for f in (predictions.below, predictions.cdf))
    return ndtri(low + PARTS[:, None] * (high - low))


def check_levels(predictions: Distribution, asker: str) -> None:
    """Refuse families without a distribution function and quantiles."""
    if predictions[:1].quantile(np.array([0.5])) is NotImplemented:
        raise InputError(
            f"{asker} takes predictions of numbers that have quantiles, such as Normal, Laplace and Ensemble; "
            f"got {type(predictions).__name__}"
        )
