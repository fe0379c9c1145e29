"""Predictions from a pipe, and results into one: ``-`` is the standard input or output."""

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from calibrant import cli
from calibrant._validate import InputError
from calibrant.io.layout import PLAIN, Utf8
from calibrant.io.opening import SNIFFED_BYTES, sniffed

DASH = Path(cli.DASH)
"""The standard input or output."""

_folders: list[TemporaryDirectory[str]] = []  # removed when the program ends


def is_stream(path: Path) -> bool:
    """Whether this is no file that can be read twice: the standard input, or a pipe such as ``<(zcat x.csv.gz)``."""
    return path == DASH or path.is_fifo() or path.is_char_device()


def local(path: Path, format: str | None = None) -> Path:
    """The file itself; of a pipe, a file with what came through, its ending by the format that was said or found."""
    if not is_stream(path):
        return path
    if path != DASH:
        with path.open("rb") as pipe:
            return _kept(pipe, format, "the pipe")
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError("- reads from a pipe, and there is none: cat predictions.csv | calibrant report -")
    return _kept(sys.stdin.buffer, format, "the standard input")


def name_of(path: Path) -> str:
    """What to call a file in a heading."""
    return "the standard input" if is_stream(path) else path.name


def beside(name: str) -> Path:
    """A place for a file that is needed until the program ends."""
    _folders.append(TemporaryDirectory(prefix="calibrant-", ignore_cleanup_errors=True))
    return Path(_folders[-1].name) / name


def pour(path: Path) -> None:
    """A file into the standard output, as it is."""
    sys.stdout.flush()
    with path.open("rb") as source:
        shutil.copyfileobj(source, sys.stdout.buffer)
    sys.stdout.flush()


def _kept(pipe: IO[bytes], format: str | None, source: str) -> Path:
    path = beside("stdin")
    with path.open("wb") as copy:
        shutil.copyfileobj(pipe, copy)
    with path.open("rb") as kept:
        kind = format or sniffed(Utf8(kept, PLAIN, source).read(SNIFFED_BYTES), source)
    return path.rename(path.with_suffix(f".{kind}"))
