"""The command line: thin commands over the library."""

import os
import re
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from calibrant.results.text import visible

GATE_FAILED, UNUSABLE, MISTAKE, HUNG_UP, INTERRUPTED, NO_READER, TERMINATED = 1, 2, 70, 129, 130, 141, 143
"""What the program leaves with where not all is well; ``calibrant --help`` explains each."""

DASH = ":-:"
"""The standard input or output. A dash alone looks like an option to the parser, so it comes by this name."""

MAX_QUOTED = 200
"""Letters of a word or a quotation that messages show."""


class Stopped(BaseException):
    """Somebody asked the program to end: what is kept is written, and what is temporary removed, on the way out."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def main(arguments: list[str] | None = None) -> None:
    """Run ``calibrant`` and leave with 0, with 1 when a gate failed, with 2 and one line on bad input."""
    guarded(_program, sys.argv[1:] if arguments is None else arguments, "calibrant")


def guarded(program: Callable[[Sequence[str]], Any], arguments: Sequence[str], name: str) -> NoReturn:
    """Run a program of cyclopts and leave with its code; mistakes of the user are one line, and code 2."""
    _prepare_streams()
    try:
        with _stoppable(), _warnings_in_a_line():
            code = _run(program, arguments, name)
            sys.stdout.flush()
    except BrokenPipeError:  # who read the output has seen enough
        _forget_output()
        code = NO_READER
    except OSError as error:  # of the last of the output
        _forget_output()
        code = _fail(_told(error), name)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Stopped as stopped:
        code = stopped.code
    sys.exit(code)


def _prepare_streams() -> None:
    """What the terminal has no letter for is spelt; streams that are closed are as if they led nowhere."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        stream = getattr(sys, name)
        if stream is None:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            if nowhere != number:  # or the next file that is opened would be the output
                os.dup2(nowhere, number)
            stream = open(number, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  # until the end
            setattr(sys, name, stream)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def _warnings_in_a_line() -> Iterator[None]:
    """Warnings are notes, each told once; which line of code gave them says nothing to who runs a command."""
    told = set()

    def note(message: Warning | str, *_: object, **__: object) -> None:
        words = one_line(str(message))
        if words not in told:
            told.add(words)
            with suppress(OSError):
                print(f"Note: {words}.", file=sys.stderr, flush=True)

    with warnings.catch_warnings():
        warnings.showwarning = note
        yield


@contextmanager
def _stoppable() -> Iterator[None]:
    """Requests to end arrive as exceptions, so that everything is left in order; once is enough."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    before: dict[int, Any] = {}
    for number in STOPPING:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup asks for
            before[number] = signal.signal(number, _stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


STOPPING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Signals that ask a program to end."""


def _stop(number: int, _: object) -> None:
    for other in STOPPING:
        signal.signal(other, signal.SIG_IGN)
    raise Stopped(128 + number)


def _reset() -> None:
    """Processes that share the work end at once when they are told to."""
    for number in STOPPING:
        if signal.getsignal(number) is _stop:
            signal.signal(number, signal.SIG_DFL)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset)


def _program(words: Sequence[str]) -> Any:
    from calibrant.cli.program import program

    return program(words)


def _run(program: Callable[[Sequence[str]], Any], arguments: Sequence[str], name: str) -> int:
    try:
        app = program(arguments)
    except ModuleNotFoundError as error:
        return _fail(f"the command line needs {error.name}: pip install 'calibrant[cli]'", name)
    except Exception:  # a bug of ours, as below
        traceback.print_exc()
        return MISTAKE
    from cyclopts import CycloptsError

    from calibrant._wording import SPEAKS_OPTIONS

    token = SPEAKS_OPTIONS.set(True)
    try:
        code = app(_renamed(arguments), exit_on_error=False, print_error=False, result_action="return_value")
    except BrokenPipeError:
        raise
    except OSError as error:
        return _fail(_told(error), name)
    except CycloptsError as error:
        return _fail(f"{error}{_hint(str(error))} (see {app.name[0]} --help)", name)
    except MemoryError:
        return _fail("there is not enough memory: take fewer rows, or a machine with more", name)
    except Exception as error:
        from calibrant._validate import InputError  # its home is not loaded before something is to be done

        if isinstance(error, InputError):
            return _fail(str(error), name)
        traceback.print_exc()  # a bug of ours: show it, and leave with a code that no gate uses
        return MISTAKE
    finally:
        SPEAKS_OPTIONS.reset(token)
    return code if isinstance(code, int) else 0


def _hint(error: str) -> str:
    """Where options for rows that belong together are known, if they are not here."""
    if re.match(r"Unknown option: .*--fold\b", error) is not None:
        return " Cross-validated predictions are judged by report, which takes --fold"
    if re.match(r"Unknown option: .*--(clusters|time|block)\b", error) is None:
        return ""
    return " Rows are taken to be independent here: report, estimate, test and recalibrate take --clusters, --time and --block"


def _renamed(arguments: Sequence[str]) -> list[str]:
    """Arguments with every dash that stands alone under its other name."""
    return [DASH if argument == "-" else argument for argument in arguments]


def _told(error: OSError) -> str:
    """What the system complains about, and of which file."""
    if error.strerror is None:
        return str(error)
    if error.filename is None:  # files are opened by name, and so named by their errors: this is a stream
        return f"the standard output, or a pipe: {error.strerror}"
    return f"{os.fsdecode(error.filename)!r}: {error.strerror}"


def _fail(message: str, name: str) -> int:
    with suppress(OSError):  # who reads the complaints has left
        print(f"{name}: {one_line(message)}", file=sys.stderr, flush=True)
    return UNUSABLE


def one_line(message: str) -> str:
    """A message on one line, in which long words and quotations are shortened; what is beside them stays.

    >>> one_line("no\\nfile '" + "x" * 300 + "': name another") == "no file '" + "x" * 200 + "…': name another"
    True
    """
    line = visible(" ".join(message.split()))
    line = re.sub(r"[^\s'\"]+", lambda found: _short(found[0]), line)
    return re.sub(r"(?<!\w)(['\"])(.*?)\1", lambda found: f"{found[1]}{_short(found[2])}{found[1]}", line)


def _short(text: str) -> str:
    return text if len(text) <= MAX_QUOTED + 1 else f"{text[:MAX_QUOTED]}…"


def _forget_output() -> None:
    """Nothing more is written: Python would complain on its way out."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
