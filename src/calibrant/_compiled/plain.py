"""What loops need where numba does not compile them: multiply-adds with one rounding."""

import math
from fractions import Fraction

from numba import config

IS_PLAIN = bool(vars(config)["DISABLE_JIT"])
"""Whether loops run as they are written, by the wish of ``NUMBA_DISABLE_JIT``."""

SPLIT = 2.0**27 + 1
"""Times a number, it leaves the upper half of its digits."""


def plain_fma(x: float, y: float, z: float) -> float:
    """``x y + z`` with one rounding, where nothing is compiled: the product with what its rounding left (Dekker, 1971)."""
    x, y, z = float(x), float(y), float(z)
    product = x * y
    if not 1e-250 < abs(product) < 1e250 or max(abs(x), abs(y), abs(z)) > 1e250:
        return _exact_fma(x, y, z)
    a, b = SPLIT * x, SPLIT * y
    a, b = a - (a - x), b - (b - y)
    rest = (x - a) * (y - b) - (((product - a * b) - (x - a) * b) - a * (y - b))
    return math.fsum((product, rest, z))


def _exact_fma(x: float, y: float, z: float) -> float:
    """The same for zeros and extremes."""
    if not (math.isfinite(x) and math.isfinite(y)):
        return x * y + z
    if not math.isfinite(z):
        return z
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    try:
        return float(exact) if exact else x * y + z
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
