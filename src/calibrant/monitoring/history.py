"""What a stream looked like so far, in memory that does not grow: sums over rows in a bounded number of spans."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from scipy.special import ndtri

from calibrant._array import to_numpy
from calibrant._validate import MAX_COUNT
from calibrant.distributions.base import Distribution
from calibrant.distributions.multivariate import coordinate, dimensions
from calibrant.lenses.class_lenses import PositiveClass, TopLabel
from calibrant.monitoring.bets import EDGES, Bets, ClassBets, LabelBets
from calibrant.monitoring.pit_bets import MAX_SCORE, PITBets, pit_by_row
from calibrant.monitoring.saved_state import SavedState

Rule = Literal["sum", "largest"]
"""How the numbers of two neighbours become those of both together."""


class Cut(NamedTuple):
    """Spans of rows ``first`` to ``last``, counted from 1, and the numbers of each, ``(spans, size)``."""

    first: np.ndarray
    last: np.ndarray
    values: np.ndarray


@dataclass(frozen=True, eq=False)
class Spans:
    """Numbers of a stream by spans of ``width`` rows; where there are ``most`` of them, neighbours become one.

    The width doubles then, so that an endless stream takes as much memory as one of ``most`` spans. How rows come together
    changes nothing but rounding. ``closed`` spans are complete, ``open`` is the one that is not, ``filled`` how many rows it
    has, and ``start`` how many rows came before the first. Amortised O(1) per row.

    >>> spans = Spans.fresh(1, width=2, most=4).after(10, lambda rows: np.array([rows.stop - rows.start]))
    >>> spans.width, spans.cut().last.tolist(), spans.cut().values[:, 0].tolist()
    (4, [4, 8, 10], [4.0, 4.0, 2.0])
    """

    width: int
    most: int
    rule: Rule
    closed: np.ndarray
    open: np.ndarray
    filled: int = 0
    start: int = 0

    @classmethod
    def fresh(cls, size: int, *, width: int, most: int, rule: Rule = "sum", start: int = 0) -> Self:
        """No rows yet; ``most`` is even."""
        return cls(width, most, rule, np.zeros((0, size)), _nothing(size, rule), start=start)

    def after(self, rows: int, of: Callable[[slice], np.ndarray]) -> Self:
        """After so many rows more; ``of`` gives the numbers of some of them, ``(size,)``."""
        state, done = self, 0
        while done < rows:
            step = min(state.width - state.filled, rows - done)
            state = state._with(of(slice(done, done + step)), step)
            done += step
        return state

    def _with(self, part: np.ndarray, rows: int) -> Self:
        joined, filled = self._merged(np.stack([self.open, part])), self.filled + rows
        if filled < self.width:
            return replace(self, open=joined, filled=filled)
        closed, width = np.concatenate([self.closed, joined[None]]), self.width
        if len(closed) == self.most:
            closed, width = self._merged(closed.reshape(self.most // 2, 2, -1).swapaxes(0, 1)), 2 * width
        return replace(self, width=width, closed=closed, open=_nothing(len(part), self.rule), filled=0)

    def _merged(self, both: np.ndarray) -> np.ndarray:
        return both.sum(axis=0) if self.rule == "sum" else both.max(axis=0)

    def cut(self) -> Cut:
        """All spans, the one that is not complete last."""
        values = np.concatenate([self.closed, self.open[None]]) if self.filled else self.closed
        first = self.start + 1 + self.width * np.arange(len(values))
        last = first + self.width - 1
        if self.filled:
            last[-1] = first[-1] + self.filled - 1
        return Cut(first, last, values)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; numbers that it has no word for by their names."""
        plain = {name: getattr(self, name) for name in ("width", "most", "rule", "filled", "start")}
        return {
            **plain,
            "closed": [[*map(_plain, row)] for row in self.closed.tolist()],
            "open": [*map(_plain, self.open)],
        }

    @classmethod
    def from_saved(
        cls, saved: SavedState, like: Self, n: int, rows_of: Callable[[np.ndarray], np.ndarray] | None = None
    ) -> Self:
        """The spans of :meth:`to_dict`, of n rows; ``like`` are fresh ones of the same numbers.

        ``rows_of`` says over how many rows the numbers ``(spans, size)`` of each span are sums, or that they are none.
        """
        width, most = saved.whole("width", least=1), saved.whole("most", 2, MAX_SPANS)
        filled, start = saved.whole("filled", most=width - 1), saved.whole("start", most=n)
        open_span, closed = saved.numbers("open"), saved.rows("closed", len(like.open))
        if len(open_span) != len(like.open):
            raise saved.refusal("open", f"{len(like.open)} numbers", open_span.tolist())
        if most % 2 or len(closed) >= most or start + width * len(closed) + filled != n:
            raise saved.refusal("closed", f"the spans of {n} rows", closed.tolist())
        if rows_of is not None:
            with np.errstate(all="ignore"):  # of numbers that are no sums
                rows = rows_of(np.concatenate([closed, open_span[None]]))
            if not np.array_equal(rows, [width] * len(closed) + [filled]):
                raise saved.refusal("closed", f"sums over {width} rows each, as open over {filled}", closed.tolist())
        return cls(width, most, saved.text("rule", like.rule), closed, open_span, filled, start)  # type: ignore[arg-type]


