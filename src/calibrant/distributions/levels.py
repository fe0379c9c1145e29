"""Levels and values of rows by themselves, as fine next to 1 as next to 0 where a family is symmetric."""

import numpy as np

from calibrant._array import to_numpy
from calibrant.distributions.base import Distribution
from calibrant.distributions.laplace import Laplace
from calibrant.distributions.logistic import Logistic
from calibrant.distributions.normal import Normal
from calibrant.distributions.piecewise import Piecewise

SYMMETRIC = (Normal, Laplace, Logistic)
"""Families with ``P(Y > y) = F(2 loc - y)``, by which levels next to 1 are as fine as those next to 0."""

HAIR = 4 * np.finfo(np.float64).eps
"""Levels are lowered by this share, so that the way there and back does not round up to the next member of an ensemble."""


def above(predictions: Distribution, y: np.ndarray) -> np.ndarray:
    """``P(Y > y)`` of each row.

    >>> float(above(Normal([0.0], 1.0), np.array([30.0]))[0]) < 1e-197
    True
    """
    if isinstance(predictions, SYMMETRIC):
        return to_numpy(predictions.cdf(2 * predictions.host[0] - y))
    return 1 - to_numpy(predictions.cdf(y))


def at_least(predictions: Distribution, y: np.ndarray) -> np.ndarray:
    """``P(Y >= y)`` of each row."""
    return above(predictions, y) if isinstance(predictions, SYMMETRIC) else 1 - to_numpy(predictions.below(y))


def value_at(predictions: Distribution, u: np.ndarray) -> np.ndarray:
    """The values of each row at levels of its own, ``(..., n)``.

    >>> value_at(Normal([0.0, 5.0], 1.0), np.array([0.5, 0.5]))
    array([0., 5.])
    """
    if isinstance(predictions, SYMMETRIC):
        loc, scale = predictions.host
        return loc + scale * type(predictions)([0.0], 1.0).quantile(u.reshape(-1)).reshape(u.shape)
    if isinstance(predictions, Piecewise):
        return predictions.at(u)
    flat = u.reshape(-1, len(predictions))
    columns = [to_numpy(predictions[i : i + 1].quantile(flat[:, i]))[0] for i in range(len(predictions))]
    return np.stack(columns, axis=1).reshape(u.shape)


def value_above(predictions: Distribution, v: np.ndarray) -> np.ndarray:
    """The values of each row that leave ``P(Y > y) = v`` of its own, ``(..., n)``."""
    if isinstance(predictions, SYMMETRIC):
        return 2 * predictions.host[0] - value_at(predictions, v)
    return value_at(predictions, 1 - v)
