"""The command line: thin commands over the library."""

import os
import sys
import traceback

from calibrant._validate import InputError

GATE_FAILED, UNUSABLE, MISTAKE, INTERRUPTED, NO_READER = 1, 2, 70, 130, 141
"""What the program leaves with where not all is well; ``calibrant --help`` explains each."""


def main(arguments: list[str] | None = None) -> None:
    """Run ``calibrant`` and leave with 0, with 1 when a gate failed, with 2 and one line on bad input."""
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # who read the output has seen enough
        _forget_output()
        code = NO_READER
    except KeyboardInterrupt:
        code = INTERRUPTED
    sys.exit(code)


def _run(arguments: list[str] | None) -> int:
    try:
        from calibrant.cli import (  # noqa: F401  # add themselves
            commands,
            completion,
            demo,
            doctor,
            monitor,
            plan,
            recalibrate,
            studies,
        )
        from calibrant.cli.app import app
        from calibrant.cli.streams import renamed
    except ModuleNotFoundError as error:
        return _fail(f"the command line needs {error.name}: pip install 'calibrant[cli]'")
    from cyclopts import CycloptsError

    try:
        tokens = renamed(sys.argv[1:] if arguments is None else arguments)
        code = app(tokens, exit_on_error=False, print_error=False, result_action="return_value")
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except (InputError, OSError) as error:
        return _fail(str(error))
    except CycloptsError as error:
        return _fail(f"{' '.join(str(error).split())} (see calibrant --help)")
    except Exception:  # a bug of ours: show it, and leave with a code that no gate uses
        traceback.print_exc()
        return MISTAKE
    return code if isinstance(code, int) else 0


def _fail(message: str) -> int:
    print(f"calibrant: {message}", file=sys.stderr)
    return UNUSABLE


def _forget_output() -> None:
    """Nothing more is written: Python would complain on its way out."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
