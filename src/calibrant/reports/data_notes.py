"""What to know about any data before believing numbers: doubles, rounding, weights."""

from collections.abc import Iterable

import numpy as np

from calibrant.results import how_many

MOST_NAMES = 10
"""Names that a list shows."""

MANY = 0.05
"""The share of doubles from which it is said."""


def effective_rows(weights: np.ndarray | None) -> list[str]:
    """How many rows of equal weight tell as much: ``(sum w)^2 / sum w^2``.

    >>> effective_rows(np.array([1.0, 1.0, 0.0, 4.0]))
    ['Weights are unequal: these 4 rows tell as much as 2 of equal weight; 1 has none.']
    """
    if weights is None:
        return []
    effective = float(weights.sum() ** 2 / (weights**2).sum())
    if effective > 0.999 * len(weights):
        return []
    idle = int((weights == 0).sum())
    more = f"; {how_many(idle, 'has', 'have')} none" if idle else ""
    return [f"Weights are unequal: these {len(weights):,} rows tell as much as {effective:,.0f} of equal weight{more}."]


def duplicated(rows: np.ndarray, what: str) -> list[str]:
    """How many rows repeat an earlier one, bit by bit.

    >>> duplicated(np.array([[0.5], [0.5], [0.2], [0.5]]), "predictions")
    ['50.0 % of the predictions repeat an earlier one: there are 2 different ones.']
    """
    table = np.ascontiguousarray(rows)
    if table.ndim != 2 or len(table) < 2:
        return []
    different = len(np.unique(table[:, 0] if table.shape[1] == 1 else _as_bytes(table)))
    share = 1 - different / len(table)
    if share < MANY:
        return []
    return [f"{100 * share:.1f} % of the {what} repeat an earlier one: there are {different:,} different ones."]


def _as_bytes(table: np.ndarray) -> np.ndarray:
    """Each row as one value that can be compared."""
    return table.view(np.dtype((np.void, table.dtype.itemsize * table.shape[1])))[:, 0]


def precision(values: np.ndarray) -> list[str]:
    """Whether numbers came in fewer digits than doubles have.

    >>> precision(np.array([0.1], dtype=np.float32))
    ['Probabilities are in single precision: differences below 1e-7 are rounding.']
    """
    names = {2: ("half", "1e-3"), 4: ("single", "1e-7")}
    if values.dtype.kind != "f" or values.dtype.itemsize not in names:
        return []
    name, size = names[values.dtype.itemsize]
    return [f"Probabilities are in {name} precision: differences below {size} are rounding."]


def listed(names: Iterable[object]) -> str:
    """Names, the first ten of them.

    >>> listed("abc"), listed(range(12))
    ('a, b, c', '0, 1, 2, 3, 4, 5, 6, 7, 8, 9 …')
    """
    found = [str(name) for name in names]
    return f"{', '.join(found[:MOST_NAMES])}{' …' if len(found) > MOST_NAMES else ''}"
