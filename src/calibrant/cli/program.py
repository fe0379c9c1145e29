"""The program: its commands, each loaded when it is run."""

import ast
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Annotated, Any, Literal

from cyclopts import App, Group, Parameter

import calibrant.cli.console as console
import calibrant.cli.manual as manual
from calibrant import __version__

HOMES = {
    "demo": "demo:demo",
    "report": "reporting:report",
    "test": "commands:exact_test",
    "estimate": "commands:estimate",
    "recalibrate": "recalibrate:recalibrate",
    "monitor": "monitor_command:monitor",
    "simulate": "simulate:simulate",
    "plan": "plan_command:plan",
    "doctor": "doctor:doctor",
    "completion": "program:completion",
}
"""The module and the function of each command."""

DATA = Group("Data", sort_key=1)
OUTPUT = Group("Output", sort_key=2)
SETTINGS = Group("Settings", sort_key=3)


def program(words: Sequence[str] | None = None) -> App:
    """The program that is to run some words: other commands than theirs are not imported. Without words, all are."""
    app = App(
        name="calibrant",
        version=__version__,
        help=manual.QUESTION,
        help_epilogue=manual.front_page(),
        help_format="plaintext",
        console=console.out,
        error_console=console.err,
        suppress_keyboard_interrupt=False,
    )
    app.register_install_completion_command(
        help="Let the tab key complete commands and options, in this shell from now on."
    )
    for name, home in HOMES.items():
        module, _, function = home.partition(":")
        docstring = _docstring(module, function)
        help = manual.description(docstring)
        settings: dict[str, Any] = {"name": name, "help": help, "sort_key": manual.place(name)}
        settings |= {"help_epilogue": manual.last_page(name), "group_parameters": SETTINGS}
        if words is None or name in words:
            command = getattr(import_module(f"calibrant.cli.{module}"), function)
            command.__doc__ = command.__doc__ or docstring  # which python -OO leaves out
            app.command(command, **settings)
        else:
            app.command(f"calibrant.cli.{home}", **settings)
    return app


@cache
def _docstring(module: str, function: str) -> str:
    """What a function says of itself, read from its file."""
    text = files("calibrant.cli").joinpath(f"{module}.py").read_text("utf-8")
    # Under -OO Python 3.14 drops docstrings from trees, too, unless it is told not to.
    tree = compile(text, module, "exec", ast.PyCF_ONLY_AST, optimize=0)
    (found,) = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == function)
    return ast.get_docstring(found, clean=False) or ""


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="whose script to print")],
    /,
) -> int:
    """Print the script that lets the tab key complete commands and options.

    ``calibrant --install-completion`` puts it where the shell finds it.
    """
    print(program().generate_completion(shell=shell))
    return 0


def __getattr__(name: str) -> App:
    """``app``, the program with all its commands, for the reference."""
    if name == "app":
        return program()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
