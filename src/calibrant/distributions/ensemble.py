"""Ensembles: predictions given by samples, each equally likely (weather members, Monte-Carlo dropout, posterior draws)."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from calibrant._array import namespace, to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution, as_numbers, matched
from calibrant.expectation import closed_form, expectation
from calibrant.kernels import Kernel
from calibrant.typing import Array, ArrayLike

FEW_MEMBERS = 4
"""Ensembles of more members than this are taken by their waves, where the kernel has some."""

MANY = 1 << 20
"""Pairs of members that are worth loading compiled code for."""

STEP = 8
"""How many pairs of members could meet in the time of one step of a running sum, roughly."""


@dataclass(frozen=True, eq=False)
class Ensemble(Distribution):
    """``m`` equally likely values a row: members ``(n, m)``, or ``(n, m, d)`` for targets in d dimensions.

    Coordinates in one dimension are the sorted members over ``sqrt(m)``: their Euclidean distance is the Wasserstein distance W2.

    >>> Ensemble([[1.0, 3.0, 2.0], [0.0, 0.0, 5.0]]).quantile(np.array([0.5]))
    array([[2.],
           [0.]])
    """

    members: Array

    def __post_init__(self) -> None:
        members = as_numbers(self.members, "members")
        if members.ndim not in (2, 3):
            raise InputError(f"members must be (n, m) or (n, m, d); got shape {tuple(members.shape)}")
        object.__setattr__(self, "members", members)

    @classmethod
    def _trusted(cls, members: Array) -> Self:
        self = object.__new__(cls)
        object.__setattr__(self, "members", members)
        return self

    def __len__(self) -> int:
        return int(self.members.shape[0])

    def __getitem__(self, rows: slice | Array) -> Self:
        return self._trusted(self.members[rows, ...])

    def __repr__(self) -> str:
        return f"<Ensemble: {len(self):,} predictions of {self.members.shape[1]} members>"

    def as_targets(self, y_true: ArrayLike) -> Array:
        """Real numbers ``(n,)``, or vectors ``(n, d)``."""
        y = as_numbers(y_true, "y_true")
        y = y[:, 0] if self.members.ndim == 2 and y.ndim == 2 and y.shape[1] == 1 else y
        if tuple(y.shape[1:]) != tuple(self.members.shape[2:]):
            wanted = "one number a row" if self.members.ndim == 2 else f"(n, {self.members.shape[2]})"
            raise InputError(f"y_true must be {wanted}; got shape {tuple(y.shape)}")
        return matched(y, self.members)

    @classmethod
    def certain(cls, y: Array) -> Self:
        """Targets as ensembles of a single member."""
        return cls._trusted(y[:, None, ...])

    def point(self, y: Array) -> Self:
        """A single member."""
        return self.certain(matched(y, self.members))

    @property
    def coords(self) -> Any:
        """Sorted members over ``sqrt(m)``, in one dimension."""
        if self.members.ndim == 3:
            return NotImplemented
        return namespace(self.members).sort(self.members, axis=1) / self.members.shape[1] ** 0.5

    @property
    def kinks(self) -> Any:
        """The members."""
        return NotImplemented if self.members.ndim == 3 else self._sorted

    @property
    def is_cheaper_by_waves(self) -> bool:
        """Of more than a few members."""
        return int(self.members.shape[1]) > FEW_MEMBERS

    @cached_property
    def _sorted(self) -> np.ndarray:
        return np.sort(to_numpy(self.members).astype(np.float64), axis=1)

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """A random member of each row, ``(size, n)`` or ``(size, n, d)``."""
        n, m = self.members.shape[:2]
        return to_numpy(self.members)[np.arange(n), rng.integers(0, m, (size, n))]

    def cdf(self, y: Array) -> Any:
        """The share of members at or below y."""
        if self.members.ndim == 3:
            return NotImplemented
        return (self._sorted <= to_numpy(y)[..., None]).mean(axis=-1)

    def below(self, y: Array) -> Any:
        """The share of members below y."""
        if self.members.ndim == 3:
            return NotImplemented
        return (self._sorted < to_numpy(y)[..., None]).mean(axis=-1)

    @property
    def mean(self) -> Array:
        """The mean of the members, ``(n,)`` or ``(n, d)``."""
        return namespace(self.members).mean(self.members, axis=1)

    @property
    def std(self) -> Array:
        """The root of the mean square about it: of a distribution, not of a sample from one."""
        return namespace(self.members).std(self.members, axis=1)

    def quantile(self, u: Array) -> Any:
        """The member at each level: the least with ``cdf >= u``."""
        if self.members.ndim == 3:
            return NotImplemented
        m = self._sorted.shape[1]
        # m u may round up past a whole number; the levels k / m are those that cdf gives
        return self._sorted[:, np.searchsorted(np.arange(1, m) / m, to_numpy(u))]

    def cf(self, w: Array) -> Any:
        """The mean of ``exp(i w.y)`` over members."""
        xp = namespace(self.members)
        w = xp.astype(matched(w, self.members), self.members.dtype)
        one = self.members.ndim == 2
        phase = self.members[:, :, None] * w if one else self.members @ xp.permute_dims(w, (1, 0))
        return xp.mean(xp.cos(phase), axis=1), xp.mean(xp.sin(phase), axis=1)

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Five members around 0."""
        return cls(rng.normal(size=(n, 5)))


