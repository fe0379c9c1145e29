"""What workers of a cluster have installed, and the refusal of those that would fail or give other digits."""

import platform
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

import numpy as np

import calibrant
from calibrant._validate import InputError

Versions = dict[str, str | None]
"""What is installed, by name; ``None`` where it is not."""


def versions_here() -> Versions:
    """What this process has.

    >>> sorted(versions_here())
    ['NumPy', 'Python', 'calibrant']
    """
    return {"Python": platform.python_version(), "calibrant": calibrant.__version__, "NumPy": np.__version__}


def asking() -> Callable[[], Versions]:
    """A function that says what its process has, also where calibrant is not installed.

    A function inside a function travels as code. One of this module would travel as its name, and could not be found there.
    """

    def installed() -> Versions:
        import importlib
        import platform

        found: Versions = {"Python": platform.python_version()}
        for name, module in (("calibrant", "calibrant"), ("NumPy", "numpy")):
            try:
                found[name] = importlib.import_module(module).__version__
            except ImportError:
                found[name] = None
        return found

    return installed


@contextmanager
def explained(client: Any, *known: type[Exception]) -> Iterator[None]:
    """Errors of work on a cluster, of which a worker that came later and lacks what it needs is the likeliest cause.

    Errors in words of our own, of connections, and those that are ``known`` are handed on.
    """
    try:
        yield
    except Exception as error:
        if not isinstance(error, (InputError, OSError, CancelledError, *known)):
            check_versions(client.run(asking()))
        raise


def check_versions(workers: Mapping[str, Any]) -> None:
    """Refuse workers without calibrant, of another version of it, or of another minor version of Python or NumPy.

    >>> check_versions({"tcp://10.0.0.7:4000": {**versions_here(), "calibrant": None}})
    Traceback (most recent call last):
    ...
    calibrant._validate.InputError: worker tcp://10.0.0.7:4000 has no calibrant: pip install calibrant==... there, ...
    """
    here = versions_here()
    for address, found in workers.items():
        for name, mine in here.items():
            there = found.get(name)
            if there is None:
                remedy = f"pip install {name.lower()}=={mine} there, and start it again"
                raise InputError(f"worker {address} has no {name}: {remedy}{_others(workers, name, None)}")
            if not _agree(name, str(mine), there):
                raise InputError(
                    f"worker {address} has {name} {there}, and {mine} is here: install the same on both"
                    f"{_others(workers, name, there)}"
                )


def _agree(name: str, mine: str, there: str) -> bool:
    """The same, or of Python and NumPy the same but for the last number."""
    return mine == there if name == "calibrant" else mine.split(".")[:2] == there.split(".")[:2]


def _others(workers: Mapping[str, Any], name: str, there: str | None) -> str:
    """How many other workers are alike."""
    count = sum(found.get(name) == there for found in workers.values()) - 1
    return f" (and {count:,} more)" if count else ""
