"""Kernel errors of a stream: over blocks of rows, by random features, and at given locations."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from typing import Any, Self

import numpy as np

from calibrant import distributions
from calibrant._array import is_array, matched, namespace, to_numpy
from calibrant._compiled.choice import accounted
from calibrant._numerics.sums import UNIT, dot, from_text, sum_any, to_float, to_text, total
from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.reading.conversion import Classes, as_part, as_problem
from calibrant.estimators.kernel_errors.kernel_problem import KernelForm, resolve_problem
from calibrant.estimators.kernel_errors.kernel_sums import block_sums, notes_on_blocks
from calibrant.estimators.kernel_errors.random_features import RandomFeatureSKCE
from calibrant.estimators.kernel_errors.skce import SKCE
from calibrant.estimators.kernel_errors.ucme import UCME, GivenLocations, Problem, SampledLocations
from calibrant.kernels import Identity
from calibrant.results import Estimate
from calibrant.streams.base import (
    PairSums,
    SumState,
    as_count,
    check_kernels,
    check_target_kernel,
    exact_sums,
    family_of,
)
from calibrant.typing import Array, ArrayLike


def concatenated(parts: Sequence[Any]) -> Any:
    """One batch of several of the same family, rows in order; of arrays the same.

    >>> from calibrant import Normal
    >>> concatenated([Normal([0.0], [1.0]), Normal([2.0, 3.0], [4.0, 5.0])]).loc
    array([0., 2., 3.])
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    if isinstance(first, tuple):
        return tuple(concatenated(column) for column in zip(*parts, strict=True))
    if is_array(first):
        if len({tuple(part.shape[1:]) for part in parts}) > 1:
            raise InputError("rows of different shapes cannot be put together: " + str([p.shape for p in parts]))
        return namespace(first).concat(list(parts))
    assert isinstance(first, Distribution)
    of_rows = _fields_of_rows(first)
    values = {name: [getattr(part, name) for part in parts] for name in field_names(first)}
    return type(first)(**{name: concatenated(v) if name in of_rows else v[0] for name, v in values.items()})


def field_names(batch: Distribution) -> list[str]:
    """What a batch is made of."""
    return [part.name for part in fields(batch)]  # type: ignore[arg-type]  # families are dataclasses


def _fields_of_rows(batch: Distribution) -> set[str]:
    """Fields that have one entry per row: those that are longer in a longer batch."""
    rows = np.zeros(len(batch) + 1, dtype=np.intp)
    longer = batch[matched(rows, batch.parameters[0])]
    return {name for name in field_names(batch) if _size(getattr(longer, name)) != _size(getattr(batch, name))}


def _size(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_size(part) for part in value]
    return len(value) if is_array(value) or isinstance(value, Distribution) else None


def to_plain(value: Any) -> Any:
    """A batch, array or setting as data for JSON."""
    if isinstance(value, Distribution):
        name = type(value).__name__
        if name not in families():
            raise InputError(f"{name} predictions cannot be written as JSON: give those of a family of calibrant's own")
        return {"family": name, "fields": {part: to_plain(getattr(value, part)) for part in field_names(value)}}
    if is_array(value):
        host = to_numpy(value)
        return {"values": host.tolist(), "dtype": str(host.dtype), "shape": list(host.shape)}
    if isinstance(value, tuple):
        return {"tuple": [to_plain(part) for part in value]}
    if value is None or isinstance(value, str | int | float):
        return value
    raise InputError(f"{value!r} cannot be written as JSON: give predictions of a family of calibrant's own")


def from_plain(data: Any) -> Any:
    """What :func:`to_plain` was given.

    >>> from calibrant import Normal
    >>> from_plain(to_plain(Normal([0.0, 1.0], [1.0, 2.0]))).scale
    array([1., 2.])
    """
    if not isinstance(data, dict):
        return data
    if "family" in data:
        return families()[data["family"]](**{name: from_plain(value) for name, value in data["fields"].items()})
    if "tuple" in data:
        return tuple(map(from_plain, data["tuple"]))
    return np.array(data["values"], dtype=data["dtype"]).reshape(data["shape"])


