"""States of data frames that come one after the other: for Spark's ``mapInPandas``, Dask, Ray, pools of processes."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, reduce
from typing import Any

from calibrant._validate import InputError
from calibrant.streams.choose import from_dict, state
from calibrant.typing import ArrayLike

Mapper = Callable[[Iterable[Any]], Iterator[Any]]
"""From frames to frames."""


def frame_states(
    *estimators: Any,
    y_true: str = "y",
    y_pred: str | Sequence[str] = "p",
    sample_weight: str | None = None,
    like: tuple[ArrayLike, ArrayLike] | None = None,
) -> Mapper:
    """A function from the frames of one part of the data to one frame of one row, whose column ``state`` holds the state as JSON.

    In Spark, ``table.mapInPandas(frame_states(ECE()), "state string")``. A part without rows gives nothing. Frames are of
    pandas or Polars, or mappings of columns; several columns in ``y_pred`` are the probabilities of the classes.

    >>> from calibrant import ECE
    >>> import polars
    >>> frames = [polars.DataFrame({"y": [1, 0], "p": [0.9, 0.2]}), polars.DataFrame({"y": [1], "p": [0.7]})]
    >>> (row,) = frame_states(ECE())(frames)
    >>> round(merged(row["state"]).finalize().value, 4)
    0.2
    """
    state(*estimators, like=like)  # which checks them here rather than far away
    columns = y_true, y_pred if isinstance(y_pred, str) else list(y_pred), sample_weight
    return partial(_mapped, estimators, like, columns)


def _mapped(
    estimators: tuple[Any, ...],
    like: tuple[ArrayLike, ArrayLike] | None,
    columns: tuple[str, str | list[str], str | None],
    frames: Iterable[Any],
) -> Iterator[Any]:
    total, kind = state(*estimators, like=like), None
    y_true, y_pred, weight = columns
    for frame in frames:
        kind = type(frame)
        weights = {} if weight is None else {"sample_weight": frame[weight]}
        total = total.update(frame[y_true], frame[y_pred], **weights)
    if kind is not None and total.n:
        yield kind({"state": [json.dumps(total.to_dict())]})


def merged(texts: Iterable[str]) -> Any:
    """The state of all parts from their texts, such as a column that was collected; the order does not matter.

    >>> from calibrant import ECE
    >>> texts = [json.dumps(state(ECE()).update(y, p).to_dict()) for y, p in (([1, 0], [0.9, 0.2]), ([1], [0.7]))]
    >>> merged(texts).finalize().n
    3
    """
    states = [from_dict(json.loads(text)) for text in texts]
    if not states:
        raise InputError("there are no states to merge: did every part of the data have no rows?")
    return reduce(lambda a, b: a.merge(b), states)
