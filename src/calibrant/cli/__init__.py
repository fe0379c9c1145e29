"""The command line: thin commands over the library."""

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

GATE_FAILED, UNUSABLE, MISTAKE, INTERRUPTED, NO_READER = 1, 2, 70, 130, 141
"""What the program leaves with where not all is well; ``calibrant --help`` explains each."""

DASH = ":-:"
"""The standard input or output. A dash alone looks like an option to the parser, so it comes by this name."""


def main(arguments: list[str] | None = None) -> None:
    """Run ``calibrant`` and leave with 0, with 1 when a gate failed, with 2 and one line on bad input."""
    guarded(_program, sys.argv[1:] if arguments is None else arguments, "calibrant")


def guarded(program: Callable[[Sequence[str]], Any], arguments: Sequence[str], name: str) -> NoReturn:
    """Run a program of cyclopts and leave with its code; mistakes of the user are one line, and code 2."""
    try:
        code = _run(program, arguments, name)
        sys.stdout.flush()
    except BrokenPipeError:  # who read the output has seen enough
        _forget_output()
        code = NO_READER
    except KeyboardInterrupt:
        code = INTERRUPTED
    sys.exit(code)


def _program(words: Sequence[str]) -> Any:
    from calibrant.cli.program import program

    return program(words)


def _run(program: Callable[[Sequence[str]], Any], arguments: Sequence[str], name: str) -> int:
    try:
        app = program(arguments)
    except ModuleNotFoundError as error:
        return _fail(f"the command line needs {error.name}: pip install 'calibrant[cli]'", name)
    from cyclopts import CycloptsError

    try:
        code = app(_renamed(arguments), exit_on_error=False, print_error=False, result_action="return_value")
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except OSError as error:
        return _fail(str(error), name)
    except CycloptsError as error:
        return _fail(f"{' '.join(str(error).split())} (see {app.name[0]} --help)", name)
    except Exception as error:
        from calibrant._validate import InputError  # its home is not loaded before something is to be done

        if isinstance(error, InputError):
            return _fail(str(error), name)
        traceback.print_exc()  # a bug of ours: show it, and leave with a code that no gate uses
        return MISTAKE
    return code if isinstance(code, int) else 0


def _renamed(arguments: Sequence[str]) -> list[str]:
    """Arguments with every dash that stands alone under its other name."""
    return [DASH if argument == "-" else argument for argument in arguments]


def _fail(message: str, name: str) -> int:
    print(f"{name}: {message}", file=sys.stderr)
    return UNUSABLE


def _forget_output() -> None:
    """Nothing more is written: Python would complain on its way out."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
