"""Ratios of kernel sums with less bias: what happened near a row, and its square."""

from dataclasses import dataclass
from typing import Self

from calibrant._array import namespace
from calibrant._softmax import Softmax
from calibrant.typing import Array

FULL, PARTIAL, NONE = True, "partial", False
"""How much of the bias is removed."""

EFFECTIVE = 25.0
"""Columns that must matter to a row before its ratios are corrected: below, the correction is larger than the bias."""

ALONE = 1e-8
"""Where the squared weights come this near to one, a single column holds all weight and says nothing about a square."""


@dataclass(frozen=True, eq=False)
class Ratios:
    """Frequencies ``R = E[y | f]`` around each row, ``(n, q)``, and estimates of their squares.

    With weights w that sum to one over m columns and outcomes y of 0 or 1, the plain ``R = sum w y`` is biased by
    O(1/m), and its square, moreover, by the variance of R. ``Q = (R^2 - sum w^2 y) / (1 - sum w^2)`` leaves out the
    pairs of a column with itself and is a ratio of two unbiased sums. ``R + c`` and ``Q + 4 R c`` with
    ``c = m / (m - 1) sum w^2 (y - R)`` remove the bias of the ratios up to O(1/m^2).
    Popordanoska, Sayer & Blaschko (2022), equations (3), (7) and proposition 3.4.
    """

    frequency: Array
    square: Array

    @classmethod
    def of(cls, local: Softmax, n: int, debias: bool | str) -> Self:
        """From averages around some of n rows: plain, with unbiased squares (``"partial"``), or with unbiased ratios."""
        xp = namespace(local.mean)
        plain, squares = local.mean, local.squares[:, None]
        if debias == NONE:
            return cls(plain, plain**2)
        several = 1 - squares > ALONE
        pairs = xp.where(several, 1 - squares, xp.ones_like(squares))
        square = xp.where(several, (plain**2 - local.mean_of_squares) / pairs, plain**2)
        m = n - 1
        if debias == PARTIAL or m < EFFECTIVE:
            return cls(plain, square)
        shift = m / (m - 1) * (local.mean_of_squares - squares * plain)
        shift = xp.where(squares * EFFECTIVE <= 1, shift, xp.zeros_like(shift))
        return cls(plain + shift, square + 4 * plain * shift)
