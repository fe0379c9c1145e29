"""Text of any layout as ordinary text: unpacked, in UTF-8, with commas between values."""

import bz2
import codecs
import csv
import gzip
import lzma
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from io import StringIO
from typing import IO, Any

from calibrant._validate import InputError, check_is
from calibrant._wording import said
from calibrant.io.lines import csv_rows

HEAD_BYTES = 4
"""Bytes that tell how a file is packed, or that it is UTF-16."""

SAMPLE_LINES = 100
"""Lines by which separators are told apart."""

SEPARATORS = (",", ";", "\t", "|")
"""What stands between values, the usual one first."""

NAMES = {"\t": "tabs", ";": "semicolons", "|": "bars", ",": "commas"}
"""What notes call them."""

PACKED: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": lambda handle: gzip.GzipFile(fileobj=handle),
    b"BZh": bz2.BZ2File,
    b"\xfd7zX": lzma.LZMAFile,
}
"""How files that begin so are unpacked."""

WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""What UTF-16 begins with."""


@dataclass(frozen=True)
class FileLayout:
    """How a file is written, where it does not say so itself: its format, separator, encoding and decimal sign.

    >>> FileLayout(sep="tab").sep
    '\\t'
    """

    format: str | None = None
    sep: str | None = None
    encoding: str | None = None
    decimal: str | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            check_is(value, (str, type(None)), said(name), "a text")
        if self.sep in ("tab", "\\t"):
            object.__setattr__(self, "sep", "\t")
        if self.sep is not None and (len(self.sep) != 1 or self.sep in '"\n\r'):
            raise InputError(f"{said('sep')} must be one sign, such as ';' or tab; got {self.sep!r}")
        if self.decimal not in (None, ",", "."):
            raise InputError(f"{said('decimal')} must be , or .; got {self.decimal!r}")
        try:
            "".encode(self.encoding or "utf-8")
        except LookupError as error:
            known = "known are utf-8, latin-1, cp1252, utf-16 and more"
            raise InputError(f"{said('encoding')} {self.encoding!r} is not known; {known}") from error


PLAIN = FileLayout()
"""As the file itself says."""


class Utf8:
    """The bytes of a handle unpacked and in UTF-8, with :meth:`read` alone; what they are is found out when they are read.

    >>> from io import BytesIO
    >>> Utf8(BytesIO(gzip.compress("größe".encode("utf-16"))), PLAIN, "x").read().decode()
    'größe'
    """

    def __init__(self, handle: IO[bytes], layout: FileLayout, name: str) -> None:
        self.layout, self.name = layout, name
        self.source: Any = _Replayed(handle)
        self.decoder: codecs.IncrementalDecoder | None = None
        self.is_plain: bool | None = None

    def read(self, size: int = -1) -> bytes:
        """Some bytes; none at the end."""
        try:
            if self.is_plain is None:
                self._begin()
            raw: bytes = self.source.read(size)
            text = raw if self.decoder is None else self._decoded(raw)
            while raw and not text:  # half a character
                raw = self.source.read(size)
                text = self._decoded(raw)
            return text
        except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
            raise InputError(f"{self.name} is damaged, and cannot be unpacked: {error}") from error

    def _begin(self) -> None:
        head = self.source.peek()
        for mark, opened in PACKED.items():
            if head.startswith(mark):
                self.source = _Replayed(opened(self.source))
        is_packed, head = self.source.peek() is not head, self.source.peek()
        encoding = self.layout.encoding or ("utf-16" if head.startswith(WIDE) else "utf-8")
        is_utf8 = codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")
        self.decoder = None if is_utf8 else codecs.getincrementaldecoder(encoding)()
        self.is_plain = is_utf8 and not is_packed

    def _decoded(self, raw: bytes) -> bytes:
        assert self.decoder is not None
        try:
            return self.decoder.decode(raw, final=not raw).encode()
        except UnicodeDecodeError as error:
            raise InputError(f"{self.name} is no {error.encoding} text: {other_encoding()}") from error


def other_encoding() -> str:
    """What to do about text that is not in the encoding that it should be in."""
    return f"save it as UTF-8, or say how it is written, as {said('encoding', 'latin-1')} or cp1252"


class _Replayed:
    """A handle whose first bytes can be looked at before they are read."""

    def __init__(self, handle: Any) -> None:
        self.handle_read: Callable[[int], bytes] = getattr(handle, "read1", handle.read)
        self.head: bytes | None = None

    def peek(self) -> bytes:
        """Some bytes, at least four where there are as many."""
        if self.head is None:
            self.head = b""
            while len(self.head) < HEAD_BYTES and (more := self.handle_read(1 << 16)):
                self.head += more
        return self.head

    def read(self, size: int = -1) -> bytes:
        """The first bytes again, then the others."""
        if not self.peek():
            return self.handle_read(size)
        cut = len(self.head or b"") if size < 0 else size
        found, self.head = (self.head or b"")[:cut], (self.head or b"")[cut:]
        return found


@dataclass
class Commas:
    """Blocks of whole lines of text, with commas between values where something else is; the first block decides.

    Lines stay where they were, and so do their faults.

    >>> Commas.of(b"y;p;what\\n1;0,5;a,b\\n", PLAIN, "x.csv")(b"1;0,5;a,b\\n")
    b'1,"0,5","a,b"\\n'
    """

    sep: str
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, text: bytes, layout: FileLayout, name: str) -> "Commas":
        """By what is said, or by what the first lines have in common; refused where that may be two things."""
        first = text.removeprefix(codecs.BOM_UTF8).partition(b"\n")[0].rstrip(b"\r")
        if layout.sep is not None:
            return cls(layout.sep)
        if _says_separator(first):
            return cls(first[4:].decode(), [f"{name} says itself that {first[4:].decode()!r} separates values"])
        if all(sep.encode() not in first for sep in SEPARATORS[1:]):
            return cls(",")
        sample = b"\n".join(text.split(b"\n")[:SAMPLE_LINES])
        fitting = [sep for sep in SEPARATORS if _fits(sample, sep)]
        if len(fitting) > 1:
            these = " or ".join(said("sep", "tab" if sep == "\t" else sep) for sep in fitting)
            raise InputError(
                f"{name} can be read with {' or '.join(NAMES[sep] for sep in fitting)} between values: say {these}"
            )
        sep = fitting[0] if fitting else max(SEPARATORS, key=lambda sep: first.count(sep.encode()))
        return cls(sep, [] if sep == "," else [f"{name} is read with {NAMES[sep]} between values"])

    def __call__(self, text: bytes) -> bytes:
        """The same lines."""
        start = text[:10].removeprefix(codecs.BOM_UTF8)  # blocks are large: nothing but this much is copied
        line = start.partition(b"\n")[0]
        if b"\n" in start and _says_separator(line.rstrip(b"\r")):
            text = text[text.index(b"\n") :]
        if self.sep == ",":
            return text
        sep = self.sep.encode()
        if b'"' in text or b"," in text or len(sep) > 1:
            return self._rewritten(text)
        return text.replace(sep, b",")

    def _rewritten(self, text: bytes) -> bytes:
        parts, line = [], 0
        for place, row, raw in csv_rows(text, self.sep):
            parts += [
                "\n" * (place - line),
                raw.decode(errors="surrogateescape") + "\n" if isinstance(row, str) else _joined(row),
            ]
            line = place + raw.count(b"\n") + 1
        return "".join(parts).encode(errors="surrogateescape")


def _says_separator(line: bytes) -> bool:
    """Whether this is the line by which spreadsheets are told."""
    return line[:4].lower() == b"sep=" and len(line) == 5


def _joined(row: list[str]) -> str:
    out = StringIO()
    csv.writer(out, lineterminator="\n").writerow(row)
    return out.getvalue()


def _fits(sample: bytes, sep: str) -> bool:
    """Whether all lines have equally many values, and more than one."""
    lines = [line for line in sample.decode(errors="replace").split("\n") if line.strip("\r")]
    try:
        widths = {len(row) for row in csv.reader(lines, delimiter=sep) if row}
    except csv.Error:  # a line that ends within a line
        return False
    return len(widths) == 1 and widths != {1}
