"""Which files are meant, and what they are read as: by their names, their content, or what is said."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from calibrant._validate import InputError, check_is, did_you_mean
from calibrant._wording import said
from calibrant.io.columns import ENDINGS, Archive, Columns, Frame, check_exists
from calibrant.io.layout import PLAIN, FileLayout, Utf8

if TYPE_CHECKING:
    import polars

Source: TypeAlias = str | PathLike[str] | Sequence[str | PathLike[str]]
"""A file, a pattern of names, or several of them, which are parts of one data set."""

READABLE = {".tsv": ".csv", ".tab": ".csv", ".json": ".json", ".eval": ".eval", ".xlsx": ".xlsx"}
"""What else can be read, and as what."""

PACKED_ENDINGS = (".gz", ".bz2", ".xz")
"""What follows the ending of packed files."""


def open_columns(source: Source, layout: FileLayout = PLAIN) -> Columns:
    """The columns of a file, or of several that are parts of one, by their ending, their content or what is said."""
    paths = parts_of(source)
    tables = [_opened(path, layout) for path in paths]
    return tables[0] if len(tables) == 1 else Shards(tables)


def parts_of(source: Source) -> list[Path]:
    """The files of a list, of a pattern such as ``part-*.csv``, or of one name."""
    check_is(source, (str, PathLike, list, tuple), "path", "a path, or a list of paths")
    if isinstance(source, list | tuple):
        if not source:
            raise InputError("path is an empty list: name a file")
        return [path for part in source for path in parts_of(part)]
    path = Path(source)  # type: ignore[arg-type]  # as was checked
    if not any(sign in path.name for sign in "*?[") or path.exists():
        return [path]
    found = sorted(path.parent.glob(path.name))
    if not found:
        raise InputError(f"no file is called like {str(path)!r}")
    return found


def _opened(path: Path, layout: FileLayout) -> Columns:
    check_exists(path)
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a folder: name the files in it, as {str(path / '*.csv')!r}")
    kind = kind_of(path, layout)
    if kind == ".npz":
        return Archive(path)
    return Frame(path, kind, layout)


def kind_of(path: Path, layout: FileLayout) -> str:
    """What a file is read as: what is said, what its ending says, or what it begins with."""
    if layout.format is not None:
        if f".{layout.format}" not in (*ENDINGS, *READABLE):
            known = [ending[1:] for ending in (*ENDINGS, *READABLE)]
            raise InputError(f"{said('format')} {layout.format!r} is not known{did_you_mean(layout.format, known)}")
        return READABLE.get(f".{layout.format}", f".{layout.format}")
    endings = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in PACKED_ENDINGS]
    ending = endings[-1] if endings else ""
    if ending in READABLE or ending in ENDINGS:
        return READABLE.get(ending, ending)
    with path.open("rb") as handle:
        return f".{sniffed(Utf8(handle, layout, path.name).read(SNIFFED_BYTES), path.name)}"


SNIFFED_BYTES = 4096
"""Bytes that tell the format."""


def sniffed(head: bytes, source: str) -> str:
    """The format that the first bytes show.

    >>> sniffed(b"y,p\\n1,0.9", "x"), sniffed(b' {"y": 1}\\n', "x"), sniffed(b"PAR1...", "x"), sniffed(b"PK\\x03\\x04...", "x")
    ('csv', 'jsonl', 'parquet', 'npz')
    """
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start:
        raise InputError(f"nothing came through {source}" if source in PIPES else f"{source} is empty")
    if head.startswith(b"PK\x03\x04"):
        is_log = b"_journal/" in head or b"header.json" in head or b"samples/" in head
        return "eval" if is_log else "xlsx" if b"[Content_Types]" in head or b"xl/" in head else "npz"
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith(b"["):
        return "json"
    if start.startswith(b"{"):
        return "jsonl" if start.partition(b"\n")[0].rstrip().endswith(b"}") else "json"
    if b"\0" in head:
        raise InputError(
            f"{source} is of no known format: say which with {said('format', 'csv')}, jsonl, json, parquet, npz or xlsx"
        )
    return "csv"


PIPES = ("the standard input", "the pipe")
"""What messages call what is no file."""


class Shards(Frame):
    """Several files as one, the rows of each after those of the one before."""

    def __init__(self, tables: Sequence[Columns]) -> None:
        first = tables[0]
        paths = [table.path.resolve() for table in tables]
        if twice := [path.name for i, path in enumerate(paths) if path in paths[:i]]:
            raise InputError(f"{twice[0]} is named twice, and its rows would count twice: give each part once")
        for other in tables[1:]:
            if set(other.names) != set(first.names):
                odd = sorted(set(other.names) ^ set(first.names))[0]
                raise InputError(
                    f"parts of one data set have the same columns: {odd!r} is not in {first.path.name} and {other.path.name} both"
                )
        Columns.__init__(self, first.path, first.names)
        self.tables, self.kind = tables, ".parquet"
        ends = f"{first.path.name} to {tables[-1].path.name}"
        self.notes = {
            **{note: None for table in tables for note in table.notes},
            f"{len(tables)} files are read as one: {ends}": None,
        }

    def scan(self, *, as_text: bool = False) -> "polars.LazyFrame":
        """All rows."""
        return self.collected(self.names).lazy()

    def collected(self, names: Sequence[str]) -> "polars.DataFrame":
        """These columns of all files."""
        import polars as pl

        if odd := [table.path.name for table in self.tables if not isinstance(table, Frame)]:
            raise InputError(f"{odd[0]}: parts of one data set are text, JSON, Excel or Parquet: read NPZ by itself")
        frames = [table.collected(names) for table in self.tables if isinstance(table, Frame)]
        return self.reading(lambda: pl.concat(frames, how="vertical_relaxed"))
