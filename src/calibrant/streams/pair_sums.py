"""Exact sums of pairs of numbers and of their products: means, ratios and the spread around them, from one pass."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant.estimators.exact_sums import UNIT, dot, from_text, to_text, total


@dataclass(frozen=True)
class PairSums:
    """``sum a``, ``sum b``, ``sum a^2``, ``sum ab`` and ``sum b^2`` without rounding, as whole numbers of a tiny unit.

    So sums of squares lose no digits where the spread is small beside the mean, and parts add up to the whole in any order.
    Infinite values of a are added up on their own, in ``special``.

    >>> pairs = PairSums.of(np.array([1e9, 1e9 + 1, 1e9 + 2]), np.ones(3))
    >>> pairs.ratio, pairs.squares
    (1000000001.0, 2.0)
    """

    sums: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)
    special: float = 0.0

    @classmethod
    def of(cls, a: np.ndarray, b: np.ndarray | None = None) -> Self:
        """The sums of some pairs; b is 1 where it is not given."""
        finite = np.isfinite(a)
        special = 0.0
        if not finite.all():
            with np.errstate(invalid="ignore"):  # infinities of both signs have no sum
                special = float(a[~finite].sum())
            a = np.where(finite, a, 0.0)
        if b is None:
            count, first = len(a) << UNIT, total(a)
            return cls((first, count, dot(a, a), first, count), special)
        return cls((total(a), total(b), dot(a, a), dot(a, b), dot(b, b)), special)

    def __add__(self, other: "PairSums") -> "PairSums":
        added: Any = tuple(x + y for x, y in zip(self.sums, other.sums, strict=True))
        return PairSums(added, self.special + other.special)

    @property
    def first(self) -> float:
        """``sum a``."""
        return quotient(self.sums[0], 1 << UNIT) + self.special

    @property
    def second(self) -> float:
        """``sum b``."""
        return quotient(self.sums[1], 1 << UNIT)

    @property
    def ratio(self) -> float:
        """``R = sum a / sum b``."""
        return quotient(self.sums[0], self.sums[1]) + self.special

    @property
    def squares(self) -> float:
        """``sum (a - R b)^2``; not a number where some a are infinite."""
        if self.special != 0:
            return np.nan
        a, b, aa, ab, bb = self.sums
        return quotient(aa * b * b - 2 * a * b * ab + a * a * bb, b * b << UNIT)

    def to_list(self) -> list[str]:
        """Texts for JSON."""
        return [*to_text(self.sums), repr(self.special)]

    @classmethod
    def from_list(cls, texts: Sequence[str]) -> Self:
        """The sums of :meth:`to_list`."""
        *sums, special = texts
        exact: Any = tuple(int(x) for x in from_text(sums))
        return cls(exact, float(special))


def quotient(a: int, b: int) -> float:
    """The nearest double; infinite where there is none."""
    try:
        return a / b
    except OverflowError:
        return np.inf if (a > 0) == (b > 0) else -np.inf