def _nothing(size: int, rule: Rule) -> np.ndarray:
    """What changes no other numbers."""
    return np.full(size, 0.0 if rule == "sum" else -np.inf)


def _plain(value: float) -> float | int | str:
    """A number that JSON reads back as it was; whole ones are shorter without their point."""
    value = float(value)
    if not np.isfinite(value):
        return repr(value)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


MAX_SPANS = 10_000
"""Spans that a state may have."""

CUTS = (*(edge for edge in EDGES if edge < 0.4), 0.4, 0.5, 0.6, *(edge for edge in EDGES if edge > 0.6))
"""Ends of the parts of [0, 1] that claims are kept in: tenths, and finer ones at both ends."""

LEVELS = 20
"""Equal parts that PIT values are kept in."""


class EventSums(NamedTuple):
    """Sums over rows, ``(..., groups, cells)``: rows, claims, outcomes, and the variance and third cumulant of the outcomes."""

    rows: np.ndarray
    predicted: np.ndarray
    observed: np.ndarray
    noise: np.ndarray
    skew: np.ndarray

    @property
    def gap(self) -> np.ndarray:
        """Claims less outcomes."""
        return self.predicted - self.observed

    def over(self, axis: int | tuple[int, ...]) -> Self:
        """Sums along an axis: of spans, or of cells."""
        return type(self)(*(part.sum(axis=axis) for part in self))

    def at(self, rows: slice | np.ndarray | int | tuple[slice | int, ...]) -> Self:
        """Some spans, groups or cells."""
        return type(self)(*(part[rows] for part in self))


class PITSums(NamedTuple):
    """Sums over rows, ``(..., groups)``: rows, normal scores of PIT values, their squares; and ``counts`` of these in equal parts,
    ``(..., groups, parts)``."""

    rows: np.ndarray
    scores: np.ndarray
    squares: np.ndarray
    counts: np.ndarray


class StreamTally(ABC):
    """What is summed of rows of one kind, as a flat vector of ``size`` numbers; subclasses are frozen dataclasses.

    ``groups`` are watched by themselves: there is one, or one per label or a coordinate.
    """

    groups: tuple[str, ...]

    @property
    @abstractmethod
    def size(self) -> int:
        """How many numbers."""

    @abstractmethod
    def sums(self, targets: np.ndarray, predictions: Distribution, seen: int) -> np.ndarray:
        """Of some rows, ``(size,)``; ``seen`` rows came before."""

    @abstractmethod
    def rows_of(self, values: np.ndarray) -> np.ndarray:
        """Over how many rows the vectors ``(spans, size)`` are sums; not a number where they are sums of nothing."""


