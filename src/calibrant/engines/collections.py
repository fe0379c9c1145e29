"""States of the partitions of Dask data frames and arrays, made where the partitions are."""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np

from calibrant._parts import part_of
from calibrant._validate import InputError
from calibrant.batches import needed_columns
from calibrant.engines.cluster import DaskEngine
from calibrant.engines.updates import has_blocks, updated
from calibrant.io import Dataset, dataset_of
from calibrant.typing import Engine

NAME = "the data frame"


def is_collection(source: Any) -> bool:
    """Whether this is a Dask collection, or several."""
    items = source if isinstance(source, tuple) else (source,)
    return bool(items) and all(hasattr(item, "__dask_graph__") for item in items)


def collection_states(
    empty: Any, source: Any, columns: Mapping[str, str | None], engine: Engine | None
) -> Iterator[Any]:
    """The states of partitions, in their order."""
    if engine is not None and not isinstance(engine, DaskEngine):
        raise InputError(
            f"collections of Dask are computed by Dask: use engines.connect(client), or no engine; got {engine!r}"
        )
    compute = _compute if engine is None else engine.compute
    if isinstance(source, tuple):
        return _states_of_arrays(empty, source, columns, compute)
    return _states_of_frame(empty, source, columns, compute)


def _states_of_frame(empty: Any, frame: Any, columns: Mapping[str, str | None], compute: Any) -> Iterator[Any]:
    from dask.delayed import delayed

    table = part_of(NAME, {str(name): [] for name in frame.columns})
    parts = frame[list(needed_columns(table, **columns).names)].to_delayed()  # type: ignore[arg-type]
    starts = [0] * len(parts)
    if has_blocks(empty):
        starts = _starts(compute([delayed(len)(part) for part in parts]))
    work = delayed(partial(_state_of_frame, empty, columns), pure=False)
    return compute([work(part, start) for part, start in zip(parts, starts, strict=True)])


def _states_of_arrays(
    empty: Any, arrays: tuple[Any, ...], columns: Mapping[str, str | None], compute: Any
) -> Iterator[Any]:
    from dask.delayed import delayed

    if columns:
        raise InputError(f"arrays have no columns: leave {', '.join(columns)} out")
    if len(arrays) not in (2, 3):
        raise InputError(f"source must have two arrays, (y_true, y_pred), or three, with weights; got {len(arrays)}")
    lengths = arrays[0].chunks[0]
    if any(np.isnan(x.shape[0]) or x.shape[0] != arrays[0].shape[0] for x in arrays):
        raise InputError(
            f"arrays must have equally many rows, and known ones (compute_chunk_sizes); got {[x.shape[0] for x in arrays]}"
        )
    aligned = [x.rechunk({0: lengths, **dict.fromkeys(range(1, x.ndim), -1)}) for x in arrays]
    chunks = zip(*(x.to_delayed().ravel() for x in aligned), strict=True)
    work = delayed(partial(_state_of_arrays, empty), pure=False)
    return compute([work(start, *parts) for start, parts in zip(_starts(lengths), chunks, strict=True)])


def _starts(lengths: Any) -> list[int]:
    """The number of the first row of each part."""
    return list(accumulate(lengths, initial=0))[:-1]


def _compute(delayed: list[Any]) -> Iterator[Any]:
    """By what Dask uses where nobody says what: threads, or the client made last."""
    from dask.base import compute

    return iter(compute(*delayed))


def _state_of_frame(empty: Any, columns: Mapping[str, str | None], frame: Any, start: int) -> Any:
    """What a task does with a partition, a data frame of pandas."""
    if not len(frame):
        return empty
    table = part_of(NAME, {str(name): frame[name].to_numpy() for name in frame.columns})
    return updated(empty, dataset_of(table, **columns, is_part=True), start)  # type: ignore[arg-type]


def _state_of_arrays(empty: Any, start: int, y_true: Any, y_pred: Any, weights: Any = None) -> Any:
    return updated(empty, Dataset(y_true, y_pred, {}, weights, "arrays"), start)
