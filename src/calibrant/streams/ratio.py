"""The ratio of what happened to what was expected, of a stream."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.estimators.lensed import View
from calibrant.estimators.ratio import CalibrationRatio
from calibrant.lenses import Lens
from calibrant.results import Estimate
from calibrant.spec import parse
from calibrant.streams.base import SumState, check_events, family_of
from calibrant.streams.names import NAMES
from calibrant.streams.pair_sums import PairSums, quotient
from calibrant.typing import Array


@dataclass(frozen=True, eq=False)
class RatioState(SumState):
    """What :class:`CalibrationRatio` and its interval need to know of the rows so far: five sums per event, without rounding.

    >>> state = RatioState().update([1, 0, 1], [0.6, 0.2, 0.7]).update([1, 0], [0.3, 0.2])
    >>> state.finalize().value
    1.5
    """

    kind = "ratio"

    estimator: CalibrationRatio = CalibrationRatio()  # noqa: RUF009  # frozen
    n: int = 0
    family: str | None = None
    lens: Lens | None = None
    reduction: str | None = None
    events: Mapping[str, PairSums] = field(default_factory=dict, repr=False)
    weights: PairSums = field(default=PairSums(), repr=False)  # frozen

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, CalibrationRatio):
            raise InputError(f"estimator must be a CalibrationRatio; got {self.estimator!r}")

    def of_rows(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Self:
        """The sums of these rows."""
        view = View.of(self.estimator.lens, predictions)
        w = np.ones(len(predictions)) if weights is None else weights
        events = {
            e.name: PairSums.of(w * e.happened(targets).astype(np.float64), w * e.probability.astype(np.float64))
            for e in view.events
        }
        about = {"family": family_of(predictions), "lens": view.lens, "reduction": view.reduction}
        return replace(self, n=len(predictions), events=events, weights=PairSums.of(w), **about)  # type: ignore[arg-type]

    def joined(self, other: Self) -> Self:
        """All sums added."""
        check_events(self.events, other.events)
        events = {name: sums + other.events[name] for name, sums in self.events.items()}
        return replace(self, n=self.n + other.n, events=events, weights=self.weights + other.weights)

    def result(self) -> Estimate:
        """The ratio with its interval; the mean over several events."""
        found = [
            self.estimator.of_sums(
                sums.first, sums.second, sums.squares if sums.second > 0 else 0.0, self.n, self._weight_of_event(sums)
            )
            for sums in self.events.values()
        ]
        return self.estimator.assembled(found, list(self.events), self.lens, self.reduction, self.n)

    def sums(self) -> dict[str, Any]:
        """Five sums per event, and those of the weights."""
        events = {name: sums.to_list() for name, sums in self.events.items()}
        about = {"lens": repr(self.lens), "reduction": self.reduction}
        return {**about, "events": events, "weights": self.weights.to_list()}

    @classmethod
    def revived(cls, estimator: Any, n: int, family: str | None, sums: Mapping[str, Any]) -> Self:
        """The state of such a text."""
        events = {name: PairSums.from_list(texts) for name, texts in sums["events"].items()}
        weights = PairSums.from_list(sums["weights"])
        return cls(estimator, n, family, parse(sums["lens"], NAMES), sums["reduction"], events, weights)

    def _weight_of_event(self, sums: PairSums) -> float:
        """``sum w^2 y / sum w y``, the weight of a typical event; ``sum w^2 / sum w`` where nothing happened yet."""
        a, _, aa, *_ = sums.sums if sums.sums[0] else self.weights.sums
        return quotient(aa, a)
