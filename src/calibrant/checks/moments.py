"""Means, spreads, what lies below a value, and ranked scores agree with draws and integrals."""

from typing import Any

import numpy as np

from calibrant._array import to_numpy
from calibrant.checks.density import frequency_error
from calibrant.checks.integrals import DIGITS, log_prob, mean, on_one_side
from calibrant.distributions.base import Distribution

FEW = 1_000
"""A family of which draws have fewer different values than this is one of single values with probabilities."""


def check_moments(batch: Distribution, draws: np.ndarray) -> None:
    """``mean``, ``std``, ``below`` and ``crps``, as far as the family has them."""
    numbers = draws.astype(np.float64)
    if batch.mean is not NotImplemented:
        _check_mean(batch, numbers, to_numpy(batch.mean))
        if batch.std is not NotImplemented:
            _check_std(batch, numbers, to_numpy(batch.std))
    if draws.ndim == 2:
        _check_below(batch, draws)
        _check_crps(batch, draws)


def _has_density(batch: Distribution, draws: np.ndarray) -> bool:
    one = draws.ndim == 2 and len(np.unique(draws[:, 0])) > FEW
    return one and log_prob(batch, draws[0]) is not NotImplemented


def _error(values: np.ndarray) -> np.ndarray:
    """Five standard errors of a mean, and room for what happens too seldom to be drawn."""
    return 5 * values.std(axis=0) / np.sqrt(len(values)) + 10 * np.abs(values).max(axis=0) / len(values) + 1e-9


def _check_mean(batch: Distribution, draws: np.ndarray, centre: np.ndarray) -> None:
    assert centre.shape == draws.shape[1:], f"mean has shape {centre.shape}"
    off = draws - centre
    assert np.all(np.abs(off.mean(axis=0)) < _error(off)), "mean does not agree with the draws"
    if _has_density(batch, draws):
        unit = draws.std(axis=0)
        exact = mean(batch, draws, lambda y: (y - centre) / unit)
        assert np.abs(exact).max() < DIGITS, "mean is not the integral of log_prob"


def _check_std(batch: Distribution, draws: np.ndarray, spread: np.ndarray) -> None:
    assert spread.shape == draws.shape[1:], f"std has shape {spread.shape}"
    centre = to_numpy(batch.mean)
    squares = (draws - centre) ** 2
    some = np.isfinite(spread)
    close = np.abs(squares.mean(axis=0) - spread**2) < _error(squares)
    assert np.all(close[some]), "std does not agree with the draws"
    if _has_density(batch, draws) and np.all(some):
        exact = mean(batch, draws, lambda y: ((y - centre) / spread) ** 2)
        assert np.abs(exact - 1).max() < DIGITS, "std is not the integral of log_prob"


def _check_below(batch: Distribution, draws: np.ndarray) -> None:
    below, upto = batch.below(draws[:3]), batch.cdf(draws[:3])
    if below is NotImplemented:
        return
    assert upto is not NotImplemented, "below without cdf"
    assert np.all((below <= upto) & (below >= 0)), "more lies below a value than up to it"
    for y, less, most in zip(draws[:3], below, upto, strict=True):
        for probability, seen in ((less, draws < y), (most, draws <= y)):
            off = np.abs(probability - seen.mean(axis=0)) - frequency_error(probability, draws)
            assert np.all(off < 1 / len(draws)), "below and cdf do not agree with the draws"


def _check_crps(batch: Distribution, draws: np.ndarray) -> None:
    scores: Any = batch.crps(draws[:3])
    if scores is NotImplemented:
        return
    numbers, half = draws.astype(np.float64), len(draws) // 2
    spread = np.abs(numbers[:half] - numbers[half:]) / 2
    for y, score in zip(numbers[:3], scores, strict=True):
        far = np.abs(numbers - y)
        off = np.abs(far.mean(axis=0) - spread.mean(axis=0) - score)
        assert np.all(off < _error(far) + _error(spread)), "crps does not agree with the draws"
    alone = np.stack([batch.crps(y) for y in draws[:3]])
    assert np.allclose(scores, alone, rtol=1e-12, atol=1e-12), "crps of a stack of targets is not that of its members"
    if batch.cdf(draws[0]) is not NotImplemented:
        wanted, error = _integrated(batch, draws)
        assert np.all(np.abs(wanted - scores[0]) < error * numbers.std(axis=0)), "crps is not the integral of cdf"


def _integrated(batch: Distribution, draws: np.ndarray) -> tuple[np.ndarray, float]:
    """``integral (F(x) - [y <= x])^2 dx`` for the first draw, and the error it may have in standard deviations."""
    y = draws[0].astype(np.float64)
    if _has_density(batch, draws):
        lower = on_one_side(batch, draws, lambda x: batch.cdf(x) ** 2, y, -1)
        return lower + on_one_side(batch, draws, lambda x: (1 - batch.cdf(x)) ** 2, y, 1), DIGITS
    wanted = []
    for i in range(len(batch)):
        values = np.unique(draws[:, i])  # jumps that are not drawn are rare
        steps = to_numpy(batch[i : i + 1].cdf(values[:, None]))[:-1, 0] - (values[:-1] >= draws[0, i])
        wanted.append(steps**2 @ np.diff(values.astype(np.float64)))
    return np.array(wanted), 1e-3
