"""Estimates from data larger than memory, Parquet or Dask: each task reads its rows and gives back a state."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial, reduce
from itertools import accumulate
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from calibrant._tasks import mapping
from calibrant._validate import InputError, check_count
from calibrant.engines.cluster import DaskEngine
from calibrant.io.batches import Batches, needed_columns
from calibrant.io.columns import check_exists, polars_of
from calibrant.io.dataset import Dataset, dataset_of
from calibrant.io.parts import parquet_length, part_of
from calibrant.streams.block_state import BlockState
from calibrant.streams.states import SeveralStates, state
from calibrant.typing import ArrayLike, Engine


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


NUMBERS = 1 << 23
"""Numbers of a task, in double precision 64 MB, where nobody says how many rows it has."""

BATCH = 1 << 20
"""Numbers that a state is updated with at a time."""


def parquet_states(
    empty: Any, source: Any, columns: Mapping[str, str | None], rows: int | None, engine: Engine | None
) -> Iterator[Any]:
    """The states of parts of files, in the order of their rows."""
    paths = [path.resolve() for path in _paths(source)]
    run = mapping(engine)
    lengths = list(run(partial(_length, columns), paths))
    parts, before = [], 0
    for path, (length, width) in zip(paths, lengths, strict=True):
        size = rows or max(1, NUMBERS // width)
        parts += [(path, start, min(start + size, length), before, width) for start in range(0, length, size)]
        before += length
    if not parts:
        raise InputError(f"{paths[0].parent.name if len(paths) > 1 else paths[0].name} has no rows")
    return run(partial(_state_of_rows, empty, columns), *zip(*parts, strict=True))


def _paths(source: Any) -> list[Path]:
    """The files that a path or several name."""
    if isinstance(source, str | PathLike):
        path = Path(source)
        check_exists(path)
        polars_of(Path("x.parquet"))
        found = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
        if not found:
            raise InputError(f"the folder {str(path)!r} holds no .parquet files")
        if path.suffix.lower() != ".parquet" and not path.is_dir():
            raise InputError(f"{path.name}: stream reads .parquet files, folders of them, and collections of Dask")
        return found
    if isinstance(source, Sequence) and source and all(isinstance(item, str | PathLike) for item in source):
        return [path for item in source for path in _paths(item)]
    raise InputError(
        "source must be a Parquet file, a folder, a list of those, a Dask data frame or a tuple of Dask arrays; "
        f"got a {type(source).__name__}"
    )


def _length(columns: Mapping[str, str | None], path: Path) -> tuple[int, int]:
    """Rows of a file, and columns that are needed."""
    check_exists(path)
    return parquet_length(path, partial(needed_columns, **columns))  # type: ignore[arg-type]


def _state_of_rows(
    empty: Any, columns: Mapping[str, str | None], path: Path, start: int, stop: int, before: int, width: int
) -> Any:
    """What a task does: the rows of a file from start to stop, of which so many in other files come before."""
    check_exists(path)
    batches = Batches(path, rows=max(1, BATCH // width), **columns)  # type: ignore[arg-type]
    total = empty
    for batch in batches.between(start, stop):
        total = updated(total, batch, before + batch.start)
    return total


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


COLUMNS = ("y_true", "y_pred", "predict", "sample_weight", "pos_label")


def stream(
    source: Any,
    *estimators: Any,
    engine: Engine | None = None,
    rows: int | None = None,
    like: tuple[ArrayLike, ArrayLike] | None = None,
    **columns: str | None,
) -> Any:
    """The estimate of one estimator, or those of several in one pass, from data that need not fit into memory.

    ``source`` is a Parquet file, a folder or a list of those; a Dask data frame; or a tuple of Dask arrays,
    ``(y_true, y_pred)`` or with weights after them. Columns of files and frames are named by ``y_true``, ``y_pred``,
    ``predict``, ``sample_weight`` and ``pos_label``, as for :func:`calibrant.io.read`. A task is at most ``rows`` rows of a
    file (by default some 64 MB of numbers), or a partition; it gives back the state of its rows (:func:`calibrant.state`),
    and states are merged in the order of the rows. Workers must see files under the same names. Estimators need a
    state; ``like`` is for what they would take from the data.

    >>> import polars, tempfile
    >>> from calibrant import ECE, Brier
    >>> folder = tempfile.TemporaryDirectory()
    >>> polars.DataFrame({"y": [1, 0, 1, 0], "p": [0.9, 0.2, 0.7, 0.4]}).write_parquet(f"{folder.name}/part-0.parquet")
    >>> polars.DataFrame({"y": [1], "p": [0.6]}).write_parquet(f"{folder.name}/part-1.parquet")
    >>> [round(found.value, 3) for found in stream(folder.name, ECE(), Brier(), y_true="y", y_pred="p")]
    [0.28, 0.092]
    >>> folder.cleanup()
    """
    unknown = [name for name in columns if name not in COLUMNS]
    if unknown:
        raise InputError(f"{unknown[0]!r} names no column: stream takes {', '.join(COLUMNS)}")
    if rows is not None:
        check_count(rows, "rows")
    empty = state(*estimators, like=like)
    if is_collection(source):
        if rows is not None:
            raise InputError(
                "rows is for files: a task of a Dask collection is a partition, see repartition and rechunk"
            )
        states = collection_states(empty, source, columns, engine)
    else:
        states = parquet_states(empty, source, columns, rows, engine)
    return reduce(lambda a, b: a.merge(b), states, empty).finalize()
