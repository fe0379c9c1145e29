"""Lines that hold records, and what is wrong with those that do not: JSON lines and CSV."""

import csv
import json
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from calibrant.results import how_many

SHOWN = 5
"""Bad lines that are remembered."""

NOT_NUMBERS = ("nan", "inf", "-inf")
"""How JSON and CSV write what is no finite number."""

LOOKED_AT = 1000
"""Lines whose fields are looked at to find names."""


@dataclass(frozen=True)
class Needed:
    """Columns that every record must have, and those of them that must be numbers."""

    names: tuple[str, ...]
    numbers: frozenset[str] = frozenset()


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

    def add(self, line: int, fault: str) -> None:
        """Count one more."""
        self.count += 1
        if len(self.first) < SHOWN:
            self.first.append((line, fault))

    def __str__(self) -> str:
        named = "; ".join(f"line {line} is {fault}" for line, fault in self.first)
        return (
            f"{how_many(self.count, 'line')} could not be used: {named}{'; …' if self.count > len(self.first) else ''}"
        )


class Format(ABC):
    """How lines hold records."""

    @abstractmethod
    def names(self, text: bytes) -> list[str]:
        """The fields that records have, or some of the first."""

    @abstractmethod
    def records(self, text: bytes) -> Iterator[tuple[int, bytes, dict[str, Any] | str]]:
        """Of each line that is not blank its place, the text, and the record or what is wrong with it."""

    @abstractmethod
    def kept(self, line: bytes, record: dict[str, Any], needed: Needed) -> bytes:
        """A good line as it is read on."""

    def sift(self, text: bytes, needed: Needed, first_line: int, bad: BadLines) -> bytes:
        """The good lines alone; the others are counted."""
        good = []
        for place, line, record in self.records(text):
            fault = record if isinstance(record, str) else fault_of(record, needed)
            if fault:
                bad.add(first_line + place, fault)
            else:
                assert isinstance(record, dict)
                good.append(self.kept(line, record, needed))
        return b"\n".join(good) + b"\n" if good else b""


def fault_of(record: dict[str, Any], needed: Needed) -> str:
    """What is wrong with a record; nothing where all is well.

    >>> fault_of({"y": 1, "p": "high"}, Needed(("y", "p"), frozenset({"p"})))
    "without a number 'p': 'high'"
    """
    for name in needed.names:
        value = record.get(name)
        if name in getattr(record, "repeated", ()):
            return f"a record with {name!r} twice"
        if value is None or value == "" or str(value).lower() in NOT_NUMBERS:
            return f"without {name!r}"
        if name in needed.numbers and not _is_number(value):
            return f"without a number {name!r}: {value!r}"
        if isinstance(value, dict | list):
            return f"without one value {name!r}: {value!r}"
    return ""


def _is_number(value: object) -> bool:
    try:
        return not isinstance(value, bool | dict | list) and math.isfinite(float(value))  # type: ignore[arg-type]
    except ValueError:
        return False


class Record(dict[str, Any]):
    """The fields of a JSON object, and the names that it has more than once."""

    def __init__(self, pairs: Sequence[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        counts = Counter(name for name, _ in pairs) if len(self) < len(pairs) else {}
        self.repeated = frozenset(name for name, count in counts.items() if count > 1)


class JsonLines(Format):
    """One JSON object a line."""

    def names(self, text: bytes) -> list[str]:
        """The fields of the first records, in order of appearance."""
        found: dict[str, None] = {}
        for place, _, record in self.records(text):
            if isinstance(record, dict):
                found.update(dict.fromkeys(record))
            if place > LOOKED_AT:
                break
        return list(found)

    def records(self, text: bytes) -> Iterator[tuple[int, bytes, dict[str, Any] | str]]:
        """Lines that are objects."""
        for place, line in enumerate(text.split(b"\n")):
            if not line.strip():
                continue
            try:
                record = json.loads(line, object_pairs_hook=Record)
            except (ValueError, RecursionError):
                yield place, line, f"not JSON: {_shortened(line)}"
                continue
            yield place, line, record if isinstance(record, dict) else f"not a JSON object: {_shortened(line)}"

    def repeated(self, text: bytes, names: Sequence[str]) -> str | None:
        """The first of these fields that some line has twice, where a reader would take either in silence.

        A field that is written no more often than there are lines is twice in none, or missing in another.

        >>> JsonLines().repeated(b'{"p": 0.1}\\n{"p": 0.2, "p": 0.9}\\n', ["p"])
        'p'
        """
        lines = text.count(b"\n") + 1
        often = [name for name in names if text.count(json.dumps(name, ensure_ascii=False).encode()) >= lines]
        if not often:
            return None
        twice = {name for _, _, record in self.records(text) for name in getattr(record, "repeated", ())}
        return next((name for name in often if name in twice), None)

    def kept(self, line: bytes, record: dict[str, Any], needed: Needed) -> bytes:
        """The needed fields alone, numbers as numbers: others may hold what strict readers refuse."""
        values = {name: record[name] for name in needed.names}
        numbers = {name: float(values[name]) for name in needed.numbers}
        truths = {name: int(value) for name, value in values.items() if isinstance(value, bool)}
        return json.dumps({**values, **numbers, **truths}).encode()


@dataclass(frozen=True)
class CsvLines(Format):
    """Values between commas; ``header`` are the names of all columns."""

    header: Sequence[str]

    def names(self, text: bytes) -> list[str]:
        """The columns."""
        return list(self.header)

    def records(self, text: bytes) -> Iterator[tuple[int, bytes, dict[str, Any] | str]]:
        """Records, of which some may have several lines."""
        lines = text.split(b"\n")
        reader, start = csv.reader(line.decode(errors="replace") + "\n" for line in lines), 0
        for row in reader:
            raw, place, start = b"\n".join(lines[start : reader.line_num]), start, reader.line_num
            if not row:
                continue
            is_whole = len(row) == len(self.header)
            fault = f"not a row of {len(self.header)} values, but of {len(row)}: {_shortened(raw)}"
            yield place, raw, dict(zip(self.header, row, strict=True)) if is_whole else fault

    def kept(self, line: bytes, record: dict[str, Any], needed: Needed) -> bytes:
        """As it is."""
        return line


def split_header(text: bytes) -> tuple[list[str], bytes, bytes]:
    """The names of columns in the first line of a file, that line, and the rest.

    >>> split_header(b'y,"p, of yes"\\n1,0.5\\n')
    (['y', 'p, of yes'], b'y,"p, of yes"\\n', b'1,0.5\\n')
    """
    lines = text.split(b"\n")
    reader = csv.reader(line.decode("utf-8-sig", errors="replace") + "\n" for line in lines)
    names = next(reader, [])
    size = len(b"\n".join(lines[: reader.line_num])) + 1
    return names, text[:size], text[size:]


def _shortened(line: bytes, most: int = 60) -> str:
    text = line.decode(errors="replace").strip()
    return repr(text if len(text) <= most else text[:most] + "…")
