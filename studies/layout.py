"""Tables of studies as pages show them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.results import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Section:
    """A part of a page: words, a picture and a table, where there are any."""

    name: str
    title: str
    table: Table | None = None
    figure: "Figure | None" = None
    text: str = ""


def wide(table: Table, names: Sequence[str], text: Callable[[dict[str, Any]], str], across: str = "n") -> Table:
    """A row for every combination of ``names``, a column for every size n (or what is ``across``), ``text`` in the cells.

    >>> wide(Table(test=["a", "a", "b"], n=[10, 20, 10], rate=[0.1, 0.2, 0.3]), ["test"], lambda row: f"{row['rate']:.2f}")
    test  n = 10  n = 20
    a     0.10    0.20
    b     0.30
    """
    sizes = [f"{across} = {n:,}" for n in dict.fromkeys(table[across].tolist())]
    groups: dict[tuple[object, ...], dict[str, str]] = {}
    for row in table.rows():
        groups.setdefault(tuple(row[name] for name in names), {})[f"{across} = {row[across]:,}"] = text(row)
    columns = {name: [key[i] for key in groups] for i, name in enumerate(names)}
    return Table({**columns, **{size: [cells.get(size, "") for cells in groups.values()] for size in sizes}})


def beside(value: float, published: float, digits: int) -> str:
    """A number, with the published one in parentheses where there is one.

    >>> beside(0.12345, 0.125, 3), beside(0.12345, np.nan, 2)
    ('0.123 (0.125)', '0.12')
    """
    return f"{value:.{digits}f}" + (f" ({published:.{digits}f})" if np.isfinite(published) else "")


def differences(table: Table) -> list[str]:
    """The columns that say how far values are from what was published, in units of what is allowed or of chance.

    >>> differences(Table(n=[1], z=[0.5], sd_z=[0.2], part=[0.9]))
    ['z', 'sd_z', 'part']
    """
    return [name for name in table if name in ("z", "part") or name.endswith("_z")]


def agreement(table: Table, bound: float, unit: str) -> str:
    """How far the table is from the published values, in words."""
    lines = []
    for name in differences(table):
        z = table[name][np.isfinite(table[name])]
        lines.append(f"* `{name}`: {len(z)} cells compared, mean {z.mean():.2f}, largest {z.max():.2f}")
    if "deviation" in table:
        off = np.abs(table["deviation"][np.isfinite(table["deviation"])])
        lines.append(f"* deviation: mean {off.mean():.3f}, largest {off.max():.3f}")
    return "\n".join([f"Differences from what was published, in {unit} (bound {bound}):", "", *lines])
