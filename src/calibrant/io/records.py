"""Lines that hold records, and what is wrong with those that do not: JSON lines and CSV."""

import csv
import json
import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

import numpy as np

from calibrant._validate import InputError
from calibrant._wording import said
from calibrant.io.layout import other_encoding
from calibrant.io.lines import csv_rows
from calibrant.io.written_numbers import number_of
from calibrant.results import how_many

SHOWN = 5
"""Bad lines that are remembered."""

NOT_NUMBERS = ("nan", "inf", "-inf")
"""How JSON and CSV write what is no finite number."""

DEEPEST = 100
"""Lists and objects within each other that a record may have."""

LOOKED_AT = 1000
"""Lines whose fields are looked at to find names."""

NOT_MARKS = bytes(set(range(256)) - set(b",\n"))
"""All bytes but those between values and between rows."""

NOT_QUOTES_OR_MARKS = bytes(set(NOT_MARKS) - set(b'"'))
"""The same without quotes."""

QUOTE, COMMA, LINE_FEED, RETURN = b'",\n\r'
"""Letters as numbers."""

NO_TEXT = {
    b"PK\x03\x04": "a zip archive: unpack it first, unzip",
    b"\x28\xb5\x2f\xfd": "compressed by zstd: unpack it first, unzstd",
    b"PAR1": "a Parquet file: call it .parquet, or say",
    b"\x93NUMPY": "an array of NumPy: save named arrays with numpy.savez",
}
"""What files that are no UTF-8 text begin with."""


def check_text(head: bytes, name: str) -> None:
    """Refuse what does not begin as text does.

    >>> check_text(b"y,p", "x.csv")
    """
    for mark, meaning in NO_TEXT.items():
        if head.startswith(mark):
            raise InputError(f"{name} is {meaning}{' ' + said('format', 'parquet') if meaning.endswith('say') else ''}")
    if b"\0" in head:
        wide = {head[:64:2].count(0): "utf-16-be", head[1:64:2].count(0): "utf-16-le"}
        say = f", or say {said('encoding', wide[max(wide)])}" if max(wide) > 16 else ""
        raise InputError(f"{name} holds zero bytes, as no UTF-8 text does: save it as UTF-8{say}")


@dataclass(frozen=True)
class Needed:
    """Columns that every record must have, and those of them that must be numbers."""

    names: tuple[str, ...]
    numbers: frozenset[str] = frozenset()
    decimal: str | None = None


@dataclass
class BadLines:
    """Lines that could not be used: how many, and the first few with what is wrong with them.

    >>> bad = BadLines()
    >>> bad.add(7, "not JSON")
    >>> print(bad)
    1 line could not be used: line 7 is not JSON
    """

    count: int = 0
    first: list[tuple[int, str]] = field(default_factory=list)
    noun: str = "line"

    def add(self, line: int, fault: str) -> None:
        """Count one more."""
        self.count += 1
        if len(self.first) < SHOWN:
            self.first.append((line, fault))

    def __str__(self) -> str:
        named = "; ".join(f"{self.noun} {line} is {fault}" for line, fault in self.first)
        more = "; …" if self.count > len(self.first) else ""
        return f"{how_many(self.count, self.noun)} could not be used: {named}{more}"