@dataclass(frozen=True)
class EventTally(StreamTally):
    """Of events by their claims: the positive class, the favoured one of several, or every label.

    Of several classes, each is summed by itself too, whatever was claimed.
    """

    groups: tuple[str, ...]
    classes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Five sums a part of a group, and five a class."""
        return 5 * (len(self.groups) * (len(CUTS) + 1) + len(self.classes))

    def sums(self, targets: np.ndarray, predictions: Distribution, seen: int) -> np.ndarray:
        """By part, group by group; then by class."""
        events = self._events(targets, predictions)
        parts = np.stack([_by_part(*event) for event in events], axis=1)
        if not self.classes:
            return parts.ravel()
        probs = to_numpy(predictions.probs).astype(np.float64)  # type: ignore[attr-defined]
        each = _moments(probs, targets[:, None] == np.arange(probs.shape[1])).sum(axis=1)
        return np.concatenate([parts.ravel(), each.ravel()])

    def rows_of(self, values: np.ndarray) -> np.ndarray:
        """Rows of every group and class, which must be the same; sums are within what so many events can have."""
        parts = self.by_part(values)
        every = [parts.rows.sum(axis=2), *([self.by_class(values).rows] if self.classes else [])]
        is_sum = [is_possible(parts).all(axis=2)]
        is_sum += [is_possible(self.by_class(values))] if self.classes else []
        return _agreed(np.concatenate(every, axis=1), np.concatenate(is_sum, axis=1))

    def _events(self, targets: np.ndarray, predictions: Distribution) -> list[tuple[np.ndarray, np.ndarray]]:
        """The claim and the outcome of every row, group by group."""
        if targets.ndim == 2:
            probs = to_numpy(predictions.probs)  # type: ignore[attr-defined]
            return [*zip(probs.T.astype(np.float64), targets.T == 1, strict=True)]
        event = (TopLabel() if self.classes else PositiveClass()).events(predictions)[0]
        return [(event.probability.astype(np.float64), event.observed(targets))]

    def by_part(self, values: np.ndarray) -> EventSums:
        """The sums in flat vectors ``(..., size)``, as ``(..., groups, parts)``."""
        end = self.size - 5 * len(self.classes)
        shaped = values[..., :end].reshape(*values.shape[:-1], 5, len(self.groups), len(CUTS) + 1)
        return EventSums(*np.moveaxis(shaped, -3, 0))

    def by_class(self, values: np.ndarray) -> EventSums:
        """The sums of every class, as ``(..., classes)``."""
        end = self.size - 5 * len(self.classes)
        shaped = values[..., end:].reshape(*values.shape[:-1], 5, len(self.classes))
        return EventSums(*np.moveaxis(shaped, -2, 0))


@dataclass(frozen=True)
class PITTally(StreamTally):
    """Of the PIT values of outcomes; of vectors, of every coordinate."""

    groups: tuple[str, ...]
    seed: int = 0

    @property
    def size(self) -> int:
        """Rows, scores, squares and counts per group."""
        return len(self.groups) * (3 + LEVELS)

    def sums(self, targets: np.ndarray, predictions: Distribution, seen: int) -> np.ndarray:
        """Group by group, of the PIT values that bets see."""
        if not dimensions(predictions):
            return _of_pit(pit_by_row(targets, predictions, seen, [self.seed]))
        parts = [
            pit_by_row(targets[:, i], coordinate(predictions, i), seen, [self.seed, i]) for i in range(len(self.groups))
        ]
        return np.concatenate([_of_pit(part) for part in parts])

    def rows_of(self, values: np.ndarray) -> np.ndarray:
        """Rows of every group, which must be the same; sums are within what so many normal scores can have."""
        sums = self.by_group(values)
        slack = 1e-6 * (sums.rows + 1)
        is_sum = (sums.rows >= 0) & (np.abs(sums.scores) <= MAX_SCORE * sums.rows + slack)
        is_sum &= (sums.squares >= -slack) & (sums.squares <= MAX_SCORE**2 * sums.rows + slack)
        is_sum &= (sums.counts >= 0).all(axis=2) & (sums.counts.sum(axis=2) == sums.rows)
        return _agreed(sums.rows, is_sum)

    def by_group(self, values: np.ndarray) -> PITSums:
        """The sums in flat vectors ``(..., size)``, as ``(..., groups)`` and counts as ``(..., groups, parts)``."""
        shaped = values.reshape(*values.shape[:-1], len(self.groups), 3 + LEVELS)
        return PITSums(shaped[..., 0], shaped[..., 1], shaped[..., 2], shaped[..., 3:])


def is_possible(sums: EventSums) -> np.ndarray:
    """Whether so many events can have such sums, of each cell; rounding is forgiven."""
    rows = sums.rows
    slack = 1e-6 * (rows + 1)
    is_within = [(part >= -slack) & (part <= rows + slack) for part in (sums.predicted, sums.observed)]
    is_noise = (sums.noise >= -slack) & (sums.noise <= rows / 4 + slack) & (np.abs(sums.skew) <= sums.noise + slack)
    return (rows >= 0) & (rows <= MAX_COUNT) & is_within[0] & is_within[1] & is_noise


def _agreed(rows: np.ndarray, is_sum: np.ndarray) -> np.ndarray:
    """The number of rows, ``(spans, groups)``, where all groups agree and have possible sums."""
    return np.where((rows == rows[:, :1]).all(axis=1) & is_sum.all(axis=1), rows[:, 0], np.nan)


def tally_of(bets: Bets) -> StreamTally:
    """What is summed beside these bets."""
    if isinstance(bets, PITBets):
        return PITTally(tuple(f"coordinate {i}" for i in range(bets.d)) or ("forecasts",), bets.seed)
    if isinstance(bets, LabelBets):
        return EventTally(bets.names)
    if isinstance(bets, ClassBets):
        return EventTally(("confidences",), bets.names)
    return EventTally(("probabilities",))


def _moments(p: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """What is summed of each claim: five numbers, along a new first axis."""
    noise = p * (1 - p)
    return np.stack([np.ones_like(p), p, observed.astype(np.float64), noise, noise * (1 - 2 * p)])


def _by_part(p: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Sums in parts of the range of claims, ``(5, parts)``."""
    part = np.searchsorted(np.array(CUTS), p, side="left")
    return np.stack([np.bincount(part, weights, len(CUTS) + 1) for weights in _moments(p, observed)])


