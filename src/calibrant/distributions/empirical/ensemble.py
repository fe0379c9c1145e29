"""Ensembles: predictions given by samples (weather members, Monte-Carlo dropout, posterior draws)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from calibrant._array import is_floating, is_traced, matched, namespace, to_numpy
from calibrant._validate import InputError, as_array
from calibrant.distributions.base import Distribution, as_numbers, as_shares, displaced
from calibrant.kernels import Kernel
from calibrant.kernels.base import closed_form, expectation
from calibrant.results import how_many
from calibrant.typing import Array, ArrayLike


def check_members(members: Array) -> None:
    """Refuse members that are not finite, naming row and member."""
    if is_traced(members) or members.ndim < 2 or 0 in members.shape or not is_floating(members):
        return
    host = to_numpy(members)
    bad = ~np.isfinite(host.reshape(*host.shape[:2], -1)).all(axis=2)
    if bad.any():
        row, member = (int(i) for i in np.argwhere(bad)[0])
        raise InputError(
            f"members has NaN or infinite values in {how_many(int(bad.sum()), 'place')}, first in row {row}, member {member}: "
            "drop them; rows with different numbers of members go to Ensemble.from_ragged"
        )


def padded(rows: Sequence[ArrayLike]) -> tuple[np.ndarray, np.ndarray]:
    """Rows of different lengths as members and weights ``(n, m)``: the last member is repeated, without weight.

    >>> padded([[1.0, 3.0], [2.0]])[0]
    array([[1., 3.],
           [2., 2.]])
    """
    parts = [to_numpy(as_numbers(row, f"rows[{i}]")) for i, row in enumerate(rows)]
    if not parts or len({part.shape[1:] for part in parts}) > 1 or parts[0].ndim not in (1, 2):
        shapes = [part.shape for part in parts[:5]]
        raise InputError(f"rows must be lists of numbers, or of vectors of one length; got shapes {shapes}")
    sizes = np.array([len(part) for part in parts])
    index = np.minimum(np.arange(sizes.max()), sizes[:, None] - 1)
    weights = (np.arange(sizes.max()) < sizes[:, None]) / sizes[:, None]
    return np.stack([part[i] for part, i in zip(parts, index, strict=True)]), weights


def counted(values: np.ndarray, y: np.ndarray, compare: Any) -> np.ndarray:
    """How many values ``(n, m)`` of each row stand before y ``(..., n)``, by this comparison, ``(..., n)``.

    >>> counted(np.array([[1.0, 2.0, 3.0]]), np.array([2.0]), np.less_equal)
    array([2])
    """
    found = np.zeros(np.broadcast_shapes(y.shape, values.shape[:1]), dtype=np.intp)
    for column in values.T:  # one after the other, so that memory does not grow with them
        found += compare(column, y)
    return found


def mean_distance(members: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """The mean of ``||X - X'||`` over pairs of different members, ``(n,)``; zero for a single one.

    Members ``(n, m)`` or ``(n, m, d)``, equally likely or with weights ``(n, m)`` that sum to one. By sorting on a line,
    O(n m log m); over all pairs of vectors, O(n m^2 d).

    >>> mean_distance(np.array([[0.0, 1.0, 3.0]]))  # (1 + 2 + 3) / 3
    array([2.])
    >>> mean_distance(np.array([[0.0, 1.0, 3.0]]), np.array([[0.5, 0.5, 0.0]]))
    array([1.])
    """
    m = members.shape[1]
    if m == 1:
        return np.zeros(len(members))
    if weights is None and members.ndim == 2:
        return np.concatenate([_even_on_a_line(members[rows]) for rows in _blocks(members)])
    w = np.full(members.shape[:2], 1 / m) if weights is None else weights
    if members.ndim == 2:
        total = np.concatenate([_on_a_line(members[rows], w[rows]) for rows in _blocks(members)])
    else:
        total = _of_vectors(members, w)
    pairs = 1 - (w**2).sum(axis=1)
    return total / np.where(pairs > 1e-15, pairs, 1.0)


CACHED = 1 << 16
"""Members of several rows that are read together: what is made of them stays in the cache."""


def _blocks(members: np.ndarray) -> list[slice]:
    """Rows in parts."""
    step = max(1, CACHED // members.shape[1])
    return [slice(start, start + step) for start in range(0, max(1, len(members)), step)]


def _even_on_a_line(members: np.ndarray) -> np.ndarray:
    """``sum_ij |x_i - x_j| / (m (m - 1))`` of members that count alike: in order, i of them lie below the i-th."""
    m = members.shape[1]
    x = np.sort(members, axis=1)
    x -= x[:, :1]  # which changes nothing but rounding
    return np.einsum("nm,m->n", x, 2.0 * np.arange(1 - m, m, 2) / (m * (m - 1)))


def _on_a_line(members: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """``sum_ij w_i w_j |x_i - x_j| = 2 sum_i w_i x_i (w of those up to i - w of those from i on)``, members in order."""
    order = np.argsort(members, axis=1)
    x, w = (np.take_along_axis(part, order, axis=1) for part in (members, weights))
    x = x - x[:, :1]  # which changes nothing but rounding
    return 2 * (w * x * (2 * np.cumsum(w, axis=1) - w - 1)).sum(axis=1)


def _of_vectors(members: np.ndarray, weights: np.ndarray) -> np.ndarray:
    total = np.zeros(len(members))
    for lag in range(1, members.shape[1]):  # every pair, in both orders
        w = weights * np.roll(weights, lag, axis=1)
        total += (w * np.sqrt(((members - np.roll(members, lag, axis=1)) ** 2).sum(axis=2))).sum(axis=1)
    return total


def distance_from(members: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """The mean distance of the members from targets ``(..., n)`` or ``(..., n, d)``, ``(..., n)``; O(n m d) a stack.

    >>> distance_from(np.array([[0.0, 1.0, 3.0]]), np.array([[1.0], [3.0]])).ravel()
    array([1.        , 1.66666667])
    """
    if weights is None and members.ndim == 2:
        parts = [
            [_mean_gap(members[rows], one[rows]) for rows in _blocks(members)] for one in y.reshape(-1, len(members))
        ]
        return np.stack([np.concatenate(part) for part in parts]).reshape(y.shape)
    w = np.full(members.shape[:2], 1 / members.shape[1]) if weights is None else weights
    stack = y.reshape(-1, *y.shape[y.ndim - members.ndim + 1 :])
    rows = _blocks(members) if members.ndim == 2 else [slice(None)]
    parts = [[(w[r] * _length(members[r] - one[r, None])).sum(axis=1) for r in rows] for one in stack]
    values = np.stack([np.concatenate(part) for part in parts])
    return values.reshape(*y.shape[: y.ndim - members.ndim + 1], len(members))


def _mean_gap(members: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Mean distances on a line, of members that count alike."""
    gap = members - y[:, None]
    return np.einsum("nm->n", np.abs(gap, out=gap)) / members.shape[1]