class Format(ABC):
    """How lines hold records; ``head`` is what a fast reader wants before them."""

    head = b""

    @abstractmethod
    def names(self, text: bytes) -> list[str]:
        """The fields that records have, or some of the first."""

    @abstractmethod
    def is_plain(self, text: bytes, names: Sequence[str]) -> bool:
        """Whether a fast reader takes these fields as they are written; quick, and never yes where it would not."""

    @abstractmethod
    def records(self, text: bytes) -> Iterator[tuple[int, dict[str, Any] | str]]:
        """Of each line that is not blank its place, and the record or what is wrong with it."""

    @abstractmethod
    def written(self, records: Sequence[dict[str, Any]], needed: Needed) -> bytes:
        """Good records for a fast reader, the needed fields alone."""

    def sift(self, text: bytes, needed: Needed, first_line: int, bad: BadLines) -> tuple[bytes, list[int]]:
        """The good records alone, and the line of each; the others are counted."""
        good, lines = [], []
        for place, record in self.records(text):
            fault = record if isinstance(record, str) else fault_of(record, needed)
            if fault:
                bad.add(first_line + place, fault)
            else:
                assert isinstance(record, dict)
                good.append(record)
                lines.append(first_line + place)
        return self.written(good, needed) if good else b"", lines

    def check(
        self, text: bytes, names: Sequence[str] | None, first_line: int, source: str, *, is_doubted: bool = False
    ) -> None:
        """Refuse a text in which a record, or one of these fields, is not what is written; without names, look at all of it."""
        is_good = names is not None and not is_doubted and self.is_plain(text, names)
        for place, record in () if is_good else self.records(text):
            fault = record if isinstance(record, str) else garbled(record, list(record) if names is None else names)
            if fault:
                raise InputError(f"{source}: line {first_line + place} is {fault}")


def fault_of(record: dict[str, Any], needed: Needed) -> str:
    """What is wrong with a record; nothing where all is well.

    >>> fault_of({"y": 1, "p": "high"}, Needed(("y", "p"), frozenset({"p"})))
    "without a number 'p': 'high'"
    """
    for name in needed.names:
        value = record.get(name)
        if value is None or value == "" or (isinstance(value, str | float) and str(value).lower() in NOT_NUMBERS):
            return f"without {name!r}"
        if name in needed.numbers and not _is_number(value, needed.decimal):
            return f"without a number {name!r}: {_shortened(repr(value))}"
        if isinstance(value, dict | list):
            return f"without one value {name!r}: {_shortened(repr(value))}"
        if _is_too_long(value):
            return f"one with an integer beyond 64 bits, {name!r}: {_shortened(repr(value))}"
    return garbled(record, needed.names)


def garbled(record: dict[str, Any], names: Sequence[str]) -> str:
    """What makes fields of a record ambiguous, or not text; nothing where all is well."""
    for name in names:
        if name in getattr(record, "repeated", ()):
            return f"a record with {name!r} twice: give each field a name of its own"
        if isinstance(record.get(name), str) and not _is_text(record[name]):
            return f"without text that UTF-8 has, {name!r}: {_shortened(ascii(record[name]))}"
        if isinstance(record.get(name), int) and _is_too_long(record[name]):
            return f"one with an integer beyond 64 bits, {name!r}: {_shortened(repr(record[name]))}"
    return ""


def _is_number(value: object, decimal: str | None) -> bool:
    try:
        return not isinstance(value, bool | dict | list) and math.isfinite(number_of(value, decimal))
    except (ValueError, OverflowError):
        return False


def _is_too_long(value: object) -> bool:
    """Whether this is an integer, or the text of one, that no column of numbers holds."""
    if isinstance(value, str):
        digits = value.strip().lstrip("+-").lstrip("0")
        return len(digits) > 18 and digits.isdecimal() and (len(digits) > 19 or int(digits) >= 2**63)
    return isinstance(value, int) and value.bit_length() > 63


