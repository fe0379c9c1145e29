"""Files that are whole or not there: written beside their place and put there at once; JSON read or refused."""

import errno
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import IO, Any

from calibrant._validate import InputError

MAX_JSON_BYTES = 1 << 30
"""Bytes that a file of JSON may have: states and fitted maps are far smaller."""


@contextmanager
def replacing(path: str | PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write that takes the place of another once it is complete, and is gone if that fails.

    What was there before stays until then, whatever ends the program. Its permissions are kept, and a link goes on pointing
    to it. Pipes and devices are written as they are.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "a.txt") as out:
    ...         _ = out.write(b"all of it")
    ...     (Path(folder) / "a.txt").read_bytes(), len(os.listdir(folder))
    (b'all of it', 1)
    """
    check_name(path)
    try:
        target = Path(os.path.realpath(path))
        before = _mode(target)
        if before is not None and not stat.S_ISREG(before):
            with target.open("wb") as out:
                yield out
            return
        if before is not None and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        with _beside(target, before) as out:
            yield out
    except OSError as error:
        raise _named(error, path) from error


@contextmanager
def _beside(target: Path, before: int | None) -> Iterator[IO[bytes]]:
    """A new file in the folder of the target, which it replaces at the end."""
    fresh = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.part")
    try:
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        if before is not None:
            shutil.copymode(target, fresh)
        os.replace(fresh, target)
    except BaseException:
        with suppress(OSError):
            fresh.unlink()
        raise
    with suppress(OSError):  # not all systems can
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _mode(path: Path) -> int | None:
    """What is there, with its permissions; nothing where nothing is."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _named(error: OSError, path: str | PathLike[str]) -> OSError:
    """The same error of the file that was asked for, not of the one on the way."""
    if error.errno is None:  # of a library that tells in words alone
        return OSError(errno.EIO, str(error), os.fspath(path))
    return OSError(error.errno, os.strerror(error.errno), os.fspath(path))


def write_whole(path: str | PathLike[str], content: str | bytes) -> None:
    """Write a file as a whole; half a character is written as JSON writes it."""
    with replacing(path) as out:
        out.write(content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content)


def check_name(path: str | PathLike[str]) -> None:
    """Refuse a name that no file can have."""
    try:
        is_name = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:  # half a character
        is_name = False
    if not is_name:
        raise InputError(f"there can be no file {os.fspath(path)!a}: its name has a zero byte, or half a character")


def read_json(path: str | PathLike[str]) -> Any:
    """What a file of JSON holds; ``InputError`` says in a line why it cannot be read.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_whole(Path(folder) / "a.json", '{"n": 3}')
    ...     read_json(Path(folder) / "a.json")
    {'n': 3}
    """
    check_name(path)
    try:
        with open(path, "rb") as handle:
            content = handle.read(MAX_JSON_BYTES + 1)
        if len(content) > MAX_JSON_BYTES:
            raise InputError(f"{path} has more than {MAX_JSON_BYTES:,} bytes")
        return json.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text") from error
    except RecursionError as error:
        raise InputError(f"{path} is nested too deeply") from error
    except (json.JSONDecodeError, MemoryError) as error:
        raise InputError(f"{path} is not JSON: {error}") from error
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} has numbers that are too long") from error
