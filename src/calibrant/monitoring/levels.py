"""Levels of targets in their forecasts, random where they must be, by the number of the row."""

import numpy as np

from calibrant.distributions.base import Distribution
from calibrant.estimators.pit import levels_of


def levels_by_row(targets: np.ndarray, predictions: Distribution, seen: int, seeds: list[int]) -> np.ndarray:
    """``F(y)`` of each row; where single values have a probability, at a random place between ``P(Y < y)`` and ``P(Y <= y)``.

    Every row has one random number, which depends on how many rows were ``seen`` before it and on the seeds, and not on which
    rows come together.

    >>> from calibrant import Poisson
    >>> y, predictions = np.array([0, 1, 2]), Poisson(np.ones(3))
    >>> whole = levels_by_row(y, predictions, 0, [0])
    >>> bool(levels_by_row(y[2:], predictions[2:], 2, [0])[0] == whole[2])
    True
    """
    low, high = levels_of(predictions, levels_by_row)(targets)
    if low is high:
        return low
    source = np.random.PCG64(np.random.SeedSequence(seeds)).advance(seen)
    return low + np.random.Generator(source).random(len(targets)) * (high - low)
