"""How messages call an argument: as Python does, or as an option of the command line."""

import shlex
from contextvars import ContextVar

SPEAKS_OPTIONS: ContextVar[bool] = ContextVar("SPEAKS_OPTIONS", default=False)
"""Whether the caller writes options of a command rather than arguments of Python."""


def said(argument: str, value: str | None = None) -> str:
    """An argument, or an argument with a value, as the caller writes it.

    >>> said("y_true"), said("y_true", "my answer")
    ('y_true', "y_true='my answer'")
    >>> token = SPEAKS_OPTIONS.set(True)
    >>> said("y_true"), said("y_true", "my answer"), said("normalise", "")
    ('--y-true', "--y-true 'my answer'", '--normalise')
    >>> SPEAKS_OPTIONS.reset(token)
    """
    if not SPEAKS_OPTIONS.get():
        return argument if value is None else f"{argument}={value!r}" if value else f"{argument}=True"
    option = "--input-format" if argument == "format" else f"--{argument.replace('_', '-')}"
    return f"{option} {shlex.quote(value)}" if value else option
