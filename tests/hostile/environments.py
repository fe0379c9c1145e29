"""Environments in which commands must end as they do elsewhere, each in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Environment:
    """Variables, those that are taken away, and what the shell does to the streams."""

    name: str
    variables: dict[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    streams: str = ""
    encoding: str = "utf-8"
    has_output: bool = True


ENVIRONMENTS = [
    *(Environment(f"{n} columns", {"COLUMNS": str(n), "LINES": "1"}) for n in range(5)),
    Environment("endless columns", {"COLUMNS": "9" * 30}),
    Environment("odd columns", {"COLUMNS": "x", "LINES": "-1"}),
    *(
        Environment(name, {"PYTHONIOENCODING": name}, encoding=name)
        for name in ("ascii", "latin-1", "cp1252", "utf-16")
    ),
    Environment("strict ascii", {"PYTHONIOENCODING": "ascii:strict"}, encoding="ascii"),
    Environment("language C", {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    Environment("no language", missing=("LC_ALL", "LANG", "LC_CTYPE")),
    Environment("dumb terminal", {"TERM": "dumb"}),
    Environment("no terminal", missing=("TERM",)),
    Environment("colours by force", {"FORCE_COLOR": "1", "TERM": "xterm-256color"}),
    Environment("no home", missing=("HOME",)),
    Environment("home that is not there", {"HOME": "/nowhere/at/all"}),
    Environment("no docstrings", {"PYTHONOPTIMIZE": "2"}),
    Environment("warnings are errors", {"PYTHONWARNINGS": "error"}),
    Environment("development mode", {"PYTHONDEVMODE": "1"}),
    Environment("no bytecode", {"PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CACHE_DIR": "/proc/nowhere"}),
    Environment("closed input", streams="<&-"),
    Environment("closed output", streams=">&-", has_output=False),
    Environment("closed errors", streams="2>&-"),
    Environment("all closed", streams="<&- >&- 2>&-", has_output=False),
    Environment("temporary folder that is not there", {"TMPDIR": "/nowhere"}),
]


def started(environment: Environment, arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[bytes]:
    """A command there."""
    variables = {key: value for key, value in os.environ.items() if key not in environment.missing}
    command = 'exec "$0" -m calibrant "$@" ' + environment.streams
    return subprocess.run(
        ["/bin/sh", "-c", command, sys.executable, *arguments],
        env={**variables, **environment.variables},
        cwd=folder,
        capture_output=True,
        check=False,
        timeout=600,  # a hang, not a machine that others use
    )