def _of_pit(pit: np.ndarray) -> np.ndarray:
    """Rows, scores, squares, and counts in equal parts."""
    z = np.clip(ndtri(pit), -MAX_SCORE, MAX_SCORE)
    part = np.minimum((pit * LEVELS).astype(np.intp), LEVELS - 1)
    return np.concatenate([[len(z), z.sum(), (z**2).sum()], np.bincount(part, minlength=LEVELS)])


WINDOWS = 100
"""Windows at most; fewer where each holds many numbers."""

MIN_WINDOWS = 16
"""Windows at most, however many numbers each holds."""

NUMBERS = 16_000
"""Numbers that all windows may hold."""

POINTS = 400
"""Points of the line of evidence at most."""


@dataclass(frozen=True, eq=False)
class History:
    """Sums of a stream in windows, from ``window`` rows on, and its largest e-values in steps, both of doubling widths.

    >>> from calibrant.monitoring.bets import EventBets
    >>> from calibrant import Categorical
    >>> history = History.fresh(EventBets(), window=2)
    >>> history = history.after(np.array([1, 0, 1]), Categorical(np.array([0.9, 0.2, 0.7])), np.zeros(3))
    >>> history.windows.last.tolist()
    [2, 3]
    """

    tally: StreamTally
    spans: Spans
    trace: Spans

    @classmethod
    def fresh(cls, bets: Bets, window: int, start: int = 0) -> Self:
        """Before the first row, or after ``start`` rows of which nothing was kept."""
        tally = tally_of(bets)
        most = min(max(NUMBERS // tally.size, MIN_WINDOWS), WINDOWS) // 2 * 2
        spans = Spans.fresh(tally.size, width=window, most=most, start=start)
        return cls(tally, spans, Spans.fresh(1, width=1, most=POINTS, rule="largest", start=start))

    def after(self, targets: np.ndarray, predictions: Distribution, log_evalues: np.ndarray) -> Self:
        """After these rows too, and the e-values that they led to."""
        seen = self.n

        def sums(rows: slice) -> np.ndarray:
            return self.tally.sums(targets[rows], predictions[rows], seen + rows.start)

        spans = self.spans.after(len(targets), sums)
        return replace(
            self, spans=spans, trace=self.trace.after(len(targets), lambda rows: log_evalues[rows].max()[None])
        )

    @property
    def n(self) -> int:
        """Rows so far, those before the first window among them."""
        last = self.spans.cut().last
        return int(last[-1]) if len(last) else self.spans.start

    @property
    def windows(self) -> Cut:
        """Windows and their sums."""
        return self.spans.cut()

    @property
    def evidence(self) -> Cut:
        """Steps and the logarithm of the largest e-value in each."""
        return self.trace.cut()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"windows": self.spans.to_dict(), "evidence": self.trace.to_dict()}

    @classmethod
    def from_saved(cls, saved: SavedState, bets: Bets, n: int) -> Self:
        """The history of :meth:`to_dict`, beside its bets, of n rows."""
        like, parts = cls.fresh(bets, 1), (saved.part("windows"), saved.part("evidence"))
        if parts[0] is None or parts[1] is None:
            raise saved.refusal("windows", "spans, as evidence", None)
        windows = Spans.from_saved(parts[0], like.spans, n, like.tally.rows_of)
        return cls(like.tally, windows, Spans.from_saved(parts[1], like.trace, n))
