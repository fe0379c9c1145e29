"""What recalibrators of two classes share: rows pooled by score, and maps of one number."""

from abc import abstractmethod
from typing import NamedTuple

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.recalibration.base import ClassMap, two_classes
from calibrant.recalibration.weights import in_rows


class Pools(NamedTuple):
    """Rows with equal scores as one: increasing scores, how often class 1 happened, and how many rows there were."""

    scores: np.ndarray
    frequency: np.ndarray
    rows: np.ndarray


def pools_of(targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None, asker: str) -> Pools:
    """The pools of a checked problem; more than two classes are refused."""
    p = to_numpy(two_classes(predictions, asker).matrix).astype(np.float64)
    count = in_rows(weights, len(targets))
    scores, which = np.unique(scores_of(p), return_inverse=True)
    rows = np.bincount(which, weights=count)
    return Pools(scores, np.bincount(which, weights=count * (targets == 1)) / rows, rows)


def scores_of(p: np.ndarray) -> np.ndarray:
    """The probability of class 1 of rows ``(n, 2)``, which may miss one by rounding."""
    return p[:, 1] / p.sum(axis=1)


class BinaryMap(ClassMap):
    """A map of the probability of class 1; subclasses are dataclasses that write :meth:`probability`."""

    @abstractmethod
    def probability(self, scores: np.ndarray) -> np.ndarray:
        """The probability of class 1 that is put in place of each score, ``(n,)`` both."""

    def probabilities(self, p: np.ndarray) -> np.ndarray:
        """Both classes, ``(n, 2)``."""
        found = self.probability(scores_of(p))
        return np.stack([1 - found, found], axis=1)


def as_fractions(x: np.ndarray, name: str) -> np.ndarray:
    """A vector of numbers in [0, 1], as double precision."""
    values = np.asarray(x, dtype=np.float64)
    if values.ndim != 1 or not np.all((values >= 0) & (values <= 1)):
        raise InputError(f"{name} must be numbers from 0 to 1")
    return values


def as_knots(x: np.ndarray, name: str) -> np.ndarray:
    """A vector of numbers in [0, 1] that do not decrease."""
    knots = as_fractions(x, name)
    if np.any(np.diff(knots) < 0):
        raise InputError(f"{name} must not decrease")
    return knots


def check_two_classes(n_classes: int) -> None:
    """Refuse a map that says it is for another number of classes."""
    if n_classes != 2:
        raise InputError(f"n_classes must be 2; got {n_classes!r}")
