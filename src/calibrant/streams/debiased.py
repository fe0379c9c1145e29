"""Binned errors with the bias of small bins taken off, of a stream."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.estimators.debiased import BinWeights, DebiasedECE
from calibrant.estimators.exact_sums import BLOCK, from_text, sum_any, to_float, to_text
from calibrant.estimators.tallies import Tally, tally
from calibrant.lenses import Event, Lens
from calibrant.results import Estimate
from calibrant.spec import parse
from calibrant.streams.base import SumState, check_events, family_of
from calibrant.streams.names import NAMES
from calibrant.typing import Array


@dataclass(frozen=True, eq=False)
class DebiasedState(SumState):
    """What :class:`~calibrant.DebiasedECE` with fixed bins needs to know of the rows so far: five sums a bin and event.

    ``sums`` has, of each event, rows of exact whole numbers: the two of a :class:`Tally`, ``sum (w r)^2`` with the residuals
    ``r = f - y``, and ``sum w^2``.

    >>> from calibrant import DebiasedECE, EqualWidth
    >>> state = DebiasedState(DebiasedECE(EqualWidth(2))).update([1, 0], [0.9, 0.2]).update([1, 0], [0.7, 0.4])
    >>> whole = DebiasedECE(EqualWidth(2))([1, 0, 1, 0], [0.9, 0.2, 0.7, 0.4])
    >>> bool(abs(state.finalize().value - whole.value) < 1e-12)
    True
    """

    kind = "debiased"

    estimator: DebiasedECE
    n: int = 0
    family: str | None = None
    lens: Lens | None = None
    reduction: str | None = None
    events: Mapping[str, tuple[np.ndarray, ...]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, DebiasedECE) or not self.estimator.bins.is_fixed:
            raise InputError(
                "a state keeps sums in bins that do not depend on the data: use DebiasedECE(EqualWidth(15)), or take the bins "
                f"from a first sample, state(..., like=(y_true, y_pred)); got {self.estimator!r}"
            )

    def of_rows(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Self:
        """The sums of these rows."""
        settled, events, reduction = self.estimator.look(predictions)
        found = {e.name: self._of_event(e, e.happened(targets), weights) for e in events}
        about: dict[str, Any] = {"lens": settled.lens, "reduction": reduction, "family": family_of(predictions)}
        return replace(self, n=len(predictions), events=found, **about)

    def _of_event(self, event: Event, happened: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, ...]:
        p = event.probability
        bins = self.estimator.bins.bins(p)
        counted, size = tally(p, happened, bins, weights), len(bins)
        w = np.ones(len(p)) if weights is None else weights
        residual_squares, weight_squares = (np.zeros(size, dtype=object) for _ in range(2))
        for start in range(0, len(p), BLOCK):
            rows = slice(start, start + BLOCK)
            cell, residual = bins.of_rows(p, rows), p[rows].astype(np.float64) - happened[rows]
            residual_squares += sum_any((w[rows] * residual) ** 2, cell, size)
            weight_squares += sum_any(w[rows] ** 2, cell, size)
        return counted.mass, counted.score, residual_squares, weight_squares

    def joined(self, other: Self) -> Self:
        """All sums added."""
        check_events(self.events, other.events)
        pairs = {name: zip(sums, other.events[name], strict=True) for name, sums in self.events.items()}
        added = {name: tuple(a + b for a, b in sums) for name, sums in pairs.items()}
        return replace(self, n=self.n + other.n, events=added)

    def result(self) -> Estimate:
        """The error with its bin table."""
        bins, parts = self.estimator.bins.bins(np.zeros(0)), []
        for mass, score, residual_squares, weight_squares in self.events.values():
            counted = Tally(bins, mass, score)
            parts.append((counted, to_float(residual_squares), BinWeights(counted.weight, to_float(weight_squares))))
        settled = replace(self.estimator, lens=self.lens)
        return settled.of_counts(list(self.events), parts, self.reduction, self.n)

    def sums(self) -> dict[str, Any]:
        """Five sums a bin and event."""
        events = {name: [to_text(part) for part in sums] for name, sums in self.events.items()}
        return {"lens": repr(self.lens), "reduction": self.reduction, "events": events}

    @classmethod
    def revived(cls, estimator: Any, n: int, family: str | None, sums: Mapping[str, Any]) -> Self:
        """The state of such a text."""
        events = {name: tuple(map(from_text, parts)) for name, parts in sums["events"].items()}
        return cls(estimator, n, family, parse(sums["lens"], NAMES), sums["reduction"], events)
