"""The command line: thin commands over the library."""

import sys
import traceback

from calibrant._validate import InputError


def main(arguments: list[str] | None = None) -> None:
    """Run ``calibrant`` and leave with 0, with 1 when a gate failed, with 2 and one line on bad input."""
    try:
        from calibrant.cli import commands, recalibrate, studies  # noqa: F401  # which add their commands to the program
        from calibrant.cli.app import app
    except ModuleNotFoundError as error:
        sys.exit(_fail(f"the command line needs {error.name}: pip install 'calibrant[cli]'"))
    from cyclopts import CycloptsError

    try:
        code = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except (InputError, OSError) as error:
        sys.exit(_fail(str(error)))
    except CycloptsError as error:
        sys.exit(_fail(f"{' '.join(str(error).split())} (see calibrant --help)"))
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception:  # a bug of ours: show it, and leave with a code that no gate uses
        traceback.print_exc()
        sys.exit(70)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str) -> int:
    print(f"calibrant: {message}", file=sys.stderr)
    return 2
