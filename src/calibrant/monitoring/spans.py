"""A stream in a bounded number of spans: numbers that add up, or of which the largest counts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Self

import numpy as np

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

    The width doubles then, so that an endless stream takes as much room as one of ``most`` spans. How rows come together
    changes nothing but rounding. ``closed`` spans are complete, ``open`` is the one that is not, ``filled`` how many rows it
    has, and ``start`` how many rows came before the first. Amortised O(1) a row.

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
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The spans of :meth:`to_dict`."""
        open_span = np.array([*map(float, data["open"])])
        closed = np.array([[*map(float, row)] for row in data["closed"]]).reshape(-1, len(open_span))
        return cls(data["width"], data["most"], data["rule"], closed, open_span, data["filled"], data["start"])


def _nothing(size: int, rule: Rule) -> np.ndarray:
    """What changes no other numbers."""
    return np.full(size, 0.0 if rule == "sum" else -np.inf)


def _plain(value: float) -> float | int | str:
    """A number that JSON reads back as it was; whole ones are shorter without their point."""
    value = float(value)
    if not np.isfinite(value):
        return repr(value)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
