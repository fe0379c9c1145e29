"""Integrals over the predictions of one-dimensional families, by adaptive quadrature."""

from collections.abc import Callable, Sequence
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
    """``integral f(y) p(y) dy`` of each row on one side of its edge."""
    unit = np.quantile(draws, 0.75, axis=0) - np.quantile(draws, 0.25, axis=0)

    def integrand(t: float) -> np.ndarray:
        y = edge + side * t * unit
        return f(y) * np.exp(batch.log_prob(y)) * unit

    ends = batch.quantile(np.array([0.0, 1.0]))
    jumps = [] if ends is NotImplemented else (side * (ends - edge[:, None]) / unit[:, None]).ravel()
    return quadrature(integrand, np.inf, [t for t in jumps if 0 < t < np.inf])


def quadrature(f: Callable[[float], np.ndarray], end: float, jumps: Sequence[float] = ()) -> np.ndarray:
    """``integral f`` from zero to the end, however far; cut where f jumps, which the rule could miss."""
    from scipy.integrate import quad_vec

    points = [*(x for x in np.arange(0.25, 4, 0.25) if x < end), *jumps]
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
