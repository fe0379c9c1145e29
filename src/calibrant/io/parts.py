"""Files and pipes of any length as small data frames, one after the other."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias

from calibrant._validate import InputError, check_names_once
from calibrant.io.columns import Columns, Frame, FramePart, is_too_long
from calibrant.io.layout import PLAIN, Commas, FileLayout, Utf8
from calibrant.io.lines import line_feeds, looks_like_csv, whole_lines
from calibrant.io.records import BadLines, CsvLines, Format, JsonLines, Needed, check_text, split_header
from calibrant.io.written_numbers import tidied

if TYPE_CHECKING:
    import polars

Wish: TypeAlias = Callable[[Columns], Needed]
"""From the columns that a file has to those that are needed; refuses where one is missing."""

Types: TypeAlias = dict[str, Any]

PATIENCE = 1000
"""JSON records without a needed field before the first good one, until the name of the field is thought to be wrong."""

PARQUET_ROWS = 1 << 20
"""Rows of Parquet that are read together: about a row group, which must be unpacked as a whole."""


class Part(NamedTuple):
    """Some rows, and the line of each in its file; of Parquet the row, from 1."""

    frame: "polars.DataFrame"
    lines: Sequence[int]


Parts: TypeAlias = Iterator[Part]


def parquet_parts(path: Path, wish: Wish, start: int = 0, stop: int | None = None) -> Parts:
    """The needed columns of a Parquet file, of all rows or of those from start to stop."""
    table = Frame(path, ".parquet")
    names = wish(table).names
    while stop is None or start < stop:
        rows = PARQUET_ROWS if stop is None else min(PARQUET_ROWS, stop - start)
        frame = table.reading(table.lazy.slice(start, rows).select(names).collect)
        if not len(frame):
            return
        yield Part(frame, range(start + 1, start + 1 + len(frame)))
        start += len(frame)


def parquet_length(path: Path, wish: Wish) -> tuple[int, int]:
    """How many rows a Parquet file has, and how many of its columns are needed, without reading any."""
    from polars import len as length

    table = Frame(path, ".parquet")
    width = len(wish(table).names)
    return int(table.reading(lambda: table.lazy.select(length()).collect()).item()), width


def part_of(name: str, columns: Mapping[str, Any]) -> FramePart:
    """Columns that are in memory; messages call them by a name."""
    import polars as pl

    return FramePart(Path(name), pl.DataFrame(dict(columns)))


class TextParts:
    """The rows of lines of JSON or CSV, a block of lines at a time; lines that cannot be used are counted."""

    def __init__(self, path: Path, wish: Wish, bad: BadLines, layout: FileLayout = PLAIN) -> None:
        self.path, self.wish, self.bad, self.layout = path, wish, bad, layout
        self.commas = Commas(",")
        self.line, self.is_begun = 1, False
        self.format: Format = JsonLines()
        self.needed: Needed | None = None
        self.types: Types = {}
        self.notes: dict[str, None] = {}

    def parts(self, handle: IO[bytes], *, is_csv: bool | None, rows: int, flush: float | None) -> Parts:
        """The good rows of each block; there may be none, where others were counted."""
        source = Utf8(handle, self.layout, self.path.name)
        for text in whole_lines(source, rows=rows, flush=flush, is_csv=is_csv):
            if not self.is_begun:
                check_text(text, self.path.name)
                text = self._begin(text, looks_like_csv(text) if is_csv is None else is_csv)
            else:
                text = self.commas(text)
            if text and not text.isspace():
                yield self._part(text)
            self.line += line_feeds(text)

    def _begin(self, text: bytes, is_csv: bool) -> bytes:
        """The rest of the first block: a CSV begins with names."""
        self.is_begun = True
        if not is_csv:
            return text.removeprefix(b"\xef\xbb\xbf")
        self.commas = Commas.of(text, self.layout, self.path.name)
        names, rest = split_header(text := self.commas(text), self.path.name)
        check_names_once(names, self.path.name)
        self.format, self.line = CsvLines(tuple(names)), 1 + line_feeds(text) - line_feeds(rest)
        self.needed = self.wish(_named(self.path, names))
        return rest

    def _part(self, text: bytes) -> Part:
        """The good rows of a block."""
        if self.needed is None:
            self.needed = self._wished(text)
        if self.needed is None:
            return Part(_no_rows(()), ())
        if self.format.is_plain(text, self.needed.names):
            frame = self._parsed(self.format.head + text, self.needed)
            if frame is not None and len(frame) == (n := line_feeds(text) + (not text.endswith(b"\n"))):
                return Part(frame, range(self.line, self.line + n))
        text, lines = self.format.sift(text, self.needed, self.line, self.bad)
        frame = self._parsed(text, self.needed) if text else _no_rows(self.needed.names)
        if frame is None or len(frame) != len(lines):
            raise InputError(
                f"{self.path.name} cannot be read near line {self.line}: values of {self.needed.names} mix types"
            )
        return Part(frame, lines)

    def _wished(self, text: bytes) -> Needed | None:
        """What is needed of JSON records, once some have it all."""
        names = self.format.names(text)
        try:
            return self.wish(_named(self.path, names))
        except InputError as error:
            if self.bad.count >= PATIENCE:
                raise
            for place, record in self.format.records(text):
                self.bad.add(self.line + place, record if isinstance(record, str) else f"of no use: {error}")
            return None

    def _parsed(self, text: bytes, needed: Needed) -> "polars.DataFrame | None":
        """The needed columns, by the types of the last block, else by those of this one; nothing where rows are bad."""
        from polars.exceptions import PolarsError

        for types in (self.types, None) if self.types else (None,):
            try:
                frame = self._tidied(self._read(text, types, needed), needed)
            except (PolarsError, RuntimeError):  # the latter of lines of JSON in polars 1.10
                continue
            if all(_is_usable(frame[name], name in needed.numbers) for name in needed.names):
                self.types = _types(frame, needed)
                return frame
        return None

    def _tidied(self, frame: "polars.DataFrame", needed: Needed) -> "polars.DataFrame":
        """Text that says numbers as such; a part says nothing of the whole, so that commas must be said to be decimal."""
        decimal = self.layout.decimal or "."
        text = [name for name in needed.numbers if str(frame.schema[name]) == "String"]
        return frame.with_columns([tidied(frame[name], decimal, "number", self.notes) for name in text])

    def _read(self, text: bytes, types: "Types | None", needed: Needed) -> "polars.DataFrame":
        import polars as pl

        if isinstance(self.format, JsonLines):
            return pl.read_ndjson(text, schema=types, infer_schema_length=None).select(needed.names)
        frame = pl.read_csv(
            text,
            columns=list(needed.names),
            infer_schema=types is None,
            infer_schema_length=None,
            schema_overrides=types,
        )
        return frame.select(needed.names)


def _named(path: Path, names: Sequence[str]) -> Columns:
    """Columns of which the names alone are known yet."""
    return FramePart(path, _no_rows(dict.fromkeys(names)))


def _no_rows(names: Iterable[str]) -> "polars.DataFrame":
    import polars as pl

    return pl.DataFrame(schema=list(names))


def _is_usable(column: "polars.Series", is_number: bool) -> bool:
    """Whether all values are there, are numbers where they must be, and are finite where they are numbers."""
    if column.null_count() or column.dtype.is_nested() or is_too_long(column.dtype):
        return False
    if column.dtype.is_float():
        return bool(column.is_finite().all())
    return not is_number or column.dtype.is_numeric()


def _types(frame: "polars.DataFrame", needed: Needed) -> "Types":
    """Types to read the next block by; whole numbers may be followed by others."""
    from polars import Float64

    return {name: Float64 if name in needed.numbers else frame.schema[name] for name in needed.names}
