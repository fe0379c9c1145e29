"""Convex distances of what happens from what was predicted, whose means are calibration errors."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from calibrant._validate import InputError


class ConvexDistance(ABC):
    """A distance ``D(q, f)`` of probabilities q from the predicted f, both ``(n, k)``: convex in q, and 0 at ``q = f``.

    ``E D(E[y | f], f)`` is the calibration error of :class:`calibrant.Variational`. By convexity
    ``D(g, f) + <y - g, gradient of D at g>``, whose mean is largest at ``g = E[y | f]``, where it is the error. An event is
    two classes, ``(n, 2)``.

    >>> class Squared(ConvexDistance):
    ...     def between(self, q, f):
    ...         return ((q - f) ** 2).sum(axis=1)
    ...     def gradient(self, q, f):
    ...         return 2 * (q - f)
    >>> y, f, g = np.array([[0.0, 1.0]]), np.array([[0.5, 0.5]]), np.array([[0.3, 0.7]])
    >>> Squared().removed(y, f, g).round(12), (((f - y) ** 2) - ((g - y) ** 2)).sum(axis=1).round(12)
    (array([0.32]), array([0.32]))
    """

    @property
    def name(self) -> str:
        """What results call it."""
        return type(self).__name__

    @abstractmethod
    def between(self, q: np.ndarray, f: np.ndarray) -> np.ndarray:
        """The distance of each row, ``(n,)``."""

    @abstractmethod
    def gradient(self, q: np.ndarray, f: np.ndarray) -> np.ndarray:
        """A subgradient in q, ``(n, k)``; 0 at ``q = f``."""

    def removed(self, y: np.ndarray, f: np.ndarray, g: np.ndarray) -> np.ndarray:
        """What g in place of f takes from the loss of rows with the outcomes y, ``(n, k)`` all three."""
        return self.between(g, f) + ((y - g) * self.gradient(g, f)).sum(axis=1)


@dataclass(frozen=True)
class Lp(ConvexDistance):
    """The distance ``||q - f||_p``. Of an event it is ``|q - f|`` for every p.

    >>> Lp(2)
    Lp(p=2)
    """

    p: float = 1

    def __post_init__(self) -> None:
        if not isinstance(self.p, int | float) or isinstance(self.p, bool) or not self.p >= 1:
            raise InputError(f"p must be a number of at least 1, or inf; got {self.p!r}")

    @property
    def name(self) -> str:
        """As papers write it."""
        return f"L{self.p:g}"

    def between(self, q: np.ndarray, f: np.ndarray) -> np.ndarray:
        """The norm of the gap."""
        return np.linalg.norm(q - f, ord=self.p, axis=1)

    def gradient(self, q: np.ndarray, f: np.ndarray) -> np.ndarray:
        """The gradient of the norm; 0 where there is none, the first largest for p = inf."""
        gap = q - f
        size = np.abs(gap)
        largest = size.max(axis=1, keepdims=True)
        if np.isinf(self.p):
            first = np.arange(gap.shape[1]) == size.argmax(axis=1)[:, None]
            return np.where(first, np.sign(gap), 0.0)
        share = size / np.where(largest > 0, largest, 1.0)  # powers of shares of the largest cannot vanish
        norm = (share**self.p).sum(axis=1, keepdims=True) ** (1 / self.p)
        slope = np.sign(gap) * (share / np.where(norm > 0, norm, 1.0)) ** (self.p - 1)
        return np.where(largest > 0, slope, 0.0)

    def removed(self, y: np.ndarray, f: np.ndarray, g: np.ndarray) -> np.ndarray:
        """The distance is linear along a ray from f: only the direction of g matters."""
        return ((y - f) * self.gradient(g, f)).sum(axis=1)
