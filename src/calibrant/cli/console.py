"""The two streams of the terminal, and when they are coloured."""

import codecs
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.text import Text

from calibrant.results.text import visible

MIN_COLUMNS, MAX_COLUMNS = 20, 10_000
"""Columns of a terminal, whatever it says itself."""

LINES = 25
"""Those of a terminal whose columns are not believed."""


class Stream(Console):
    """A console that lets a broken pipe through: what to do about it is decided in one place."""

    def on_broken_pipe(self) -> None:
        """Say so."""
        raise BrokenPipeError


def colour_options(environment: Mapping[str, str]) -> dict[str, Any]:
    """What the usual variables say of colours, in Rich's words, beyond what Rich itself reads.

    NO_COLOR, where it is not empty, wins over everything; then FORCE_COLOR and CLICOLOR_FORCE, which ask for colours in pipes,
    too; CLICOLOR=0 asks for none. Without any, a terminal that is not dumb has colours.

    >>> colour_options({"CLICOLOR": "0"}), colour_options({"CLICOLOR_FORCE": "1"}), colour_options({})
    ({'no_color': True}, {'force_terminal': True}, {})
    """
    forced = environment.get("FORCE_COLOR")  # Rich takes any, even 0, for a wish
    asked = forced or environment.get("CLICOLOR_FORCE", "0")
    if not environment.get("NO_COLOR") and asked not in ("", "0", "false"):
        return {"force_terminal": True}
    plain = {} if forced is None else {"force_terminal": False}
    refused = environment.get("NO_COLOR") or environment.get("CLICOLOR") == "0" or forced == "0"
    return {"no_color": True, **plain} if refused else {}


def width_options(environment: Mapping[str, str]) -> dict[str, Any]:
    """Widths that nothing can be shown in, and those that no terminal has, are not believed.

    >>> width_options({"COLUMNS": "3"}), width_options({"COLUMNS": "80"}), width_options({"COLUMNS": "9" * 9999})
    ({'width': 20, 'height': 25}, {}, {'width': 10000, 'height': 25})
    """
    said = environment.get("COLUMNS", "")
    if not said.isdigit():  # as Rich asks, before it reads the number
        return {}
    width = int(said) if said.isdecimal() and len(said) <= len(str(MAX_COLUMNS)) else MAX_COLUMNS + 1
    found = min(max(width, MIN_COLUMNS), MAX_COLUMNS)
    return {} if found == width else {"width": found, "height": LINES}  # with both, Rich does not read them itself


OPTIONS = {**colour_options(os.environ), **width_options(os.environ)}

out = Stream(highlight=False, **OPTIONS)
err = Stream(stderr=True, highlight=False, **OPTIONS)


def is_watched(stream: Console) -> bool:
    """Whether somebody looks on, so that what moves may be shown; pipes that are coloured by force have no audience."""
    return stream.file.isatty() and not stream.is_dumb_terminal


def say(text: str) -> None:
    """A line, as it is."""
    out.print(shown(text), soft_wrap=True)


def complain(text: str) -> None:
    """One line on the error stream, as it is."""
    err.print(shown(text), soft_wrap=True)


def shown(text: str, style: str = "") -> Text:
    """A text for the terminal, in which nothing commands it."""
    return Text(visible(text), style=style)


def emit(text: str, end: str = "\n") -> None:
    """A document, for programs: what the stream has no letter for is spelt as JSON does."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    spelt = visible(text).encode(encoding, "calibrant-json").decode(encoding)
    print(spelt, end=end, flush=True)


def _as_json(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    found = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{found[i : i + 4]}" for i in range(0, len(found), 4)), error.end


codecs.register_error("calibrant-json", _as_json)


@contextmanager
def aside(is_aside: bool = True) -> Iterator[None]:
    """What is said goes to the error stream, as a file takes the output."""
    out.stderr = is_aside
    try:
        yield
    finally:
        out.stderr = False