def _length(difference: np.ndarray) -> np.ndarray:
    return np.abs(difference) if difference.ndim == 2 else np.sqrt((difference**2).sum(axis=2))


MAX_PAIRED_MEMBERS = 4
"""Ensembles of more members than this are taken by their characteristic functions, where the kernel has a spectrum."""

MIN_PAIRS_TO_COMPILE = 1 << 20
"""Pairs of members that are worth loading compiled code for."""

STEP = 8
"""How many pairs of members could meet in the time of one step of a running sum, roughly."""

SLICES = 64
"""Quantiles that stand for a row of members that are not equally likely among its coordinates."""


@dataclass(frozen=True, eq=False)
class Ensemble(Distribution):
    """``m`` values per row: members ``(n, m)``, or ``(n, m, d)`` for targets in d dimensions, with weights ``(n, m)`` or ``(m,)``.

    Without weights all members are equally likely; :meth:`from_ragged` takes rows with different numbers of them,
    :meth:`from_draws` draws with the members first. Coordinates in one dimension are the sorted members over ``sqrt(m)``: their
    Euclidean distance is the Wasserstein distance W2 (with weights nearly so, by 64 quantiles). Predictions of vectors are
    compared by their mean embedding.

    The ensemble is taken as what was predicted. Where members are independent draws, scores have a ``fair`` setting that is
    unbiased for what they were drawn from. Kernel errors have none: rows are compared by their members, which differ by chance
    from what they were drawn from. Members that are drawn from the truth, standard normal around it, have an SKCE of 0.005 where
    there are 3, and of 0.0006 where there are 10 (kernels of unit scale).

    >>> Ensemble([[1.0, 3.0, 2.0], [0.0, 0.0, 5.0]]).quantile(np.array([0.5]))
    array([[2.],
           [0.]])
    """

    members: Array
    weights: Array | None = None

    def __post_init__(self) -> None:
        members = as_array(self.members, "members")
        check_members(members)
        members = as_numbers(members, "members")
        if members.ndim not in (2, 3):
            raise InputError(f"members must be (n, m) or (n, m, d); got shape {tuple(members.shape)}")
        weights = self.weights if self.weights is None else as_shares(self.weights, *members.shape[:2])
        object.__setattr__(self, "members", members)
        object.__setattr__(self, "weights", weights)

    @classmethod
    def from_ragged(cls, rows: Sequence[ArrayLike]) -> Self:
        """Rows with different numbers of equally likely members, ``(m_i,)`` or ``(m_i, d)`` each.

        >>> Ensemble.from_ragged([[1.0, 3.0], [2.0], [0.0, 1.0, 5.0]]).mean
        array([2., 2., 2.])
        """
        return cls(*padded(rows))

    @classmethod
    def from_draws(cls, draws: ArrayLike, axis: int = 0) -> Self:
        """Draws ``(m, n)`` or ``(m, n, d)`` of all rows, as samplers give them; members are on the given axis.

        >>> Ensemble.from_draws(np.zeros((500, 3)))
        <Ensemble: 3 predictions of 500 members>
        """
        values = as_array(draws, "draws")
        if values.ndim not in (2, 3) or not 0 <= axis < values.ndim:
            raise InputError(f"draws must have 2 or 3 axes, members on one of them; got {tuple(values.shape)}, {axis}")
        return cls(namespace(values).moveaxis(values, axis, 1))

    @classmethod
    def _trusted(cls, members: Array, weights: Array | None = None) -> Self:
        self = object.__new__(cls)
        object.__setattr__(self, "members", members)
        object.__setattr__(self, "weights", weights)
        return self

    def __len__(self) -> int:
        return int(self.members.shape[0])

    def __getitem__(self, rows: slice | Array) -> Self:
        return self._trusted(self.members[rows, ...], None if self.weights is None else self.weights[rows, ...])

    def __repr__(self) -> str:
        how = "" if self.weights is None else "weighted "
        return f"<Ensemble: {how_many(len(self), 'prediction')} of {how_many(self.members.shape[1], f'{how}member')}>"

    @property
    def is_vector(self) -> bool:
        """Whether targets have several coordinates."""
        return bool(self.members.ndim == 3)

    @cached_property
    def shares(self) -> np.ndarray:
        """The probabilities of the members, ``(n, m)`` on the host."""
        if self.weights is None:
            return np.full(self.members.shape[:2], 1 / self.members.shape[1])
        w = to_numpy(self.weights).astype(np.float64)
        return w / w.sum(axis=1, keepdims=True)

    @cached_property
    def listed(self) -> np.ndarray:
        """The members on the host; NaN where one has no weight."""
        members, shares = to_numpy(self.members).astype(np.float64), self.shares
        counts = (shares > 0).reshape(*shares.shape, *[1] * (members.ndim - 2))
        return members if self.weights is None else np.where(counts, members, np.nan)

    @property
    def is_even(self) -> bool:
        """Whether in each row all members that have a weight are equally likely."""
        some = np.where(self.shares > 0, self.shares, self.shares.max(axis=1, keepdims=True))
        return self.weights is None or bool(np.ptp(some, axis=1).max() < 1e-9)

    @property
    def coincidence(self) -> np.ndarray:
        """How likely two draws are the same member: ``1 / m`` of equally likely ones."""
        n, m = self.members.shape[:2]
        return np.full(n, 1 / m) if self.weights is None else (self.shares**2).sum(axis=1)

    def average(self, values: Array) -> Array:
        """The mean over members of values ``(n, m, ...)``."""
        xp = namespace(values)
        if self.weights is None:
            return xp.mean(values, axis=1)
        shares = xp.astype(matched(self.weights, values), values.dtype)
        return xp.sum(values * xp.reshape(shares, (*shares.shape, *[1] * (values.ndim - 2))), axis=1)

    def as_targets(self, y_true: ArrayLike) -> Array:
        """Real numbers ``(n,)``, or vectors ``(n, d)``."""
        y = as_numbers(y_true, "y_true")
        y = y[:, 0] if not self.is_vector and y.ndim == 2 and y.shape[1] == 1 else y
        if tuple(y.shape[1:]) != tuple(self.members.shape[2:]):
            wanted = f"(n, {self.members.shape[2]})" if self.is_vector else "one number per row"
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
    def position(self) -> Array:
        """The first members."""
        return self.members[:, 0, ...]

    def shifted(self, by: Any) -> Self:
        """All members moved."""
        return self._trusted(displaced(self.members, by), self.weights)

    @property
    def coords(self) -> Any:
        """Sorted members over ``sqrt(m)``, in one dimension; quantiles, where members have weights."""
        if self.is_vector:
            return NotImplemented
        if self.weights is None:
            return namespace(self.members).sort(self.members, axis=1) / self.members.shape[1] ** 0.5
        return matched(self.quantile((np.arange(SLICES) + 0.5) / SLICES) / SLICES**0.5, self.members)

    @property
    def kinks(self) -> Any:
        """The members."""
        return NotImplemented if self.is_vector else self._sorted

    @cached_property
    def _order(self) -> np.ndarray:
        return np.argsort(to_numpy(self.members), axis=1)

    @property
    def is_cheaper_by_features(self) -> bool:
        """Of more than a few members, which are numbers."""
        return not self.is_vector and int(self.members.shape[1]) > MAX_PAIRED_MEMBERS

    @cached_property
    def _sorted(self) -> np.ndarray:
        return np.take_along_axis(to_numpy(self.members).astype(np.float64), self._order, axis=1)

    @cached_property
    def _levels(self) -> np.ndarray:
        """What lies up to each sorted member, and zero before them, ``(n, m + 1)``."""
        n, m = self.members.shape[:2]
        if self.weights is None:
            return np.broadcast_to(np.arange(m + 1) / m, (n, m + 1))
        sums = np.cumsum(np.take_along_axis(self.shares, self._order, axis=1), axis=1)
        return np.hstack([np.zeros((n, 1)), sums / sums[:, -1:]])

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """A random member of each row, ``(size, n)`` or ``(size, n, d)``."""
        n, m = self.members.shape[:2]
        if self.weights is None:
            return to_numpy(self.members)[np.arange(n), rng.integers(0, m, (size, n))]
        edges = np.cumsum(self.shares, axis=1)
        chosen = counted(edges / edges[:, -1:], rng.random((size, n)), np.less_equal)
        return to_numpy(self.members)[np.arange(n), chosen]

    def cdf(self, y: Array) -> Any:
        """The share of members at or below y."""
        return self._upto(y, np.less_equal)

    def below(self, y: Array) -> Any:
        """The share of members below y."""
        return self._upto(y, np.less)

    def _upto(self, y: Array, compare: Any) -> Any:
        if self.is_vector:
            return NotImplemented
        return self._levels[np.arange(len(self)), counted(self._sorted, to_numpy(y), compare)]

    @property
    def mean(self) -> Array:
        """The mean of the members, ``(n,)`` or ``(n, d)``."""
        return self.average(self.members)

    @property
    def std(self) -> Array:
        """The root of the mean square about it: of a distribution, not of a sample from one."""
        xp, square = namespace(self.members), self.average((self.members - self.mean[:, None, ...]) ** 2)
        apart = square > 0  # where the root has a derivative
        return xp.where(apart, xp.sqrt(xp.where(apart, square, xp.ones_like(square))), xp.zeros_like(square))

    def crps(self, y: Array) -> Any:
        """``E|Y - y| - E|Y - Y'| / 2`` over members, in O(m log m) per row."""
        if self.is_vector:
            return NotImplemented
        near, spread = self.distances(y)
        return near - (1 - self.coincidence) * spread / 2

    def distances(self, y: Array) -> tuple[np.ndarray, np.ndarray]:
        """The mean distances of members from targets, and of different members from each other."""
        members = to_numpy(self.members).astype(np.float64, copy=False)
        shares = None if self.weights is None else self.shares
        return distance_from(members, to_numpy(y).astype(np.float64, copy=False), shares), mean_distance(
            members, shares
        )

    def quantile(self, u: Array) -> Any:
        """The member at each level: the least with ``cdf >= u``."""
        if self.is_vector:
            return NotImplemented
        levels = np.maximum(to_numpy(u), np.finfo(np.float64).tiny)
        if self.weights is None:
            # m u may round up past a whole number; the levels k / m are those that cdf gives
            return self._sorted[:, np.searchsorted(self._levels[0, 1:-1], levels)]
        found = counted(self._levels[:, 1:-1], np.broadcast_to(levels[:, None], (len(levels), len(self))), np.less)
        return np.take_along_axis(self._sorted, found.T, axis=1)

    def cf(self, w: Array) -> Any:
        """The mean of ``exp(i w.y)`` over members."""
        xp = namespace(self.members)
        w = xp.astype(matched(w, self.members), self.members.dtype)
        phase = self.members @ xp.permute_dims(w, (1, 0)) if self.is_vector else self.members[:, :, None] * w
        return self.average(xp.cos(phase)), self.average(xp.sin(phase))

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
    d = p.members.shape[2] if p.is_vector else 1
    values = kernel(xp.reshape(p.members, (-1, d)), xp.reshape(q.members, (-1, d)))
    rows = p.average(xp.reshape(values, (*p.members.shape[:2], -1)))
    return _over_columns(q, rows)


