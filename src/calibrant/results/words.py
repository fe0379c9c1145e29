"""Numbers and settings as people read them."""

import math
from dataclasses import fields, is_dataclass


def number(x: float) -> str:
    """A number as people read it: four significant digits, thousands grouped."""
    x = float(x)
    if not math.isfinite(x):
        return {math.inf: "∞", -math.inf: "-∞"}.get(x, "NaN")
    if x.is_integer() and abs(x) < 1e15:
        return f"{int(x):,}"
    return f"{x:,.1f}" if abs(x) >= 1000 else f"{x:.4g}"


ROUNDING = 1e-14
"""Shares that differ by less are equal: means of numbers up to one are not known better."""


def how_many(n: int, one: str, many: str | None = None) -> str:
    """So many of something, in the singular where it is one; the plural is the singular with an s unless it is given.

    >>> how_many(1, "row"), how_many(1_200, "row"), how_many(1, "row is", "rows are")
    ('1 row', '1,200 rows', '1 row is')
    """
    return f"{n:,} {one if n == 1 else many or f'{one}s'}"


def percent(x: float) -> str:
    """A share in percent, with three significant digits where it is small; what rounding left of nothing is nothing.

    >>> percent(0.4567), percent(0.0414), percent(0.000523), percent(-2e-16)
    ('45.7 %', '4.14 %', '0.0523 %', '0.0 %')
    """
    return f"{100 * x:z.1f} %" if not ROUNDING < abs(x) < 0.0995 else f"{100 * x:.3g} %"


def brief(x: object) -> str:
    """Settings as people read them: what differs from the defaults, and a leading number; six digits of it.

    >>> from calibrant import ECE, EqualMass
    >>> brief(ECE(EqualMass(10)))
    'ECE(bins=EqualMass(n_bins=10))'
    """
    if is_dataclass(x) and not isinstance(x, type):
        values = [(f, getattr(x, f.name)) for f in fields(x)]
        said = [
            f"{f.name}={brief(value)}"
            for i, (f, value) in enumerate(values)
            if not _is_default(value, f.default)
            or (i == 0 and isinstance(value, int | float) and not isinstance(value, bool))
        ]
        return f"{type(x).__name__}({', '.join(said)})"
    if isinstance(x, tuple):
        return f"({', '.join(map(brief, x))}{',' if len(x) == 1 else ''})"
    return f"{x:.6g}" if isinstance(x, float) else repr(x)


def _is_default(value: object, default: object) -> bool:
    return type(value) is type(default) and bool(value == default)
