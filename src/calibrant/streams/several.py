"""Several estimators of one stream, in one pass."""

from dataclasses import dataclass
from typing import Any, Self

from calibrant._validate import InputError
from calibrant.distributions.conversion import as_part
from calibrant.results import Estimate
from calibrant.streams.blocks import BlockState
from calibrant.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class SeveralStates:
    """The states of several estimators, of the same rows.

    >>> from calibrant import ECE, BinnedState, Brier
    >>> from calibrant.streams.score import ScoreState
    >>> both = SeveralStates((BinnedState(ECE()), ScoreState(Brier()))).update([1, 0], [0.8, 0.4])
    >>> [round(estimate.value, 3) for estimate in both.finalize()]
    [0.3, 0.1]
    """

    states: tuple[Any, ...]

    @property
    def n(self) -> int:
        """How many rows that count there were."""
        return int(self.states[0].n)

    def update(
        self, y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None, **options: Any
    ) -> Self:
        """The states after these rows too; input is checked once. ``start`` is for those that have blocks."""
        part = as_part(y_true, y_pred, sample_weight)
        if part is None:
            return self
        targets, predictions, weights = part
        return type(self)(
            tuple(
                state.update(
                    targets, predictions, sample_weight=weights, **(options if isinstance(state, BlockState) else {})
                )
                for state in self.states
            )
        )

    def merge(self, other: Self) -> Self:
        """One by one."""
        if not isinstance(other, SeveralStates) or len(self.states) != len(other.states):
            raise InputError("states of different estimators cannot be merged: their numbers differ")
        return type(self)(tuple(a.merge(b) for a, b in zip(self.states, other.states, strict=True)))

    def finalize(self) -> tuple[Estimate, ...]:
        """The estimates, in the order of the states."""
        return tuple(state.finalize() for state in self.states)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"state": "several", "states": [state.to_dict() for state in self.states]}
