"""Integrals over the predictions of one-dimensional families, by adaptive quadrature."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from calibrant._validate import InputError
from calibrant.distributions.base import Distribution

Values: TypeAlias = Callable[[np.ndarray], np.ndarray]
"""A function of targets, one a row of a batch; rows are the last axis of what it gives."""


DIGITS = 1e-6
"""What integrals are held to; adaptive quadrature is asked for a thousand times less, as kinks may deceive it."""


def log_prob(batch: Distribution, y: np.ndarray) -> Any:
    """Log densities, where the family has them."""
    try:
        return batch.log_prob(y)
    except InputError:
        return NotImplemented


def integral(batch: Distribution, draws: np.ndarray, f: Values, edge: np.ndarray, side: int) -> np.ndarray:
    """``integral f(y) dP(y)`` of each row on one side of its edge; the edge itself belongs to the lower side.

    By the density, and by the probabilities of single values among the kinks.
    """
    by_density = on_one_side(batch, draws, lambda y: f(y) * np.exp(batch.log_prob(y)), edge, side)
    return by_density + _atoms(batch, f, edge, side)


def on_one_side(batch: Distribution, draws: np.ndarray, f: Values, edge: np.ndarray, side: int) -> np.ndarray:
    """``integral f(y) dy`` of each row on one side of its edge, piece by piece where the batch has kinks."""
    unit = np.quantile(draws, 0.75, axis=0) - np.quantile(draws, 0.25, axis=0)
    unit = np.where(unit > 0, unit, 1.0)  # where most draws are one value
    distances = np.sort(np.maximum(side * (_kinks(batch).T - edge) / unit, 0), axis=0)
    starts = np.concatenate([np.zeros((1, len(batch))), distances])

    def value(t: np.ndarray) -> np.ndarray:
        return f(edge + side * t * unit) * unit

    total = quadrature(lambda t: value(starts[-1] + t), np.inf)
    for start, width in zip(starts, np.diff(starts, axis=0), strict=False):
        total = total + quadrature(lambda t, start=start, width=width: width * value(start + t * width), 1.0)  # type: ignore[misc]
    return total


def _kinks(batch: Distribution) -> np.ndarray:
    """Where densities jump, ``(n, k)`` in rising order: at values that the family names, and where its range ends."""
    ends = batch.quantile(np.array([0.0, 1.0]))
    parts = [part for part in (batch.kinks, ends) if part is not NotImplemented]
    columns = [column for part in parts for column in part.T if np.isfinite(column).all()]
    return np.sort(np.stack(columns, axis=1), axis=1) if columns else np.empty((len(batch), 0))


def _atoms(batch: Distribution, f: Values, edge: np.ndarray, side: int) -> Any:
    """``sum f(y) P(Y = y)`` over the kinks on one side."""
    total: Any = 0.0
    values = _kinks(batch).T
    for i, y in enumerate(values):
        is_new = np.ones(len(y), dtype=bool) if i == 0 else y > values[i - 1]
        mass = (batch.cdf(y) - batch.below(y)) * (is_new & (y > edge if side > 0 else y <= edge))
        total = total + f(y) * mass
    return total


def quadrature(f: Callable[[float], np.ndarray], end: float) -> np.ndarray:
    """``integral f`` from zero to the end, however far."""
    from scipy.integrate import quad_vec

    points = [x for x in np.arange(0.25, 4, 0.25) if x < end]
    return quad_vec(f, 0, end, epsabs=DIGITS / 1000, epsrel=DIGITS / 1000, norm="max", points=points)[0]


def mean(batch: Distribution, draws: np.ndarray, f: Values) -> np.ndarray:
    """``E f(Y)`` of each row by its density, or by its masses where draws are counts."""
    if draws.dtype.kind in "iu":
        return _sum(batch, draws, f)
    edge = np.quantile(draws, 0.3, axis=0)  # a median is where densities have their kinks
    return integral(batch, draws, f, edge, -1) + integral(batch, draws, f, edge, 1)


def _sum(batch: Distribution, draws: np.ndarray, f: Values) -> np.ndarray:
    """Over whole numbers, as far beyond the draws as these reach."""
    low, high = int(draws.min()), int(draws.max())
    outcomes = [np.full(len(batch), k) for k in range(2 * low - high, 2 * high - low + 1)]
    return sum(f(y) * np.exp(batch.log_prob(y)) for y in outcomes)