@closed_form(Kernel, Ensemble, Ensemble)
def _finite_sum(kernel: Kernel, p: Ensemble, q: Ensemble) -> Array:
    """The mean of the kernel over all pairs of members."""
    if _is_worth_sorting(kernel, p, q):
        return _sorted_sum(kernel, p, q)
    xp = namespace(p.members)
    d = 1 if p.members.ndim == 2 else p.members.shape[2]
    values = kernel(xp.reshape(p.members, (-1, d)), xp.reshape(q.members, (-1, d)))
    shape = (len(p), p.members.shape[1], len(q), q.members.shape[1])
    return xp.mean(xp.reshape(values, shape), axis=(1, 3))


@closed_form(Kernel, Distribution, Ensemble)
def _columns(kernel: Kernel, p: Distribution, q: Ensemble) -> Any:
    """The mean over members, each a point of the other family."""
    k, m = q.members.shape[:2]
    points: Any = p.point(namespace(q.members).reshape(q.members, (k * m, *q.members.shape[2:])))
    if points is NotImplemented or isinstance(points, Ensemble):  # which would lead back here
        return NotImplemented
    values = expectation(kernel, p, points)
    if values is NotImplemented:
        return NotImplemented
    xp = namespace(values)
    return xp.mean(xp.reshape(values, (len(p), k, m)), axis=2)


@closed_form(Kernel, Ensemble, Distribution)
def _rows(kernel: Kernel, p: Ensemble, q: Distribution) -> Any:
    """The same, turned."""
    values = _columns(kernel, q, p)
    return NotImplemented if values is NotImplemented else namespace(values).permute_dims(values, (1, 0))


def _is_worth_sorting(kernel: Kernel, p: Ensemble, q: Ensemble) -> bool:
    """Whether many members on a line meet a kernel that has a fast product there."""
    members = p.members, q.members
    if not kernel.has_product or not all(isinstance(x, np.ndarray) and x.ndim == 2 for x in members):
        return False
    pairs, sums = p.members.size * q.members.shape[1], p.members.size + q.members.size
    return pairs * len(q) > MANY and pairs > STEP * sums


def _sorted_sum(kernel: Kernel, p: Ensemble, q: Ensemble) -> np.ndarray:
    """The same by running sums over the members of both, in order: a step a member instead of one a pair of members."""
    size = max(1, p.members.size // q.members.shape[1])  # columns at a time: as many members as the rows have
    parts = [_sorted_columns(kernel, p.members, q.members[i : i + size]) for i in range(0, len(q), size)]
    return np.concatenate(parts, axis=1)


def _sorted_columns(kernel: Kernel, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    points = np.concatenate([rows.ravel(), columns.ravel()])
    order = np.argsort(points)
    n, m = columns.shape
    shares = np.zeros((len(points), n), dtype=points.dtype)
    shares[rows.size :] = np.repeat(np.eye(n) / m, m, axis=0)
    values = np.empty_like(shares)
    values[order] = kernel.product(points[order], shares[order], diagonal=True)
    return values[: rows.size].reshape(*rows.shape, n).mean(axis=1)
