"""What families of counts share: whole numbers from zero, and expectations as sums over them."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from calibrant._array import namespace, to_numpy
from calibrant._validate import InputError, check_finite
from calibrant.distributions.base import matched
from calibrant.distributions.ensemble import Ensemble
from calibrant.distributions.parametric import Parametric, check_positive
from calibrant.expectation import closed_form
from calibrant.kernels import Kernel
from calibrant.typing import Array, ArrayLike

TAIL = 1e-16
"""Probability beyond the last count of a sum."""

LONGEST = 2048
"""Sums over more counts than this cost more than another route."""

LARGEST = 1e100
"""Larger counts are taken as this one: the functions behind their levels end."""

MOST = 1e15
"""Larger rates have counts that double precision cannot tell apart."""


def check_rate(rate: Array) -> None:
    """Refuse rates that are not positive, or too large to count to."""
    check_positive(rate, "rate")
    _, high = check_finite(rate, "rate")
    if high > MOST:
        raise InputError(f"rate must be at most {MOST:g}, so that counts are whole numbers; found {high:g}")


@dataclass(frozen=True, eq=False, repr=False)
class Counts(Parametric):
    """A batch of distributions of counts.

    Coordinates are mean and standard deviation. Their Euclidean distance is the part of the Wasserstein distance W2 that is
    due to the first two moments, a lower bound of W2. Gelbrich (1990).
    """

    @property
    def coords(self) -> Array:
        """``(mean, standard deviation)``, ``(n, 2)``."""
        return namespace(self.mean).stack([self.mean, self.std], axis=1)

    @property
    def is_cheaper_by_waves(self) -> bool:
        """Sums run over all pairs of counts."""
        return True

    def as_targets(self, y_true: ArrayLike) -> Array:
        """Whole numbers from zero, ``(n,)``, in floating point, as kernels on real numbers take them."""
        y = super().as_targets(y_true)
        host = to_numpy(y)
        wrong = (host < 0) | (host != np.floor(host))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(f"y_true must be counts: 0, 1, 2, ...; found {host[row]:g} in row {row}")
        return y

    @abstractmethod
    def _at_most(self, k: np.ndarray, *parameters: np.ndarray) -> np.ndarray:
        """``P(Y <= k)`` for whole k >= 0 and parameters that go with them."""

    @abstractmethod
    def _more_than(self, k: np.ndarray, *parameters: np.ndarray) -> np.ndarray:
        """``P(Y > k)``, with all digits however small."""

    @abstractmethod
    def _log_masses(self, k: Array) -> Array:
        """Log probabilities ``(n, m)`` of the counts k = 0, ..., m - 1, in the library of the parameters."""

    @abstractmethod
    def _mean_up_to(self, k: np.ndarray) -> np.ndarray:
        """``E Y 1{Y <= k}`` for whole k."""

    @abstractmethod
    def _half_difference(self) -> np.ndarray:
        """``E |Y - Y'| / 2``."""

    def cdf(self, y: Array) -> Array:
        """``P(Y <= y)``."""
        k = np.floor(to_numpy(y))
        return np.where(k < 0, 0.0, self._at_most(np.clip(k, 0, LARGEST), *self.host))

    def below(self, y: Array) -> Array:
        """``P(Y < y)``."""
        return self.cdf(np.ceil(to_numpy(y)) - 1)

    def quantile(self, u: Array) -> Array:
        """The least counts ``(n, m)`` with ``cdf >= u``, by bisection; ``inf`` at one."""
        levels = np.broadcast_to(to_numpy(u).astype(np.float64), (len(self), len(u)))
        found = self._first(lambda k, *parameters: self._at_most(k, *parameters) >= levels, levels < 1)
        return np.where(levels < 1, found, np.inf)

    @cached_property
    def last(self) -> int:
        """The count that no row exceeds but with a probability below rounding."""
        return int(self._first(lambda k, *parameters: self._more_than(k, *parameters) <= TAIL, None).max())

    def _first(self, reached: Any, wanted: Any) -> np.ndarray:
        """The least count of each row ``(n, m)`` from which a condition holds, where that is wanted."""
        parameters = [column[:, None] for column in self.host]
        mean, std = (to_numpy(x).astype(np.float64)[:, None] for x in (self.mean, self.std))
        high = np.floor(mean + 8 * std) + 1
        at_end = reached(high, *parameters)
        done = at_end if wanted is None else at_end | ~wanted
        low = np.full(done.shape, -1.0)
        high = np.broadcast_to(high, done.shape)
        while not done.all():
            low, high = np.where(done, low, high), np.where(done, high, 2 * high + 1)
            at_end = reached(high, *parameters)
            done = done | at_end
        while np.any(high - low > 1):
            middle = np.floor((low + high) / 2)
            there = reached(np.maximum(middle, 0), *parameters) & (middle >= 0)
            low, high = np.where(there, low, middle), np.where(there, middle, high)
        return high

    def crps(self, y: Array) -> Array:
        """``E|Y - y| - E|Y - Y'| / 2``, both in closed form."""
        y = to_numpy(y).astype(np.float64)
        mean = to_numpy(self.mean).astype(np.float64)
        around = y * (2 * self.cdf(y) - 1) + mean - 2 * self._mean_up_to(np.floor(y))
        return around - self._half_difference()

    def masses(self, last: int) -> Array:
        """Probabilities of 0, ..., last, ``(n, last + 1)``."""
        first = self.parameters[0]
        k = namespace(first).astype(matched(np.arange(last + 1.0), first), first.dtype)
        return namespace(first).exp(self._log_masses(k))


def _support(p: Counts, *others: Counts) -> Any:
    """Points ``(m, 1)`` that hold the counts of all batches, or ``NotImplemented`` where they are too many."""
    last = max(batch.last for batch in (p, *others))
    if last >= LONGEST:
        return NotImplemented
    first = p.parameters[0]
    return namespace(first).astype(matched(np.arange(last + 1.0)[:, None], first), first.dtype)


@closed_form(Kernel, Counts, Counts)
def _both(kernel: Kernel, p: Counts, q: Counts) -> Any:
    """A bilinear form in the masses of both."""
    points = _support(p, q)
    if points is NotImplemented:
        return NotImplemented
    last, xp = points.shape[0] - 1, namespace(points)
    return p.masses(last) @ (kernel(points, points) @ xp.permute_dims(q.masses(last), (1, 0)))


@closed_form(Kernel, Counts, Ensemble)
def _rows(kernel: Kernel, p: Counts, q: Ensemble) -> Any:
    """A sum over the masses of the first and the members of the second."""
    points = _support(p)
    if points is NotImplemented or q.members.ndim != 2:
        return NotImplemented
    xp = namespace(q.members)
    values = kernel(points, xp.reshape(q.members, (-1, 1)))
    by_member = xp.permute_dims(xp.reshape(values, (points.shape[0], *q.members.shape)), (1, 2, 0))
    return p.masses(points.shape[0] - 1) @ xp.permute_dims(q.average(by_member), (1, 0))


@closed_form(Kernel, Ensemble, Counts)
def _columns(kernel: Kernel, p: Ensemble, q: Counts) -> Any:
    """The same with the arguments exchanged."""
    found = _rows(kernel, q, p)
    return NotImplemented if found is NotImplemented else namespace(found).permute_dims(found, (1, 0))
