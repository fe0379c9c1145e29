"""Sums over cells: of several columns at once, and without rounding, so that no order of rows changes a digit.

Every double is a whole multiple of ``2^-1074``. Sums are kept as Python integers in that unit. They come from a few sums
of doubles that are exact, because the rows of one block cannot fill 53 bits.
"""

from collections.abc import Iterable

import numpy as np

UNIT = 1074
"""Sums are in units of two to the minus this."""

ONE = 1 << UNIT
"""The number one as a sum."""

MAX_BITS = 4096
"""Bits before the point that a sum may have: squares and cubes of the largest numbers have fewer."""

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

WIDE_STEP = 36
"""The same for the rows of one block."""

HUGE = 2.0**480
"""Numbers whose products and parts of products are sure to be finite lie below."""

SPLITTER = 2.0**27 + 1
"""Cuts the digits of a double in half."""


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


def total(values: np.ndarray) -> int:
    """The sum of finite numbers, of any size and however many.

    >>> total(np.array([1e300, 1.0, -1e300])) == total(np.array([0.25, 0.75]))
    True
    """
    return sum(_block_total(values[i : i + BLOCK].astype(np.float64)) for i in range(0, len(values), BLOCK))


def _block_total(rest: np.ndarray) -> int:
    found = 0
    while largest := np.abs(rest).max():
        shift = max(int(np.frexp(largest)[1]) - WIDE_STEP, -UNIT)
        part = np.trunc(_times_power(rest, -shift))
        rest = rest - _times_power(part, shift)
        found += int(part.sum()) << (UNIT + shift)
    return found


def _times_power(x: np.ndarray, exponent: int) -> np.ndarray:
    """``x 2^exponent``; products are faster where the power is a number."""
    return x * 2.0**exponent if abs(exponent) < 1000 else np.ldexp(x, exponent)


def dot(a: np.ndarray, b: np.ndarray) -> int:
    """The sum of the products of finite numbers; what the products have below the unit is dropped.

    >>> dot(np.array([1e200, 3.0]), np.array([1e200, 0.5])) - dot(np.array([1e200]), np.array([1e200])) == total(np.array([1.5]))
    True
    """
    cuts = [slice(i, i + BLOCK) for i in range(0, len(a), BLOCK)]
    return sum(_block_dot(a[cut].astype(np.float64), b[cut].astype(np.float64)) for cut in cuts)


def _block_dot(a: np.ndarray, b: np.ndarray) -> int:
    found, fits = 0, (np.abs(a) < HUGE) & (np.abs(b) < HUGE)
    if not fits.all():
        large = zip(a[~fits].tolist(), b[~fits].tolist(), strict=True)
        found = sum(_whole(x) * _whole(y) >> UNIT for x, y in large)
        a, b = a[fits], b[fits]
    product, error = _two_product(a, b)
    return found + total(product) + total(error)


def _two_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Products and what their rounding left out, exactly. Dekker (1971)."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _split(a), _split(b)
    return product, a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


def _split(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers as sums of two of half the digits."""
    scaled = x * SPLITTER
    high = scaled - (scaled - x)
    return high, x - high


def _whole(x: float) -> int:
    numerator, denominator = x.as_integer_ratio()
    return (numerator << UNIT) // denominator


def to_text(sums: Iterable[int]) -> list[str]:
    """Sums as short text, ``ap-3`` for 10 / 8, from which they come back as they were.

    >>> to_text([total(np.array([1.25])), 0]), from_text(["5p-2", "0p0"])[0] == total(np.array([1.25]))
    (['5p-2', '0p0'], True)
    """
    found = []
    for x in sums:
        zeros = (x & -x).bit_length() - 1 if x else UNIT
        found.append(f"{x >> zeros:x}p{zeros - UNIT}")
    return found


def from_text(texts: Iterable[str]) -> np.ndarray:
    """The sums of :func:`to_text`."""
    parts = [text.split("p") for text in texts]
    whole = [(int(digits, 16), int(power)) for digits, power in parts]
    if any(digits.bit_length() + power > MAX_BITS for digits, power in whole):
        raise ValueError("a sum has more digits than any of doubles")
    return np.array([digits << (power + UNIT) for digits, power in whole], dtype=object)


def _shifted(whole: np.ndarray, bits: int) -> np.ndarray:
    return np.array([int(x) << bits for x in whole.tolist()], dtype=object)


def to_float(sums: np.ndarray) -> np.ndarray:
    """The nearest doubles."""
    return np.array([x / ONE for x in sums.tolist()], dtype=np.float64)


def cell_sums(cell: np.ndarray, columns: np.ndarray, size: int = 0) -> np.ndarray:
    """Sums of columns ``(n, m)`` over the rows of each cell ``(n,)``, ``(cells, m)``; at least ``size`` cells. O(n m).

    >>> cell_sums(np.array([0, 2, 0]), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    array([[6., 8.],
           [0., 0.],
           [3., 4.]])
    """
    return np.stack([np.bincount(cell, column, minlength=size) for column in columns.T], axis=1)
