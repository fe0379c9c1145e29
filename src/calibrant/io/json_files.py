"""JSON of any shape, logs of language models and spreadsheets as lines of text that Polars reads."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from calibrant._validate import InputError
from calibrant.io.layout import FileLayout, Utf8
from calibrant.io.logs import harness_rows, inspect_rows, is_harness_record, is_inspect_log, read_inspect_archive
from calibrant.io.records import check_text
from calibrant.io.spreadsheets import spreadsheet

Content = tuple[str, bytes, list[str]]
"""The kind of text, the text, and what is to be told of it."""


def json_lines(path: Path, kind: str, layout: FileLayout) -> Content:
    """What a file holds as JSON lines, or as CSV where it is a spreadsheet."""
    if kind == ".xlsx":
        return ".csv", *spreadsheet(path)
    if kind == ".eval":
        with _as_logged(path.name):
            return ".jsonl", *_of_rows(*inspect_rows(read_inspect_archive(path), path.name))
    with path.open("rb") as handle:
        text = Utf8(handle, layout, path.name)
        content = b"".join(iter(lambda: text.read(1 << 24), b""))
    check_text(content[:1024], path.name)
    content = content.removeprefix(b"\xef\xbb\xbf")
    first = _parsed(content.lstrip().partition(b"\n")[0])
    if isinstance(first, dict) and is_harness_record(first):
        with _as_logged(path.name):
            return ".jsonl", *_of_rows(*harness_rows(_records(content, path.name), path.name))
    if _are_lines(first, content) or (kind != ".json" and first is None):
        return ".jsonl", content, []
    return ".jsonl", *_of_document(content, path.name)


@contextmanager
def _as_logged(name: str) -> Iterator[None]:
    """Refuse a log whose samples are not built as its program builds them."""
    try:
        yield
    except InputError:
        raise
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{name} is a log with a sample that its program did not write so ({type(error).__name__}: {str(error)[:80]}): "
            "write the log anew, or give a table of answers and probabilities"
        ) from error


def _records(content: bytes, name: str) -> Iterator[Mapping[str, Any]]:
    """The samples of a log, one per line."""
    for i, line in enumerate(content.splitlines(), 1):
        found = _parsed(line)
        if not isinstance(found, dict):
            raise InputError(f"{name}: line {i} is no object of JSON: {line[:60]!r}")
        yield found


def _are_lines(first: Any, content: bytes) -> bool:
    """Whether there is a record a line; a single line may hold columns, or a whole log."""
    if not isinstance(first, dict) or is_inspect_log(first):
        return False
    return len(content.strip().split(b"\n", 1)) > 1 or not all(isinstance(v, list | dict) for v in first.values())


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _fields(name: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, of which the fields are there once."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for i, (key, _) in enumerate(pairs) if key in [k for k, _ in pairs[:i]])
        raise InputError(f"{name} has an object with {twice!r} twice: give each field a name of its own")
    return found


def _of_document(content: bytes, name: str) -> tuple[bytes, list[str]]:
    try:
        found = json.loads(content, object_pairs_hook=partial(_fields, name))
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} is not JSON: {error}") from error
    if isinstance(found, dict) and is_inspect_log(found):
        with _as_logged(name):
            return _of_rows(*inspect_rows(found, name))
    if isinstance(found, dict) and found and all(isinstance(v, list) for v in found.values()):
        if len({len(v) for v in found.values()}) > 1:
            raise InputError(f"{name}: its lists have different lengths: give one value per row")
        return _of_rows(dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True))
    if (
        isinstance(found, dict) and found and all(isinstance(v, dict) for v in found.values())
    ):  # columns by row, as pandas
        keys = list(next(iter(found.values())))
        if any(set(values) != set(keys) for values in found.values()):
            raise InputError(f"{name}: its columns have different rows: give one value per row")
        return _of_rows({column: values.get(key) for column, values in found.items()} for key in keys)
    if isinstance(found, list) and found and all(isinstance(row, dict) for row in found):
        return _of_rows(found)
    raise InputError(
        f"{name} is JSON, but no table: give a list of objects, one per row, or an object of lists, one per column"
    )


def _of_rows(rows: Iterable[Mapping[str, Any]], notes: Sequence[str] = ()) -> tuple[bytes, list[str]]:
    """Rows as lines, in which what is no number is missing."""
    return b"".join(json.dumps(_finite(dict(row))).encode() + b"\n" for row in rows), list(notes)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
