"""The command that says what is installed, and whether it works."""

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from calibrant.cli import console, display
from calibrant.cli.app import Output, command, print_json
from calibrant.cli.diagnosis import Diagnosis, Library, diagnose
from calibrant.cli.self_test import Check
from calibrant.planning.bench import measured
from calibrant.planning.gpu_bench import with_gpu

MARKS = {True: ("✓", "green"), False: ("✗", "red"), None: ("·", "dim")}


@command("doctor")
def doctor(*, bench: Annotated[bool, Parameter(negative="")] = False, format: Output = "table") -> int:
    """Say what is installed, which accelerators are active, and whether known values come out right.

    Takes a few seconds. Nothing is sent anywhere.

    Parameters
    ----------
    bench
        measure what work costs on this machine, too, and keep it for "calibrant plan": about 20 seconds, and half a minute
        more where there is a GPU
    """
    if bench:
        measure_costs()
    with display.steps("Looking around"):
        found = diagnose()
    if format == "json":
        print_json(found)
    else:
        show(found)
    return 0 if found.is_well else 1


def measure_costs() -> None:
    """Keep the rates of this machine, and say where."""
    with display.steps("Measuring") as tell:
        place = with_gpu(measured(tell)).save()
    with display.aside():
        display.say(f"Costs of this machine are kept in {place}.")


def show(found: Diagnosis) -> None:
    """Versions, libraries, aids, the self-test, and the conclusion."""
    _part("", [(None, name, version) for name, version in found.versions.items()])
    _part("Libraries", [(*_state(library), library.version or _remedy(library)) for library in found.libraries])
    _part("Speed and more", [(aid.is_active or None, aid.name, aid.detail) for aid in found.aids])
    _part("Self-test", [(check.is_right, check.name, _compared(check)) for check in found.checks])
    _part("", [(None, name, f"{1000 * seconds:.1f} ms") for name, seconds in found.seconds.items()])
    wrong = "Something is wrong: see the lines with ✗, and please report them with --format json."
    words = "All is well." if found.is_well else wrong
    console.out.print(Text(f"\n{words}", style="green" if found.is_well else "red"))


def _state(library: Library) -> tuple[bool | None, str]:
    """Whether it is there; what is optional is not missed."""
    return (None if library.version is None and not library.is_missed else library.version is not None), library.name


def _remedy(library: Library) -> str:
    return f"not installed: pip install '{library.source}'"


def _compared(check: Check) -> str:
    if check.is_right:
        return f"{check.value:.12g}"
    return check.problem or f"{check.value!r}, and should be {check.expected!r}"


def _part(heading: str, lines: Sequence[tuple[bool | None, str, str]]) -> None:
    """Lines of a mark, which says what its colour says, a name and what there is to tell."""
    if heading:
        console.out.print(Text(f"\n{heading}", style="bold"))
    width = max((len(name) for _, name, _ in lines), default=0)
    for mark, name, text in lines:
        sign, style = MARKS[mark]
        console.out.print(Text.assemble((sign, style), " ", f"{name:<{width}}", "  ", text), soft_wrap=True)
