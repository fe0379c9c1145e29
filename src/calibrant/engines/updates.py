"""A state after the rows of a data set."""

from typing import Any

from calibrant.io import Dataset
from calibrant.streams.blocks import BlockState
from calibrant.streams.several import SeveralStates


def updated(state: Any, data: Dataset, start: int) -> Any:
    """The state after these rows too, which have this number among all.

    >>> from calibrant import Brier, state
    >>> updated(state(Brier()), Dataset([1, 0], [0.8, 0.4], {}, None, ""), 0).n
    2
    """
    numbered = {"start": start} if has_blocks(state) else {}
    return state.update(data.y_true, data.y_pred, sample_weight=data.sample_weight, **numbered)


def has_blocks(state: Any) -> bool:
    """Whether the state wants to know the number of the first row.

    >>> from calibrant import SKCE, state
    >>> from calibrant.kernels import Exponential
    >>> has_blocks(state(SKCE(Exponential(0.5), block=10)))
    True
    """
    states = state.states if isinstance(state, SeveralStates) else (state,)
    return any(isinstance(one, BlockState) for one in states)
