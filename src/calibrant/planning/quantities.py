"""Counts, durations and sizes as people write them: 1e7, 10min, 16GB."""

import math
import re

from calibrant._validate import InputError

SECONDS = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
BYTES = {
    "B": 1.0,
    "kB": 1e3,
    "KB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "TB": 1e12,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
    "TiB": 2.0**40,
    "K": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
}


def as_count(text: str | float, name: str) -> int:
    """A whole number of at least one, also as 1e7 or 10_000.

    >>> as_count("1e7", "--n")
    10000000
    """
    try:
        value = float(text)
    except (TypeError, ValueError):
        value = math.nan
    if not (math.isfinite(value) and value >= 1 and value == int(value)):
        raise InputError(f"{name} must be a whole number of at least 1, such as 20000 or 1e7; got {text!r}")
    return int(value)


def as_seconds(text: str | float, name: str) -> float:
    """A duration: a number of seconds, or one with its unit.

    >>> as_seconds("10min", "--budget"), as_seconds("1.5h", "--budget"), as_seconds(30, "budget")
    (600.0, 5400.0, 30.0)
    """
    return _measured(text, name, SECONDS, "a positive duration such as 30s, 10min or 2h")


def as_bytes(text: str | float, name: str) -> float:
    """A size: a number of bytes, or one with its unit.

    >>> as_bytes("16GB", "--memory"), as_bytes("0.5 GiB", "--memory")
    (16000000000.0, 536870912.0)
    """
    return _measured(text, name, BYTES, "a positive size such as 500MB, 16GB or 8GiB")


def _measured(text: str | float, name: str, units: dict[str, float], remedy: str) -> float:
    found = re.fullmatch(r"\s*([0-9.]+(?:e[+-]?[0-9]+)?)\s*([A-Za-z]*)\s*", str(text))
    try:
        value = float(found[1]) * (units[found[2]] if found[2] else 1.0) if found else math.nan
    except (KeyError, ValueError):
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{name} must be {remedy}; got {text!r}")
    return value


def duration(seconds: float) -> str:
    """Seconds in words, two digits.

    >>> [duration(x) for x in (0.0004, 0.25, 12, 600, 5400, 1e6)]
    ['0.4 ms', '250 ms', '12 s', '10 min', '1.5 h', '12 d']
    """
    for unit in ("d", "h", "min", "s"):
        if seconds >= 0.999 * SECONDS[unit]:
            return f"{_two_digits(seconds / SECONDS[unit])} {unit}"
    return f"{_two_digits(seconds / SECONDS['ms'])} ms"


def size(bytes: float) -> str:
    """Bytes in words, two digits.

    >>> [size(x) for x in (800, 3.2e7, 8.008e10)]
    ['0.8 kB', '32 MB', '80 GB']
    """
    unit = next((unit for unit in ("TB", "GB", "MB") if bytes >= 0.999 * BYTES[unit]), "kB")
    return f"{_two_digits(bytes / BYTES[unit])} {unit}"


def _two_digits(value: float) -> str:
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 or rounded == int(rounded) else f"{rounded:g}"
