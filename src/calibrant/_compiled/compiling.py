"""How loops are compiled: with which options, on memory that begins where lines of the cache do, with multiply-adds."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeVar, cast

import numpy as np
from numba import config, njit, types
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., object])

IS_PLAIN = bool(vars(config)["DISABLE_JIT"])
"""Whether loops run as they are written, by the wish of ``NUMBA_DISABLE_JIT``."""

SPLIT = 2.0**27 + 1
"""Times a number, it leaves the upper half of its digits."""


def compiled(function: F, **options: bool) -> F:
    """Compile at the first call, without the interpreter lock, kept on disk where a folder is writable.

    There are no ``fastmath`` flags, so that no compiler may change a digit.
    """
    if IS_PLAIN:  # NumPy would warn of what the compiled code passes over
        return np.errstate(all="ignore")(function)

    def compile_with(cache: bool) -> F:
        # numba's default check for division by zero would keep loops from becoming vector instructions.
        make: Any = njit  # whose types leave out _nrt
        return cast(F, make(function, nogil=True, error_model="numpy", cache=cache, **options))

    try:
        return compile_with(cache=True)
    except RuntimeError:  # numba finds no place for its cache, as in a read-only container
        return compile_with(cache=False)


def borrowing(function: F) -> F:
    """The same for code that takes no memory of its own.

    Else numba counts, in one place for all threads, who holds an array: at each call that is given a part of one, which took
    more than half of the time of sums over pairs.
    """
    return compiled(function, _nrt=False)


def aligned(*shape: int) -> np.ndarray:
    """Zeros that begin where a line of the cache does: vectors of 64 bytes that cross lines take twice as long.

    >>> aligned(2, 3).ctypes.data % 64
    0
    """
    size = math.prod(shape)
    zeros = np.zeros(size + 7)
    first = -zeros.ctypes.data // 8 % 8
    return zeros[first : first + size].reshape(shape)


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


def _fma(typing: Any, x: Any, y: Any, z: Any) -> Any:  # noqa: ARG001
    signature = types.float64(types.float64, types.float64, types.float64)
    return signature, lambda _, builder, __, terms: builder.fma(*terms)


fma = cast(Callable[[float, float, float], float], plain_fma if IS_PLAIN else intrinsic(_fma))
"""``x y + z`` with one rounding, on every processor."""
