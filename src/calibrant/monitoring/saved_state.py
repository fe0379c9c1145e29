"""Plain data of a state, read field by field: what no state holds is refused, by its place."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from calibrant._validate import MAX_COUNT, InputError


class SavedState:
    """A mapping from JSON whose fields are checked as they are read.

    >>> saved = SavedState({"n": 3, "stakes": ["-inf", 0.5]}, "state")
    >>> saved.whole("n"), saved.numbers("stakes").tolist()
    (3, [-inf, 0.5])
    >>> SavedState({"n": -1}, "state").whole("n")
    Traceback (most recent call last):
    ...
    calibrant._validate.InputError: state.n must be a whole number from 0 to 9007199254740992; got -1
    """

    def __init__(self, data: Any, place: str) -> None:
        if not isinstance(data, Mapping):
            raise InputError(f"{place} must be an object of named fields; got {_shown(data)}")
        self.data, self.place = data, place

    def any(self, name: str) -> Any:
        """A field, whatever it holds."""
        if name not in self.data:
            raise InputError(f"{self.place} has no field {name!r}")
        return self.data[name]

    def part(self, name: str) -> Self | None:
        """A field that holds named fields itself, or nothing."""
        value = self.any(name)
        return None if value is None else type(self)(value, f"{self.place}.{name}")

    def whole(self, name: str, least: int = 0, most: int = MAX_COUNT) -> int:
        """A whole number."""
        return self._whole(self.any(name), name, least, most)

    def number(self, name: str) -> float:
        """A number, or the text of one."""
        return self._number(self.any(name), name)

    def text(self, name: str, *known: str) -> str:
        """A text, one of those that are known."""
        value = self.any(name)
        if not isinstance(value, str) or (known and value not in known):
            raise self.refusal(name, f"one of {', '.join(known)}" if known else "a text", value)
        return value

    def list(self, name: str) -> Sequence[Any]:
        """Several values."""
        value = self.any(name)
        if not isinstance(value, list | tuple):
            raise self.refusal(name, "a list", value)
        return value

    def numbers(self, name: str) -> np.ndarray:
        """Several numbers, ``(n,)``."""
        return np.array([self._number(value, name) for value in self.list(name)], dtype=np.float64)

    def wholes(self, name: str, least: int, most: int) -> np.ndarray:
        """Several whole numbers, ``(n,)``."""
        return np.array([self._whole(value, name, least, most) for value in self.list(name)], dtype=np.int64)

    def rows(self, name: str, width: int) -> np.ndarray:
        """Several rows of so many numbers, ``(n, width)``."""
        parts = [type(self)({name: row}, self.place).numbers(name) for row in self.list(name)]
        if any(len(part) != width for part in parts):
            raise self.refusal(name, f"rows of {width} numbers", [len(part) for part in parts][:5])
        return np.array(parts, dtype=np.float64).reshape(-1, width)

    def refusal(self, name: str, wish: str, value: object) -> InputError:
        """The error that says what a field must be."""
        return InputError(f"{self.place}.{name} must be {wish}; got {_shown(value)}")

    def _whole(self, value: Any, name: str, least: int, most: int) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self.refusal(name, f"a whole number from {least} to {most}", value)
        return value

    def _number(self, value: Any, name: str) -> float:
        try:
            found = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError, OverflowError):
            found = math.nan
        if math.isnan(found):
            raise self.refusal(name, "a number", value)
        return found


def _shown(value: object) -> str:
    """A value in a message; no more of it than one can read."""
    if isinstance(value, int) and abs(value) > MAX_COUNT:
        return f"a number of {value.bit_length():,} bits"
    text = ascii(value) if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:60]}…"
