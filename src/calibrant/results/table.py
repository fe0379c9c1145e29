"""Tables: named columns that notebooks, data frames, Markdown and LaTeX take as they are."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, Never

import numpy as np

from calibrant.results import text as markup
from calibrant.results.text import number


class Table(dict[str, np.ndarray]):
    """Named columns of equal length. It is a dictionary, so ``pandas.DataFrame(table)`` and the like take it; it does not change.

    >>> Table(group=["a", "b"], n=[10, 12])
    group   n
    a      10
    b      12
    """

    def __init__(self, columns: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        super().__init__({k: np.asarray(v) for k, v in {**(columns or {}), **more}.items()})
        if single := [name for name, column in self.items() if not column.ndim]:
            raise ValueError(f"columns must hold a value per row; {single[0]!r} is a single value")
        lengths = {len(v) for v in self.values()}
        if len(lengths) > 1:
            raise ValueError(f"columns have different lengths: {sorted(lengths)}")
        self._length = lengths.pop() if lengths else 0

    def _never(self, *_: Any, **__: Any) -> Never:
        """Refused: a table does not change."""
        raise TypeError("a table does not change; dict(table) is a copy that does")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _never

    def __reduce__(self) -> tuple[Any, ...]:
        return Table, (dict(self),)

    @property
    def n_rows(self) -> int:
        """How many rows there are (``len`` counts columns, as of any mapping)."""
        return self._length

    def rows(self) -> Iterator[dict[str, Any]]:
        """Each row as a dictionary."""
        names = list(self)
        return (dict(zip(names, row, strict=True)) for row in zip(*self.values(), strict=True))

    def to_dict(self) -> dict[str, list[Any]]:
        """Plain lists, one per column."""
        return {name: column.tolist() for name, column in self.items()}

    def to_pandas(self) -> Any:
        """A data frame of pandas, which must be installed.

        >>> Table(group=["a", "b"], n=[10, 12]).to_pandas()["n"].sum()
        np.int64(22)
        """
        return self._frame("pandas")

    def to_polars(self) -> Any:
        """A data frame of polars, which must be installed.

        >>> Table(group=["a", "b"], n=[10, 12]).to_polars().shape
        (2, 2)
        """
        return self._frame("polars")

    def _frame(self, library: Literal["pandas", "polars"]) -> Any:
        import narwhals

        return narwhals.from_dict(dict(self), backend=library).to_native()

    def to_markdown(self) -> str:
        """The table as text that Markdown shows as one; what is not known is left empty.

        >>> print(Table(group=["a", "b"], value=[0.5, np.nan]).to_markdown())
        | group | value |
        |---|---:|
        | a | 0.5 |
        | b | |
        """
        rows = [[_written(value, markup.escaped) for value in row.values()] for row in self.rows()]
        return markup.table([markup.escaped(name) for name in self], rows, self._is_number)

    def to_latex(self) -> str:
        r"""The table for LaTeX, with the rules of the package ``booktabs``; what is not known is left empty.

        >>> print(Table(group=["a_1", "b"], value=[-0.5, np.nan]).to_latex())
        \begin{tabular}{lr}
        \toprule
        group & value \\
        \midrule
        a\_1 & $-$0.5 \\
        b &  \\
        \bottomrule
        \end{tabular}
        """
        rows = [[_written(value, markup.latex) for value in row.values()] for row in self.rows()]
        head, *body = (" & ".join(cells) + r" \\" for cells in ([markup.latex(name) for name in self], *rows))
        columns = "".join("r" if right else "l" for right in self._is_number)
        lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *body, r"\bottomrule"]
        return "\n".join([*lines, r"\end{tabular}"])

    @property
    def _is_number(self) -> list[bool]:
        """Whether each column holds numbers."""
        return [column.dtype.kind in "fiu" for column in self.values()]

    def _repr_html_(self) -> str:
        cells = {name: [_cell(value) for value in column] for name, column in self.items()}
        return markup.frame(markup.grid(cells, self._is_number))

    def __repr__(self) -> str:
        cells = [[name, *map(_cell, column)] for name, column in self.items()]
        widths = [max(map(len, column)) for column in cells]
        return "\n".join(
            "  ".join(
                t.rjust(w) if right else t.ljust(w) for t, w, right in zip(row, widths, self._is_number, strict=True)
            ).rstrip()
            for row in zip(*cells, strict=True)
        )


def _cell(value: object) -> str:
    return (
        number(float(value))
        if isinstance(value, np.integer | np.floating) and not isinstance(value, np.timedelta64)
        else str(value)
    )


def _written(value: object, escaped: Callable[[str], str]) -> str:
    """A cell of a document, empty where the number is not known."""
    return "" if isinstance(value, np.number) and value != value else escaped(_cell(value))
