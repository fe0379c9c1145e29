"""Files and pipes of any length as small data frames, one after the other."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from time import monotonic
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from calibrant._validate import InputError, check_names_once
from calibrant.io.columns import Columns, Frame, FramePart
from calibrant.io.records import BadLines, CsvLines, Format, JsonLines, Needed, split_header

if TYPE_CHECKING:
    import polars

BLOCK = 1 << 22
"""Bytes of a block of a file, roughly."""

MAX_LINE_BYTES = 1 << 26
"""Bytes that a line may have."""

READ = 1 << 16
"""Bytes that are asked of a pipe at a time: what it holds at most."""


def whole_lines(handle: IO[bytes], *, rows: int, flush: float | None, is_csv: bool | None) -> Iterator[bytes]:
    """Blocks of whole lines, each with its last line feed where it has one.

    A block ends when it has ``rows`` lines or some megabytes, whichever comes first, and what has arrived is given out once its
    first line is ``flush`` seconds old; with ``None`` there is no clock and no thread. Line feeds between quotes
    do not end a line of CSV; ``None`` finds out.

    >>> from io import BytesIO
    >>> list(whole_lines(BytesIO(b"a\\nb\\nc"), rows=100, flush=None, is_csv=True))
    [b'a\\nb\\n', b'c']
    """
    parts: list[bytes] = []
    n_lines, size, deadline = 0, 0, None
    for chunk in _chunks(handle) if flush is None else _timed(handle, flush):
        if chunk:
            parts.append(chunk)
            n_lines, size = n_lines + chunk.count(b"\n"), size + len(chunk)
            if deadline is None and n_lines and flush is not None:
                deadline = monotonic() + flush
        is_late = deadline is not None and monotonic() >= deadline
        if n_lines >= rows or size >= BLOCK or is_late:
            joined = b"".join(parts)
            is_csv = looks_like_csv(joined) if is_csv is None else is_csv
            text, rest = _cut(joined, is_csv)
            if len(rest) > MAX_LINE_BYTES:
                raise InputError(f"a line has more than {MAX_LINE_BYTES:,} bytes: is a quote not closed?")
            if text:
                yield text
            parts = [rest] if rest else []
            n_lines, size, deadline = 0, len(rest) if len(rest) < BLOCK else 0, None
    if last := b"".join(parts):
        text, rest = _cut(last, quoted=False)
        yield from (part for part in (text, rest) if part)


def looks_like_csv(text: bytes) -> bool:
    """Whether a text does not begin with a JSON object."""
    return not text.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")


def _cut(text: bytes, quoted: bool) -> tuple[bytes, bytes]:
    """Whole lines, and the beginning of the next."""
    end = text.rfind(b"\n") + 1
    while quoted and end and text.count(b'"', 0, end) % 2:
        end = text.rfind(b"\n", 0, end - 1) + 1
    return text[:end], text[end:]


def _chunks(handle: IO[bytes]) -> Iterator[bytes]:
    while chunk := handle.read(BLOCK):
        yield chunk


def _timed(handle: IO[bytes], flush: float) -> Iterator[bytes]:
    """What arrives, and nothing whenever nothing has arrived for a while.

    A thread waits for the pipe: there is no other way to wait for a while that works for all handles and systems. It
    ends with the pipe, or with the program.
    """
    arrived: Queue[bytes | BaseException] = Queue(maxsize=64)
    Thread(target=_pump, args=(handle, arrived), daemon=True).start()
    while True:
        try:
            chunk = arrived.get(timeout=max(flush / 4, 1e-3))
        except Empty:
            yield b""
            continue
        if isinstance(chunk, BaseException):
            raise chunk
        if not chunk:
            return
        yield chunk


def _pump(handle: IO[bytes], arrived: "Queue[bytes | BaseException]") -> None:
    read = getattr(handle, "read1", handle.read)
    try:
        while chunk := read(READ):
            arrived.put(chunk)
        arrived.put(b"")
    except Exception as error:  # whatever it is, it belongs to the reader
        arrived.put(error)


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


def part_of(name: str, columns: Mapping[str, Any]) -> FramePart:
    """Columns that are in memory; messages call them by a name."""
    import polars as pl

    return FramePart(Path(name), pl.DataFrame(dict(columns)))


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

    return FramePart(path, pl.DataFrame(schema=list(dict.fromkeys(names))))


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