def _over_columns(q: Ensemble, values: Array) -> Array:
    """The mean over the members of columns, ``(n, k m)``, one column per member."""
    xp = namespace(values)
    by_member = xp.reshape(values, (values.shape[0], *q.members.shape[:2]))
    return xp.permute_dims(q.average(xp.permute_dims(by_member, (1, 2, 0))), (1, 0))


@closed_form(Kernel, Distribution, Ensemble)
def _columns(kernel: Kernel, p: Distribution, q: Ensemble) -> Any:
    """The mean over members, each a point of the other family."""
    points: Any = p.point(namespace(q.members).reshape(q.members, (-1, *q.members.shape[2:])))
    if points is NotImplemented or isinstance(points, Ensemble):  # which would lead back here
        return NotImplemented
    values = expectation(kernel, p, points)
    return NotImplemented if values is NotImplemented else _over_columns(q, values)


@closed_form(Kernel, Ensemble, Distribution)
def _rows(kernel: Kernel, p: Ensemble, q: Distribution) -> Any:
    """The same, turned."""
    values = _columns(kernel, q, p)
    return NotImplemented if values is NotImplemented else namespace(values).permute_dims(values, (1, 0))


def _is_worth_sorting(kernel: Kernel, p: Ensemble, q: Ensemble) -> bool:
    """Whether many members on a line meet a kernel that has a fast product there."""
    members = p.members, q.members
    is_even = p.weights is None and q.weights is None
    if not (is_even and kernel.has_product and all(isinstance(x, np.ndarray) and x.ndim == 2 for x in members)):
        return False
    pairs, sums = p.members.size * q.members.shape[1], p.members.size + q.members.size
    return pairs * len(q) > MIN_PAIRS_TO_COMPILE and pairs > STEP * sums


def _sorted_sum(kernel: Kernel, p: Ensemble, q: Ensemble) -> np.ndarray:
    """The same by running sums over the members of both, in order: a step per member instead of one per pair."""
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
