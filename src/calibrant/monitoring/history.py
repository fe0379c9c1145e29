"""What a stream looked like so far, in memory that does not grow: sums in windows, and how the evidence went."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from calibrant.distributions.base import Distribution
from calibrant.monitoring.bets import Bets
from calibrant.monitoring.spans import Cut, Spans
from calibrant.monitoring.tallies import Tally, tally_of

WINDOWS = 100
"""Windows at most; fewer where each holds many numbers."""

FEWEST = 16
"""Windows at most, however many numbers each holds."""

NUMBERS = 16_000
"""Numbers that all windows may hold."""

POINTS = 400
"""Points of the line of evidence at most."""


@dataclass(frozen=True, eq=False)
class History:
    """Sums of a stream in windows, from ``window`` rows on, and its largest e-values in steps, both of doubling widths.

    >>> from calibrant.monitoring.class_bets import EventBets
    >>> from calibrant.distributions.categorical import Categorical
    >>> history = History.fresh(EventBets(), window=2)
    >>> history = history.after(np.array([1, 0, 1]), Categorical(np.array([0.9, 0.2, 0.7])), np.zeros(3))
    >>> history.windows.last.tolist()
    [2, 3]
    """

    tally: Tally
    spans: Spans
    trace: Spans

    @classmethod
    def fresh(cls, bets: Bets, window: int, start: int = 0) -> Self:
        """Before the first row, or after ``start`` rows of which nothing was kept."""
        tally = tally_of(bets)
        most = min(max(NUMBERS // tally.size, FEWEST), WINDOWS) // 2 * 2
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
    def from_dict(cls, data: Mapping[str, Any], bets: Bets) -> Self:
        """The history of :meth:`to_dict`, beside its bets."""
        return cls(tally_of(bets), Spans.from_dict(data["windows"]), Spans.from_dict(data["evidence"]))
