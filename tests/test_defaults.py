"""Defaults are promised: a call that leaves an argument out does the same in every release of a major version."""

import inspect
from enum import Enum
from importlib import import_module
from pathlib import Path

import pytest

from calibrant._names import PACKAGES, homes

PROMISED = Path(__file__).parent / "golden" / "defaults.txt"
NEED = {"losses": "torch", "sklearn": "sklearn"}


def stated(package):
    """A line for each public name of a package: its arguments that may be left out, and what they are then."""
    door = import_module(f"calibrant.{package}")
    for name in sorted(homes(package)):
        value = getattr(door, name)
        is_called = inspect.isroutine(value) or (inspect.isclass(value) and not issubclass(value, Warning | Enum))
        if not is_called or getattr(value, "_is_protocol", False):
            continue
        given = [p for p in inspect.signature(value).parameters.values() if p.default is not p.empty]
        if given:
            yield f"{package}.{name}: " + ", ".join(f"{p.name}={shown(p.default)}" for p in given)


def shown(default):
    return getattr(default, "__name__", None) or repr(default)


@pytest.mark.parametrize("package", PACKAGES)
def test_defaults_are_those_promised(package):
    pytest.importorskip(NEED.get(package, "numpy"))
    promised = [line for line in PROMISED.read_text().splitlines() if line.startswith(f"{package}.")]
    assert list(stated(package)) == promised
