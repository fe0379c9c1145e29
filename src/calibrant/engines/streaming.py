"""Estimates from data that are larger than memory: each task reads its own rows and gives back a small state."""

from functools import reduce
from typing import Any

from calibrant._validate import InputError, check_count
from calibrant.engines.collections import collection_states, is_collection
from calibrant.engines.parquet import parquet_states
from calibrant.streams.choose import state
from calibrant.typing import ArrayLike, Engine

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
