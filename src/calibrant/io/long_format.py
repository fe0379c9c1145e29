"""Ensembles with a line per member, as weather services and simulations write them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np

from calibrant._validate import InputError
from calibrant._wording import said
from calibrant.io.columns import Columns
from calibrant.io.written_numbers import Role
from calibrant.results import how_many


class LongFormat(Columns):
    """The columns of a file in which each member of a forecast has a line: one row per forecast, in the order of their first lines.

    A column of numbers that differ within a forecast has a column per member, in the order of the file; all others must say the
    same on every line of a forecast, and say it once.
    """

    def __init__(self, lines: Columns, wish: str) -> None:
        super().__init__(lines.path, lines.names)
        self.lines, self.wish, self.notes = lines, wish, lines.notes
        keys = lines.values(lines.find(wish, (), "forecast_id"), "group").astype(str)
        found, first, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        count, self.order = np.bincount(which.ravel()), np.argsort(first, kind="stable")
        if count.max() == 1:
            raise InputError(
                f"{said('forecast_id')} {wish!r} differs from line to line: give a column that members of a forecast share, or "
                f"leave {said('forecast_id')} out"
            )
        members = int(np.bincount(count).argmax())
        if (odd := np.flatnonzero(count != members)).size:
            name = ", ".join(found[odd[0]])
            raise InputError(
                f"{lines.path.name}: {how_many(len(odd), 'forecast has', 'forecasts have')} not {members} members as the others, "
                f"first {name!r} with {count[odd[0]]}: leave these lines out"
            )
        self.which = np.argsort(self.order)[which.ravel()]
        self.places = np.argsort(self.which, kind="stable").reshape(len(count), members)
        self.keys = [", ".join(found[i]) for i in self.order]

    def load(self, names: Sequence[str], role: Role = "label") -> np.ndarray:
        """One row per forecast; of numbers that differ within one, ``(n, members)``."""
        values = self.lines.load(names, role)[self.places]
        differs = (values != values[:, :1]).any(axis=(1, 2))
        if not differs.any():
            return values[:, 0]
        if role == "number" and len(names) == 1:
            return values[:, :, 0]
        key = self.keys[int(differs.argmax())]
        raise InputError(
            f"{self.path.name}: {', '.join(names[:3])} must say the same on every line of a forecast, and differs within {key!r}"
        )

    def are_missing(self, name: str, role: Role) -> np.ndarray:
        """Forecasts in which a line has no value."""
        return np.asarray(self.lines.are_missing(name, role)[self.places].any(axis=1))

    def of_rows(self, keep: np.ndarray) -> Self:
        """All lines of some forecasts."""
        return type(self)(self.lines.of_rows(keep[self.which]), self.wish)

    def width(self, name: str) -> int:
        """One per member where they differ."""
        return int(self.load([name], "number").shape[1])

    def write(self, new: Mapping[str, np.ndarray], out: Path) -> None:
        """There is no line that a new value of a forecast belongs to."""
        raise InputError(
            f"forecasts with a line per member cannot be written to {out.name}: --save the map and apply it in Python"
        )
