"""Commands run in this process, their outputs caught, and what is wrong with how they ended."""

import io
import re
import signal
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import FrameType

from calibrant.cli import MAX_QUOTED, main, pipes

LONGEST_SECONDS = 20.0
"""What a command may take of a processor's time."""

LONGEST_WAIT = 120.0
"""What it may take in all, where others use the processor, too."""

CONTROL = re.compile(r"[\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What commands a terminal."""

LONG_WORD = re.compile(rf"[^\s'\"]{{{MAX_QUOTED + 8},}}")
"""More than messages quote, and six letters for the dots where a terminal has none."""


HINT = "class 0 never occurs"
"""The beginning of the one warning that data may deserve."""


class TooSlow(BaseException):
    """It took longer than it may."""


@contextmanager
def limited(seconds: float = LONGEST_SECONDS, wait: float = LONGEST_WAIT) -> Iterator[None]:
    """An exception where work takes longer; a busy machine alone is no reason for one."""
    begun, worked = time.perf_counter(), time.process_time()

    def look(number: int, frame: FrameType | None) -> None:
        if time.process_time() - worked > seconds or time.perf_counter() - begun > wait:
            raise TooSlow

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, min(seconds, wait), 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    arguments: Sequence[str]
    code: int
    out: str
    err: str
    seconds: float
    is_document: bool = False

    def faults(self) -> list[str]:
        """What is wrong with it: nothing, mostly."""
        found = []
        if self.code not in (0, 1, 2):
            found.append(f"code {self.code}")
        if "Traceback" in self.err or "Warning" in self.err:
            found.append("a traceback or warning")
        if CONTROL.search(self.err) or (CONTROL.search(self.out) and not self.is_document):
            found.append("control characters")
        told = [line for line in self.err.splitlines() if line.startswith("calibrant: ")]
        if (self.code == 2) != (len(told) == 1) or (self.code == 2 and told != self.err.splitlines()[-1:]):
            found.append("not one line of why")
        if told and LONG_WORD.search(told[0]):
            found.append("a long word")
        return found


def ran(arguments: Sequence[str], stdin: bytes | None = None, encoding: str = "utf-8") -> Ended:
    """Run a command here."""
    out, err = io.BytesIO(), io.BytesIO()
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin = None if stdin is None else io.TextIOWrapper(io.BytesIO(stdin))  # type: ignore[assignment]
    streams = [io.TextIOWrapper(buffer, encoding=encoding, newline="\n") for buffer in (out, err)]
    sys.stdout, sys.stderr = streams
    start, code = time.perf_counter(), 70
    try:
        with limited(), warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("always", HINT)
            main(list(arguments))
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 70
    except TooSlow:
        code = 124
    finally:
        seconds = time.perf_counter() - start
        sys.stdin, sys.stdout, sys.stderr = before
        for stream in streams:
            stream.flush()
        while pipes._folders:
            pipes._folders.pop().cleanup()
    is_document = any(a == "--out" and b == "-" for a, b in pairwise(arguments))
    said = [buffer.getvalue().decode(encoding, "surrogateescape") for buffer in (out, err)]
    return Ended(arguments, code, *said, seconds, is_document)


def left_behind(folder: Path) -> list[str]:
    """Names of files on the way that were not removed."""
    return [path.name for path in folder.rglob("*") if path.name.endswith(".part")]
