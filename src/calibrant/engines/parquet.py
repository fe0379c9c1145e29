"""States of Parquet files, some rows of a file being a task."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from calibrant._columns import check_exists, check_polars
from calibrant._parts import parquet_length
from calibrant._tasks import mapping
from calibrant._validate import InputError
from calibrant.batches import Batches, needed_columns
from calibrant.engines.updates import updated
from calibrant.typing import Engine

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
        check_polars(Path("x.parquet"))
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
