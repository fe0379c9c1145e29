"""Named columns."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from calibrant.results import markup
from calibrant.results.words import number


class Table(Mapping[str, np.ndarray]):
    """Named columns of equal length; ``pandas.DataFrame(dict(table))`` and the like take it from there.

    >>> Table(group=["a", "b"], n=[10, 12])
    group   n
    a      10
    b      12
    """

    __hash__ = None  # type: ignore[assignment]  # columns are arrays

    def __init__(self, columns: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        self._columns = {k: np.asarray(v) for k, v in {**(columns or {}), **more}.items()}
        lengths = {len(v) for v in self._columns.values()}
        if len(lengths) > 1:
            raise ValueError(f"columns have different lengths: {sorted(lengths)}")
        self._length = lengths.pop() if lengths else 0

    def __getitem__(self, name: str) -> np.ndarray:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def n_rows(self) -> int:
        """How many rows there are (``len`` counts columns, as of any mapping)."""
        return self._length

    def rows(self) -> Iterator[dict[str, Any]]:
        """Each row as a dictionary."""
        names = list(self)
        return (dict(zip(names, row, strict=True)) for row in zip(*self._columns.values(), strict=True))

    def to_dict(self) -> dict[str, list[Any]]:
        """Plain lists, one a column."""
        return {name: column.tolist() for name, column in self._columns.items()}

    def to_markdown(self) -> str:
        """The table as text that Markdown shows as one; what is not known is left empty.

        >>> print(Table(group=["a", "b"], value=[0.5, np.nan]).to_markdown())
        | group | value |
        |---|---:|
        | a | 0.5 |
        | b | |
        """
        rows = [[_written(value) for value in row.values()] for row in self.rows()]
        return markup.table([markup.escaped(name) for name in self], rows, self._is_number)

    @property
    def _is_number(self) -> list[bool]:
        """Whether each column holds numbers."""
        return [column.dtype.kind in "fiu" for column in self._columns.values()]

    def _repr_html_(self) -> str:
        cells = {name: [_cell(value) for value in column] for name, column in self._columns.items()}
        return markup.frame(markup.grid(cells, self._is_number))

    def __repr__(self) -> str:
        cells = [[name, *map(_cell, column)] for name, column in self._columns.items()]
        widths = [max(map(len, column)) for column in cells]
        return "\n".join(
            "  ".join(
                t.rjust(w) if right else t.ljust(w) for t, w, right in zip(row, widths, self._is_number, strict=True)
            ).rstrip()
            for row in zip(*cells, strict=True)
        )


def _cell(value: object) -> str:
    return number(float(value)) if isinstance(value, np.integer | np.floating) else str(value)


def _written(value: object) -> str:
    """A cell in Markdown, empty where the number is not known."""
    return markup.escaped(str(value)) if not isinstance(value, np.number) else "" if value != value else _cell(value)
