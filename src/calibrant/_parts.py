"""Files and pipes of any length as small data frames, one after the other."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from calibrant._columns import Columns, Frame, Part
from calibrant._lines import looks_like_csv, whole_lines
from calibrant._records import BadLines, CsvLines, Format, JsonLines, Needed, split_header
from calibrant._validate import InputError, check_names_once

if TYPE_CHECKING:
    import polars

Wish: TypeAlias = Callable[[Columns], Needed]
"""From the columns that a file has to those that are needed; refuses where one is missing."""

Frames: TypeAlias = Iterator["polars.DataFrame"]
Types: TypeAlias = dict[str, Any]

PATIENCE = 1000
"""JSON records without a needed field before the first good one, until the name of the field is thought to be wrong."""

PARQUET_ROWS = 1 << 20
"""Rows of Parquet that are read together: about a row group, which must be unpacked as a whole."""


def parquet_parts(path: Path, wish: Wish, start: int = 0, stop: int | None = None) -> Frames:
    """The needed columns of a Parquet file, of all rows or of those from start to stop."""
    from polars.exceptions import PolarsError

    table = Frame(path, ".parquet")
    names = wish(table).names
    while stop is None or start < stop:
        rows = PARQUET_ROWS if stop is None else min(PARQUET_ROWS, stop - start)
        try:
            frame = table.lazy.slice(start, rows).select(names).collect()
        except PolarsError as error:
            raise InputError(f"{path.name} cannot be read from row {start:,} on: {error}") from error
        if not len(frame):
            return
        yield frame
        start += len(frame)


def parquet_length(path: Path, wish: Wish) -> tuple[int, int]:
    """How many rows a Parquet file has, and how many of its columns are needed, without reading any."""
    from polars import len as length

    table = Frame(path, ".parquet")
    width = len(wish(table).names)
    return int(table.reading(lambda: table.lazy.select(length()).collect()).item()), width


def part_of(name: str, columns: Mapping[str, Any]) -> Part:
    """Columns that are in memory; messages call them by a name."""
    import polars as pl

    return Part(Path(name), pl.DataFrame(dict(columns)))


class TextParts:
    """The rows of lines of JSON or CSV, a block of lines at a time; lines that cannot be used are counted."""

    def __init__(self, path: Path, wish: Wish, bad: BadLines, *, strict: bool) -> None:
        self.path, self.wish, self.bad, self.strict = path, wish, bad, strict
        self.line, self.is_begun = 1, False
        self.header = b""
        self.format: Format = JsonLines()
        self.needed: Needed | None = None
        self.types: Types = {}

    def frames(self, handle: IO[bytes], *, is_csv: bool | None, rows: int, flush: float | None) -> "Frames":
        """Frames of the good rows; none is empty."""
        for text in whole_lines(handle, rows=rows, flush=flush, is_csv=is_csv):
            is_csv = looks_like_csv(text) if is_csv is None else is_csv
            body = text if self.is_begun else self._begin(text, is_csv)
            frame = self._frame(body)
            self.line += body.count(b"\n")
            if frame is not None and len(frame):
                yield frame

    def _begin(self, text: bytes, is_csv: bool) -> bytes:
        """The rest of the first block: a CSV begins with names."""
        self.is_begun = True
        if not is_csv:
            return text.removeprefix(b"\xef\xbb\xbf")
        names, self.header, rest = split_header(text)
        check_names_once(names, self.path.name)
        self.format, self.line = CsvLines(tuple(names)), 1 + self.header.count(b"\n")
        self.needed = self.wish(_named(self.path, names))
        return rest

    def _frame(self, text: bytes) -> "polars.DataFrame | None":
        """The good rows of a block."""
        if text.isspace() or not text:
            return None
        before = self.bad.count
        if self.needed is None:
            self.needed = self._wished(text)
        if self.needed is None:
            return None
        frame = None if self._is_ambiguous(text, self.needed) else self._parsed(text, self.needed)
        if frame is None:
            text = self.format.sift(text, self.needed, self.line, self.bad)
            frame = self._parsed(text, self.needed) if text else None
            if text and frame is None:
                raise InputError(
                    f"{self.path.name} cannot be read near line {self.line}: values of {self.needed.names} mix types"
                )
        if self.strict and self.bad.count > before:
            raise InputError(f"{self.path.name}: {self.bad}")
        return frame

    def _is_ambiguous(self, text: bytes, needed: Needed) -> bool:
        """Whether a line has a needed field twice."""
        return isinstance(self.format, JsonLines) and self.format.repeated(text, needed.names) is not None

    def _wished(self, text: bytes) -> Needed | None:
        """What is needed of JSON records, once some have it all."""
        names = self.format.names(text)
        try:
            return self.wish(_named(self.path, names))
        except InputError as error:
            if self.strict or self.bad.count >= PATIENCE:
                raise
            for place, _, record in self.format.records(text):
                self.bad.add(self.line + place, record if isinstance(record, str) else f"of no use: {error}")
            return None

    def _parsed(self, text: bytes, needed: Needed) -> "polars.DataFrame | None":
        """The needed columns, by the types of the last block, else by those of this one; nothing where rows are bad."""
        from polars.exceptions import PolarsError

        for types in (self.types, None) if self.types else (None,):
            try:
                frame = self._read(text, types, needed)
            except PolarsError:
                continue
            if all(_is_usable(frame[name], name in needed.numbers) for name in needed.names):
                self.types = _types(frame, needed)
                return frame
        return None

    def _read(self, text: bytes, types: "Types | None", needed: Needed) -> "polars.DataFrame":
        import polars as pl

        if isinstance(self.format, JsonLines):
            frame = pl.read_ndjson(text, schema=types, infer_schema_length=None)
        else:
            frame = pl.read_csv(
                self.header + text,
                columns=list(needed.names),
                infer_schema=types is None,
                infer_schema_length=None,
                schema_overrides=types,
            )
        return frame.select(needed.names)


def _named(path: Path, names: list[str]) -> Columns:
    """Columns of which the names alone are known yet."""
    import polars as pl

    return Part(path, pl.DataFrame(schema=list(dict.fromkeys(names))))


def _is_usable(column: "polars.Series", is_number: bool) -> bool:
    """Whether all values are there, are numbers where they must be, and are finite where they are numbers."""
    if column.null_count() or column.dtype.is_nested():
        return False
    if column.dtype.is_float():
        return bool(column.is_finite().all())
    return not is_number or column.dtype.is_numeric()


def _types(frame: "polars.DataFrame", needed: Needed) -> "Types":
    """Types to read the next block by; whole numbers may be followed by others."""
    from polars import Float64

    return {name: Float64 if name in needed.numbers else frame.schema[name] for name in needed.names}