def _is_text(value: str) -> bool:
    """Whether it can be written: bytes that are no UTF-8, and halves of characters, cannot."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


class Record(dict[str, Any]):
    """The fields of a JSON object, and the names that it has more than once."""

    def __init__(self, pairs: Sequence[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        counts = Counter(name for name, _ in pairs) if len(self) < len(pairs) else {}
        self.repeated = frozenset(name for name, count in counts.items() if count > 1)


def _flat(record: Record) -> Record:
    """A record within a record as fields ``probs.A``."""
    while nested := [name for name, value in record.items() if isinstance(value, Record)]:
        for name in nested:
            inner = record.pop(name)
            record.update({f"{name}.{key}": value for key, value in inner.items()})
            record.repeated |= {f"{name}.{key}" for key in inner.repeated}
    return record


def deep_line(text: bytes) -> int | None:
    r"""The place of the first line that nests deeper than any table: on such lines releases of Polars before 2.1 end the program.

    >>> deep_line(b'{"p": [[1], [2]]}\n' + b"[" * 200 + b"]" * 200), deep_line(b'"' + b"[" * 200 + b'"')
    (1, None)
    """
    for place, line in enumerate(text.split(b"\n")):
        if len(line) > DEEPEST < line.count(b"[") + line.count(b"{") and _depth(line) > DEEPEST:
            return place
    return None


def _depth(line: bytes) -> int:
    """Brackets that are open at once, those in texts left out."""
    letters = np.frombuffer(re.sub(rb'"(?:[^"\\]|\\.)*"', b"", line, flags=re.DOTALL), np.uint8)
    opened = np.isin(letters, list(b"[{")).astype(int) - np.isin(letters, list(b"]}"))
    return int(opened.cumsum().max(initial=0))


class JsonLines(Format):
    """One JSON object per line."""

    def names(self, text: bytes) -> list[str]:
        """The fields of the first records, in order of appearance; what is no text names no column."""
        found: dict[str, None] = {}
        for place, record in self.records(text):
            if isinstance(record, dict):
                found.update(dict.fromkeys(filter(_is_text, record)))
            if place > LOOKED_AT:
                break
        return list(found)

    def is_plain(self, text: bytes, names: Sequence[str]) -> bool:
        r"""Whether no line is deep, has half a character, or a field twice, of which a fast reader would take either in silence.

        A field that is written no more often than there are lines is twice in none, or missing in another.

        >>> JsonLines().is_plain(b'{"p": 0.1}\n{"p": 0.2}\n', ["p"]), JsonLines().is_plain(b'{"p": 1, "p": 2}\n', ["p"])
        (True, False)
        """
        if b"\\u" in text and b"\\ud" in text.lower():
            return False
        lines = text.count(b"\n") + (not text.endswith(b"\n"))
        return deep_line(text) is None and not any(
            text.count(json.dumps(name, ensure_ascii=False).encode()) > lines for name in names
        )

    def records(self, text: bytes) -> Iterator[tuple[int, dict[str, Any] | str]]:
        """Lines that are objects."""
        for place, line in enumerate(text.split(b"\n")):
            if not line.strip():
                continue
            try:
                record = json.loads(line, object_pairs_hook=Record)
            except (ValueError, RecursionError):
                yield place, f"not JSON: {_line(line)}"
                continue
            yield place, _flat(record) if isinstance(record, Record) else f"not a JSON object: {_line(line)}"

    def written(self, records: Sequence[dict[str, Any]], needed: Needed) -> bytes:
        """Numbers as numbers: truth and falsehood are 1 and 0."""
        return b"".join(json.dumps(self._plain(record, needed)).encode() + b"\n" for record in records)

    def _plain(self, record: dict[str, Any], needed: Needed) -> dict[str, Any]:
        values = {name: record[name] for name in needed.names}
        numbers = {name: number_of(values[name], needed.decimal) for name in needed.numbers}
        truths = {name: int(value) for name, value in values.items() if isinstance(value, bool)}
        return {**values, **numbers, **truths}


@dataclass(frozen=True)
class CsvLines(Format):
    """Values between commas; ``header`` are the names of all columns."""

    header: Sequence[str]

    @property
    def head(self) -> bytes:  # type: ignore[override]
        """The names, in a line."""
        return _csv([self.header])

    def names(self, text: bytes) -> list[str]:
        """The columns."""
        return list(self.header)

    def is_plain(self, text: bytes, names: Sequence[str] = ()) -> bool:
        r"""Whether every line has as many values as the header has names: commas and line feeds come in its pattern.

        >>> lines = CsvLines(("y", "p"))
        >>> lines.is_plain(b"1,0.5\n0,0.3\n"), lines.is_plain(b"1,0.5,7\n0\n"), lines.is_plain(b'1,0.5\n0,"0,3"\n')
        (True, False, True)
        """
        if b"\r" in text and text.count(b"\r") != text.count(b"\r\n"):
            return False
        outside = _outside_quotes(text) if b'"' in text else text
        if outside is None:
            return False
        marks = outside.translate(None, NOT_MARKS) + (b"" if text.endswith(b"\n") else b"\n")
        width = len(self.header)
        return marks == (b"," * (width - 1) + b"\n") * (len(marks) // width)

    def records(self, text: bytes) -> Iterator[tuple[int, dict[str, Any] | str]]:
        """Records, of which some may have several lines."""
        for place, row, raw in csv_rows(text):
            if isinstance(row, str):
                yield place, f"not CSV, {row}: {_line(raw)}"
            elif len(row) != len(self.header):
                yield place, f"not a row of {len(self.header)} values, but of {len(row)}: {_line(raw)}"
            else:
                yield place, dict(zip(self.header, row, strict=True))

    def written(self, records: Sequence[dict[str, Any]], needed: Needed) -> bytes:
        """With a header of their own."""
        return _csv([needed.names, *([record[name] for name in needed.names] for record in records)])


def _csv(rows: Iterable[Sequence[str]]) -> bytes:
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _outside_quotes(text: bytes) -> bytes | None:
    """The commas and line feeds of a text of CSV that are in no quoted value; ``None`` where quotes are not in order.

    Quotes open and close in turns. One that opens comes first in its value, or right after one that closed, which makes a quote
    within a value of both; one that closes comes last. Every step is one pass of compiled code.
    """
    letters = np.frombuffer(text, dtype=np.uint8)
    quotes = np.flatnonzero(letters == QUOTE)
    if len(quotes) % 2:
        return None
    opens, closes = quotes[::2], quotes[1::2]
    is_double = opens[1:] == closes[:-1] + 1
    before, after = letters[opens - 1], letters.take(closes + 1, mode="clip")
    is_first = (before == COMMA) | (before == LINE_FEED)
    is_last = (after == COMMA) | (after == LINE_FEED) | (after == RETURN)
    is_first[0] |= opens[0] == 0
    is_last[-1] |= closes[-1] == len(letters) - 1
    if not (is_first[0] and is_last[-1] and (is_first[1:] | is_double).all() and (is_last[:-1] | is_double).all()):
        return None
    marks = np.frombuffer(text.translate(None, NOT_QUOTES_OR_MARKS), dtype=np.uint8)
    is_quote = marks == QUOTE
    is_inside = np.logical_xor.accumulate(is_quote)
    return marks[~(is_quote | is_inside)].tobytes()


def split_header(text: bytes, name: str) -> tuple[list[str], bytes]:
    r"""The names of columns in the first line of a file, and the rest.

    >>> split_header(b'y,"p, of yes"\n1,0.5\n', "x.csv")
    (['y', 'p, of yes'], b'1,0.5\n')
    """
    place, row, raw = next(csv_rows(text.removeprefix(b"\xef\xbb\xbf")), (0, [], b""))
    if isinstance(row, str):
        raise InputError(f"{name}: the first line is no header of a CSV: {row}")
    if not row:
        raise InputError(f"{name} has no rows: begin with a line of names")
    if faulty := [column for column in row if not _is_text(column)]:
        raise InputError(f"{name} has a column whose name is not UTF-8, {faulty[0]!a}: {other_encoding()}")
    lines = place + 1 + raw.count(b"\n")
    return row, text.split(b"\n", lines)[-1] if text.count(b"\n") >= lines else b""


def _line(line: bytes) -> str:
    return _shortened(repr(line.decode(errors="replace").strip()))


def _shortened(text: str, most: int = 60) -> str:
    return text if len(text) <= most + 2 else f"{text[: most + 1]}…{text[0]}"
