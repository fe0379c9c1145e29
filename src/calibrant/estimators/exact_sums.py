"""Sums over cells without rounding, so that no order of rows and no split of the data changes a digit.

Every double is a whole multiple of ``2^-1074``. Sums are kept as Python integers in that unit. They come from a few sums
of doubles that are exact, because the rows of one block cannot fill 53 bits.
"""

import numpy as np

UNIT = 1074
"""Sums are in units of two to the minus this."""

BLOCK = 1 << 16
"""Rows at a time: their intermediate arrays stay in the cache, and sums of 36 bits stay exact."""

HIGH, LOW = 19, 37
"""Bits of a share above and below a cut. What a share has below 2^-56 is rounded away, alike in every block."""

ROW = 2.0**36
"""Added to the high part of every row: sums of high parts stay below it, so that the quotient counts rows."""

ROWS = 1 << 26
"""Rows whose low parts fit into 64 bits."""

STEP = 32
"""Bits of a number of any size that are added at a time."""


def add_shares(totals: np.ndarray, shares: np.ndarray, cell: np.ndarray) -> None:
    """Add the rows of one block to ``totals``, ``(3, cells)`` integers: counts, and high and low parts of the shares.

    >>> totals = np.zeros((3, 2), dtype=np.int64)
    >>> add_shares(totals, np.array([0.25, 0.5, 1.0]), np.array([0, 0, 1]))
    >>> totals[0], to_float(joined(totals))
    (array([2, 1]), array([0.75, 1.  ]))
    """
    size = totals.shape[1]
    rest = shares * 2.0**HIGH
    high = np.rint(rest)
    rest -= high
    rest *= 2.0**LOW
    low = np.bincount(cell, weights=np.rint(rest, out=rest), minlength=size)
    high += ROW
    packed = np.bincount(cell, weights=high, minlength=size)
    counts = np.floor(packed / ROW)
    totals += np.stack([counts, packed - counts * ROW, low]).astype(np.int64)


def joined(totals: np.ndarray) -> np.ndarray:
    """The sums of the shares of at most ``ROWS`` rows."""
    return _shifted(totals[1], UNIT - HIGH) + _shifted(totals[2], UNIT - HIGH - LOW)


def wholes(counts: np.ndarray) -> np.ndarray:
    """Whole numbers as sums."""
    return _shifted(counts, UNIT)


def sum_any(values: np.ndarray, cell: np.ndarray, size: int) -> np.ndarray:
    """The sum of finite numbers of any size in each cell, for at most 2^20 rows.

    >>> to_float(sum_any(np.array([1e300, 1.0, -1e300]), np.zeros(3, dtype=int), 1))
    array([1.])
    """
    total = np.zeros(size, dtype=object)
    rest = values.astype(np.float64)
    while np.any(rest):
        exponent = int(np.frexp(np.abs(rest).max())[1])  # all are below two to this
        shift = max(exponent - STEP, -UNIT)
        part = np.trunc(np.ldexp(rest, -shift))
        rest = rest - np.ldexp(part, shift)
        total += _shifted(np.bincount(cell, weights=part, minlength=size).astype(np.int64), UNIT + shift)
    return total


def _shifted(whole: np.ndarray, bits: int) -> np.ndarray:
    return np.array([int(x) << bits for x in whole.tolist()], dtype=object)


def to_float(sums: np.ndarray) -> np.ndarray:
    """The nearest doubles."""
    return np.array([x / (1 << UNIT) for x in sums], dtype=np.float64)