@cache
def families() -> dict[str, type[Distribution]]:
    """The families by name."""
    found: dict[str, type[Distribution]] = {}
    for module in walk_packages(distributions.__path__, f"{distributions.__name__}."):
        home = import_module(module.name)
        found |= {
            name: kind
            for name, kind in vars(home).items()
            if isinstance(kind, type) and issubclass(kind, Distribution) and is_dataclass(kind)
        }
    return found


Piece = tuple[int, Array, Distribution]
"""Rows of a block that is not complete: the number of the first, targets and predictions."""


@dataclass(frozen=True, eq=False)
class BlockState(SumState):
    """What ``SKCE(block=B)`` needs to know of the rows so far: the sums over complete blocks, and the rows of others.

    Blocks are rows 0 to B - 1, B to 2B - 1, ... of the whole stream, however it is cut into parts. A part that does not
    follow the rows before it says where it begins: ``update(..., start=row)``. A state keeps at most two incomplete blocks
    of each range of rows without a gap. At the end there must be no gap; the last rows that do not fill a block are
    left out.

    >>> from calibrant import SKCE
    >>> from calibrant.kernels import Exponential
    >>> skce = SKCE(Exponential(0.5), block=2)
    >>> first, second = BlockState(skce).update([1, 0, 1], [0.8, 0.4, 0.3]), BlockState(skce).update([0], [0.5], start=3)
    >>> second.merge(first).finalize().value == skce([1, 0, 1, 0], [0.8, 0.4, 0.3, 0.5]).value
    True
    """

    kind = "blocks"

    estimator: SKCE
    n: int = 0
    family: str | None = None
    ranges: tuple[tuple[int, int], ...] = ()
    pieces: tuple[Piece, ...] = field(default=(), repr=False)
    means: PairSums = field(default=PairSums(), repr=False)
    routes: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, SKCE) or self.estimator.block is None:
            raise InputError(f"estimator must be an SKCE with blocks, such as SKCE(block=100); got {self.estimator!r}")
        check_kernels(self.estimator)

    @property
    def size(self) -> int:
        """Rows of a block."""
        assert self.estimator.block is not None
        return self.estimator.block

    def update(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        start: int | None = None,
    ) -> Self:
        """The state after these rows too, which follow the last ones unless ``start`` says where they begin."""
        if sample_weight is not None:
            raise InputError("block takes no sample_weight: blocks are of equal weight")
        if start is not None:
            check_count(start, "start", least=0)
        part = as_part(y_true, y_pred, None, Classes(labels, pos_label))
        if part is None:
            return self
        end = self.ranges[-1][1] if self.ranges else 0
        return self.merge(self._from(end if start is None else start, part[0], part[1]))

    def of_rows(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Self:
        """Rows from the beginning."""
        return self._from(0, targets, predictions)

    def _from(self, start: int, targets: Array, predictions: Distribution) -> Self:
        """The state of these rows alone: complete blocks in the middle, pieces at both ends."""
        check_target_kernel(self.estimator, predictions)
        n = len(predictions)
        first, last = min(-start % self.size, n), max(n - (start + n) % self.size, 0)
        last = max(first, last)
        cuts = [(start + i, slice(i, j)) for i, j in ((0, first), (last, n)) if j > i]
        pieces = tuple((row, targets[cut, ...], predictions[cut]) for row, cut in cuts)
        alone = replace(
            self, n=n, family=family_of(predictions), ranges=((start, start + n),), pieces=pieces, means=PairSums()
        )
        if last == first:
            return alone
        middle = slice(first, last)
        return alone._with_blocks(targets[middle, ...], predictions[middle])

    def _with_blocks(self, targets: Array, predictions: Distribution) -> Self:
        """With the means of complete blocks."""
        e = self.estimator
        on_predictions, _, rows = resolve_problem(e.on_predictions, e.on_targets, e.route, targets, predictions)
        with accounted() as account:
            sums = to_numpy(block_sums(KernelForm(on_predictions), rows, self.size)).astype(np.float64)
        means = PairSums.of(sums / (self.size * (self.size - 1)))
        return replace(
            self,
            means=self.means + means,
            routes=self.routes | {"; ".join([rows.residuals.route.value, *account.loops])},
        )

    def joined(self, other: Self) -> Self:
        """Sums added, and blocks completed whose pieces have come together."""
        ranges = _united([*self.ranges, *other.ranges])
        total = replace(
            self,
            n=self.n + other.n,
            ranges=ranges,
            pieces=(),
            means=self.means + other.means,
            routes=self.routes | other.routes,
        )
        left: list[Piece] = []
        for start, targets, predictions in _runs([*self.pieces, *other.pieces], self.size):
            if len(predictions) == self.size:
                total = total._with_blocks(targets, predictions)
            else:
                left.append((start, targets, predictions))
        return replace(total, pieces=tuple(left))

    def result(self) -> Estimate:
        """The mean over blocks and its standard error."""
        if self.ranges != ((0, self.n),):
            first, last = (0, self.ranges[0][0]) if self.ranges[0][0] else (self.ranges[0][1], self.ranges[1][0])
            raise InputError(
                f"rows {first:,} to {last - 1:,} are missing: merge the state that has them; rows are numbered from 0"
            )
        notes, count = notes_on_blocks(self.n, self.size), self.n // self.size
        error = float(np.sqrt(self.means.squares / (count - 1) / count)) if count > 1 else None
        settled = self.estimator
        if settled.on_targets is None:
            settled = replace(settled, on_targets=Identity())
        route = ", ".join(sorted(self.routes))
        found = Estimate("SKCE", self.means.ratio, self.n, settled, standard_error=error, route=route, notes=notes)
        return replace(
            found, withheld="a stream does not keep how skewed its blocks are; SKCE(block=B) of all rows has one"
        )

    def sums(self) -> dict[str, Any]:
        """Sums over blocks, ranges of rows, and the rows of incomplete blocks."""
        pieces = [to_plain((start, to_numpy(y), p)) for start, y, p in self.pieces]
        ranges = [list(part) for part in self.ranges]
        return {"means": self.means.to_list(), "ranges": ranges, "pieces": pieces, "routes": sorted(self.routes)}

    @classmethod
    def revived(cls, estimator: Any, n: int, family: str | None, sums: Mapping[str, Any]) -> Self:
        """The state of such a text."""
        ranges = tuple((as_count(start), as_count(end)) for start, end in sums["ranges"])
        pieces = tuple(_piece(*map(from_plain, part["tuple"])) for part in sums["pieces"])
        if sum(end - start for start, end in ranges) != n or any(start >= end for start, end in ranges):
            raise ValueError(f"its ranges do not have {n} rows")
        if not all(isinstance(route, str) for route in sums["routes"]):
            raise TypeError("its routes are no texts")
        return cls(estimator, n, family, ranges, pieces, PairSums.from_list(sums["means"]), frozenset(sums["routes"]))


def _piece(start: Any, targets: Any, predictions: Any) -> Piece:
    """Rows of a block, as they were written."""
    predictions = predictions.checked()
    if targets.dtype.kind not in "biuf" or not np.isfinite(targets).all() or len(targets) != len(predictions):
        raise ValueError(f"a piece has no {len(predictions)} targets")
    return as_count(start), targets, predictions


def _united(ranges: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Ranges of rows put together; rows that come twice are refused.

    >>> _united([(5, 9), (0, 5), (12, 13)])
    ((0, 9), (12, 13))
    """
    found: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if found and start < found[-1][1]:
            raise InputError(
                f"rows {start:,} to {min(end, found[-1][1]) - 1:,} come twice: a part that does not begin with row 0 must say "
                "where it begins, update(..., start=row)"
            )
        if found and start == found[-1][1]:
            start = found.pop()[0]
        found.append((start, end))
    return tuple(found)


def _runs(pieces: list[Piece], size: int) -> Iterator[Piece]:
    """Pieces of the same block that follow each other put together."""
    run: list[Piece] = []
    for piece in sorted(pieces, key=lambda piece: piece[0]):
        if run and (piece[0] != run[-1][0] + len(run[-1][2]) or piece[0] % size == 0):
            yield _joined(run)
            run = []
        run.append(piece)
    if run:
        yield _joined(run)


def _joined(run: list[Piece]) -> Piece:
    return run[0][0], concatenated([y for _, y, _ in run]), concatenated([p for _, _, p in run])


@dataclass(frozen=True, eq=False)
class RandomFeatureState(SumState):
    """What :class:`RandomFeatureSKCE` needs to know of the rows so far: one sum per random feature and class, and three numbers.

    ``(|sum_i w_i phi(P_i) r_i|^2 - sum_i w_i^2 |r_i|^2) / ((sum_i w_i)^2 - sum_i w_i^2)``: the same seed gives the same
    features phi in every state. Of class probabilities; features of numbers depend on the range of all predictions.

    >>> from calibrant.kernels import Exponential
    >>> state = RandomFeatureState(RandomFeatureSKCE(Exponential(0.5))).update([1, 0], [0.8, 0.4]).update([1], [0.5])
    >>> whole = RandomFeatureSKCE(Exponential(0.5))([1, 0, 1], [0.8, 0.4, 0.5])
    >>> bool(abs(state.finalize().value - whole.value) < 1e-12)
    True
    """

    kind = "random features"

    estimator: RandomFeatureSKCE
    n: int = 0
    family: str | None = None
    features: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), dtype=object), repr=False)
    others: tuple[int, int, int] = field(default=(0, 0, 0), repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, RandomFeatureSKCE):
            raise InputError(f"estimator must be a RandomFeatureSKCE; got {self.estimator!r}")
        check_kernels(self.estimator)

    def of_rows(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Self:
        """The sums of these rows."""
        if not isinstance(predictions, Categorical):
            raise InputError(
                f"a stream of RandomFeatureSKCE takes class probabilities; got {type(predictions).__name__} predictions: "
                "use SKCE(block=100), or UCME with GivenLocations"
            )
        w, n = np.ones(len(predictions)) if weights is None else weights, len(predictions)
        statistic = replace(self.estimator.given(predictions, None), weights=w)
        sums, diagonal = statistic.sums(to_numpy(targets))
        exact = sum_any(sums.ravel(), np.arange(sums.size), sums.size).reshape(sums.shape)
        others = (total(np.array([diagonal])), total(w), dot(w, w))
        return replace(self, n=n, family=family_of(predictions), features=exact, others=others)

    def joined(self, other: Self) -> Self:
        """All sums added."""
        if self.features.shape != other.features.shape:
            raise InputError(
                f"states of {self.features.shape} and {other.features.shape} features cannot be merged: one was not written by a "
                "state of these predictions"
            )
        others: Any = tuple(a + b for a, b in zip(self.others, other.others, strict=True))
        return replace(self, n=self.n + other.n, features=self.features + other.features, others=others)

    def result(self) -> Estimate:
        """The error, unbiased."""
        if self.n < 2:
            raise InputError("the unbiased SKCE needs at least two rows; the state has seen 1")
        diagonal, weight, squares = to_float(np.array(self.others, dtype=object))
        value = ((to_float(self.features.ravel()) ** 2).sum() - diagonal) / (weight**2 - squares)
        settled = self.estimator.settled(self.estimator.on_predictions, self.estimator.on_targets or Identity())
        return settled.of_value(float(value), self.n)

    def sums(self) -> dict[str, Any]:
        """Sums in the order of features and classes."""
        features = [to_text(row) for row in self.features]
        return {"features": features, "others": to_text(self.others)}

    @classmethod
    def revived(cls, estimator: Any, n: int, family: str | None, sums: Mapping[str, Any]) -> Self:
        """The state of such a text."""
        features = np.array([from_text(row) for row in sums["features"]], dtype=object).reshape(
            len(sums["features"]), -1
        )
        others: Any = exact_sums(sums["others"], 3)
        return cls(estimator, n, family, features, others)


ROWS = 1 << 14
"""Rows at a time, whose values at all locations fit into little memory."""


@dataclass(frozen=True, eq=False)
class LocationState(SumState):
    """What :class:`UCME` needs to know of the rows so far: one sum a test location, without rounding.

    >>> from calibrant.estimators import UCME
    >>> from calibrant.kernels import Exponential
    >>> ucme = UCME(Exponential(0.5), locations=GivenLocations([0, 1], [0.3, 0.6]))
    >>> state = LocationState(ucme).update([1, 0], [0.8, 0.4]).update([1], [0.5])
    >>> bool(abs(state.finalize().value - ucme([1, 0, 1], [0.8, 0.4, 0.5]).value) < 1e-12)
    True
    """

    kind = "locations"

    estimator: UCME
    n: int = 0
    family: str | None = None
    seen: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=object), repr=False)
    weight: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, UCME):
            raise InputError(f"estimator must be a UCME; got {self.estimator!r}")
        if not isinstance(self.estimator.locations, GivenLocations):
            raise InputError(
                f"locations={self.estimator.locations!r} are rows of the data, which a stream does not know yet: give them, "
                "locations=GivenLocations(y_true, y_pred), or take them from a first sample, state(..., like=(y_true, y_pred))"
            )
        check_kernels(self.estimator)

    @property
    def text(self) -> str:
        """The kernels; locations are written beside the sums."""
        return repr(replace(self.estimator, locations=SampledLocations(1)))

    @property
    def settings(self) -> str:
        """Kernels and locations, digit by digit."""
        return f"{self.text} at {to_plain(self.places)}"

    @property
    def places(self) -> Problem:
        """Targets and predictions of the locations."""
        locations: Any = self.estimator.locations
        return as_problem(locations.y_true, locations.y_pred)

    def of_rows(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Self:
        """The sums of these rows."""
        check_target_kernel(self.estimator, predictions)
        resolved = self.estimator.resolve(predictions[:1])
        places, _ = self.estimator.locations.choose(resolved, targets, predictions)  # which checks that they match
        seen = np.zeros(len(places[1]), dtype=object)
        for start in range(0, len(predictions), ROWS):
            rows = slice(start, min(start + ROWS, len(predictions)))
            values = to_numpy(resolved.values(places, (targets[rows, ...], predictions[rows]))).astype(np.float64)
            values = values if weights is None else values * weights[rows]
            for j, row in enumerate(values):
                seen[j] += total(row)
        weight = len(predictions) << UNIT if weights is None else total(weights)
        return replace(self, n=len(predictions), family=family_of(predictions), seen=seen, weight=weight)

    def joined(self, other: Self) -> Self:
        """All sums added."""
        return replace(self, n=self.n + other.n, seen=self.seen + other.seen, weight=self.weight + other.weight)

    def result(self) -> Estimate:
        """The embedding's mean square over the locations."""
        means = np.array([x / self.weight for x in self.seen])
        return Estimate("UCME", float((means**2).mean()), self.n, self.estimator.resolve(self.places[1]))

    def sums(self) -> dict[str, Any]:
        """One sum a location, with the locations."""
        return {"locations": to_plain(self.places), "seen": to_text(self.seen), "weight": to_text([self.weight])}

    @classmethod
    def revived(cls, estimator: Any, n: int, family: str | None, sums: Mapping[str, Any]) -> Self:
        """The state of such a text."""
        targets, predictions = from_plain(sums["locations"])
        places = GivenLocations(targets, predictions.checked())
        seen = np.array(exact_sums(sums["seen"], len(predictions)), dtype=object)
        return cls(replace(estimator, locations=places), n, family, seen, *exact_sums(sums["weight"], 1))
