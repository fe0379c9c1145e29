"""Files and pipes as blocks of whole lines, whatever their length and however slowly they come."""

import csv
from collections.abc import Iterator
from queue import Empty, Queue
from threading import Thread
from time import monotonic
from typing import Protocol

import numpy as np

from calibrant._validate import InputError

CARRIAGE_RETURN = "a carriage return within a line (end lines with line feeds, as tr '\\r' '\\n' does)"
"""What is wrong with files of long ago, and with some that were put together from others."""


class Readable(Protocol):
    """What gives bytes."""

    def read(self, size: int = -1, /) -> bytes:
        """Some of them; none at the end."""


BLOCK = 1 << 22
"""Bytes of a block of a file, roughly."""

MAX_LINE_BYTES = 1 << 26
"""Bytes that a line may have."""

READ = 1 << 16
"""Bytes that are asked of a pipe at a time: what it holds at most."""


def whole_lines(handle: Readable, *, rows: int, flush: float | None, is_csv: bool | None) -> Iterator[bytes]:
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
            n_lines, size = n_lines + line_feeds(chunk), size + len(chunk)
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


def line_feeds(text: bytes) -> int:
    r"""How many there are; where they are many, NumPy counts them eight times as fast as ``bytes``.

    >>> line_feeds(b"a\nb\n")
    2
    """
    return int(np.count_nonzero(np.frombuffer(text, dtype=np.uint8) == ord("\n")))


def looks_like_csv(text: bytes) -> bool:
    """Whether a text does not begin with a JSON object."""
    return not text.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")


def csv_rows(text: bytes, sep: str = ",") -> Iterator[tuple[int, list[str] | str, bytes]]:
    """Rows of CSV that are not blank: the place, the values or what is wrong with them, and the text."""
    lines = text.split(b"\n")
    if b'"' not in text:
        for place, line in enumerate(lines):
            if line := line.removesuffix(b"\r"):
                row = CARRIAGE_RETURN if b"\r" in line else line.decode(errors="surrogateescape").split(sep)
                yield place, row, line
        return
    reader, start = (
        csv.reader((line.decode(errors="surrogateescape") + "\n" for line in lines), delimiter=sep, strict=True),
        0,
    )
    while True:
        found: list[str] | str | None
        try:
            found = next(reader, None)
        except csv.Error as error:
            found = str(error)
        if found is None:
            return
        raw, place, start = b"\n".join(lines[start : reader.line_num]), start, reader.line_num
        if found:
            yield place, found, raw


def _cut(text: bytes, quoted: bool) -> tuple[bytes, bytes]:
    """Whole lines, and the beginning of the next."""
    end = text.rfind(b"\n") + 1
    while quoted and end and text.count(b'"', 0, end) % 2:
        end = text.rfind(b"\n", 0, end - 1) + 1
    return text[:end], text[end:]


def _chunks(handle: Readable) -> Iterator[bytes]:
    while chunk := handle.read(BLOCK):
        yield chunk


def _timed(handle: Readable, flush: float) -> Iterator[bytes]:
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


def _pump(handle: Readable, arrived: "Queue[bytes | BaseException]") -> None:
    try:
        read = getattr(handle, "read1", handle.read)
        while chunk := read(READ):
            arrived.put(chunk)
        arrived.put(b"")
    except Exception as error:  # whatever it is, it belongs to the reader
        arrived.put(error)
