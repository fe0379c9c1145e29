"""JSON of any shape, logs of language models and spreadsheets as lines of text that Polars reads."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
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
        return ".jsonl", *_of_rows(*inspect_rows(read_inspect_archive(path), path.name))
    with path.open("rb") as handle:
        text = Utf8(handle, layout, path.name)
        content = b"".join(iter(lambda: text.read(1 << 24), b""))
    check_text(content[:1024], path.name)
    content = content.removeprefix(b"\xef\xbb\xbf")
    first = _parsed(content.lstrip().partition(b"\n")[0])
    if isinstance(first, dict) and is_harness_record(first):
        return ".jsonl", *_of_rows(*harness_rows(map(json.loads, content.splitlines()), path.name))
    if _are_lines(first, content) or (kind != ".json" and first is None):
        return ".jsonl", content, []
    return ".jsonl", *_of_document(content, path.name)


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


def _of_document(content: bytes, name: str) -> tuple[bytes, list[str]]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} is not JSON: {error}") from error
    if isinstance(found, dict) and is_inspect_log(found):
        return _of_rows(*inspect_rows(found, name))
    if isinstance(found, dict) and found and all(isinstance(v, list) for v in found.values()):
        if len({len(v) for v in found.values()}) > 1:
            raise InputError(f"{name}: its lists have different lengths: give one value per row")
        return _of_rows(dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True))
    if (
        isinstance(found, dict) and found and all(isinstance(v, dict) for v in found.values())
    ):  # columns by row, as pandas
        keys = list(next(iter(found.values())))
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
