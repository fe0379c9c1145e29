"""Means of the Laplacian and the Gaussian kernel under Laplace and normal noise, in closed form.

The textbook formulas are divided differences: they lose every digit where two scales meet and divide by zero where one
vanishes. Here they are rewritten as sums of positive terms. All functions work element by element on arrays of one
library, broadcast, and pass gradients; scales are nonnegative and ``z`` counts by its size. No element costs more than
another: there are no data-dependent branches.
"""

from collections.abc import Callable
from math import factorial, pi, prod, sqrt
from typing import Any, TypeAlias

import numpy as np

from calibrant._array import namespace
from calibrant.typing import Array

Erfcx: TypeAlias = Callable[[Array], Array]
"""The scaled complementary error function ``exp(x^2) erfc(x)`` of an array library."""

# exp(-800) is zero in double precision, and the ratios below stay finite.
_UNDERFLOW = 800.0

# The next term is 1/19! < 1e-17 at u = 1, where the series ends.
_SECOND = tuple((-1) ** k / factorial(k + 2) for k in range(17))

# From 16 on the next terms of the asymptotic series of the Mills ratio and of its slope are 4e-17 and 1e-17; below, the
# slope 1 - x R(x) loses at most a factor 256 by cancellation.
_FAR = 16.0
_RATIO = tuple((-1.0) ** n * prod(range(1, 2 * n, 2)) for n in range(11))
_SLOPE = tuple((-1.0) ** n * prod(range(1, 2 * n + 2, 2)) for n in range(13))

# Below -4 the Mills ratio is a Gaussian and a remainder; above, one evaluation keeps the factor exp(-z^2 / 2) common.
_TAIL = -4.0

# Close scales are differenced by quadrature. Where the value exceeds 1e-280 their rates differ by less than 1/7, or by
# less than 1/9 of the argument of the slope: five nodes leave below 1e-14, four miss 1e-12.
_NODES = tuple(zip(*(a.tolist() for a in np.polynomial.legendre.leggauss(5)), strict=True))


def numpy_erfcx(x: Array) -> Array:
    """The scaled complementary error function ``exp(x^2) erfc(x)`` of a NumPy array, by SciPy.

    >>> float(numpy_erfcx(np.asarray(0.0)))
    1.0
    """
    if not isinstance(x, np.ndarray | np.generic):
        raise TypeError(f"erfcx must be given for {type(x).__name__}; the default is for NumPy arrays")
    from scipy.special import erfcx

    return erfcx(x)


def laplacian_laplace(z: Array, b: Array) -> Array:
    """Mean of ``exp(-|z + b E|)``, E standard Laplace.

    ``(exp(-z) - b exp(-z/b)) / (1 - b^2)``, right to a few roundings (and to those of the exponent) for all scales.

    >>> float(laplacian_laplace(np.asarray(0.7), np.asarray(1.0)).round(12))
    0.422097508223
    """
    xp = namespace(z, b)
    a, b = _descending(xp, xp.ones_like(b), b)
    t, r, u = _relative(xp, z, a, b)
    first, _, _ = _exponential_differences(xp, u)
    return xp.exp(-t) / a * (1 + t * first) / (1 + r)


def laplacian_laplace_laplace(z: Array, b: Array, c: Array) -> Array:
    """Mean of ``exp(-|z + b E - c E'|)``, E and E' independent standard Laplace.

    The divided difference at 1, b^2, c^2 of ``s^(3/2) exp(-z / sqrt(s))``. With the scales 1, b, c sorted and divided
    by the largest, ``1 >= r >= q`` and ``z = t``, it is ``exp(-t)`` times

    ``(r + q + rq) / ((1+r)(1+q)(r+q)) (1 + t f(u)) + t^2 q / (r (1+q)(r+q)) f(u, v)``,

    where ``f(u)`` and ``f(u, v)`` are the means of ``exp`` over the simplices with corners 0, -u and 0, -u, -v, at
    ``u = t/r - t``, ``v = t/q - t``. All terms are positive: right to a few roundings for all scales.

    >>> float(laplacian_laplace_laplace(np.asarray(0.0), np.asarray(0.5), np.asarray(0.5)).round(12))
    0.555555555556
    """
    xp = namespace(z, b, c)
    b, c = _descending(xp, b, c)
    a, b = _descending(xp, xp.ones_like(b), b)
    b, c = _descending(xp, b, c)
    t, r, u = _relative(xp, z, a, b)
    q = c / a + _tiny(xp, t)
    first, _, equal = _exponential_differences(xp, u)
    gap = t * ((b - c) / a) / r / q
    _, zero, _ = _exponential_differences(xp, gap)
    second = _second_difference(xp, u, u + gap, equal, zero)
    p = q / r
    steady = (1 + q / (1 + p)) / (1 + r) * (1 + t * first)
    return xp.exp(-t) / a / (1 + q) * (steady + t * (t / r) * second * p / (1 + p))


def laplacian_normal(z: Array, s: Array, erfcx: Erfcx = numpy_erfcx) -> Array:
    """Mean of ``exp(-|z + s N|)``, N standard normal.

    ``exp(-x^2/2) (erfcx((s + x) / sqrt 2) + erfcx((s - x) / sqrt 2)) / 2`` with ``x = z / s``. The relative error is
    that of ``erfcx`` and of the exponent: 1e-12 where the value exceeds 1e-280.

    >>> float(laplacian_normal(np.asarray(0.7), np.asarray(1.0)).round(12))
    0.460790216128
    """
    xp = namespace(z, s)
    z = xp.abs(z)
    s = s + _tiny(xp, z + s)
    x = z / s
    tail = s - x < _TAIL
    one = xp.ones_like(x)
    bulk = xp.exp(-x * x / 2) * _two_sided(xp, one, (s - x, s + x), erfcx) / sqrt(2 * pi)
    within = xp.where(tail, s, 0.0)
    return bulk + xp.where(tail, xp.exp(within * within / 2 - z), 0.0)


def gaussian_laplace(z: Array, b: Array, erfcx: Erfcx = numpy_erfcx) -> Array:
    """Mean of ``exp(-(z + b E)^2 / 2)``, E standard Laplace.

    ``exp(-z^2/2) (R(1/b - z) + R(1/b + z)) / 2b`` with the Mills ratio ``R(x) = sqrt(pi/2) erfcx(x / sqrt 2)``. The
    relative error is that of ``erfcx`` and of the exponent: 1e-12 where the value exceeds 1e-280.

    >>> float(gaussian_laplace(np.asarray(0.7), np.asarray(1.0)).round(12))
    0.57751489221
    """
    xp = namespace(z, b)
    z = xp.abs(z)
    tail = 1 - b * z < _TAIL * b
    bulk = xp.exp(-z * z / 2) * _two_sided(xp, b, (1 - b * z, 1 + b * z), erfcx) / 2
    rate = 1 / xp.where(tail, b, 1.0)
    return bulk + xp.where(tail, sqrt(pi / 2) * rate * xp.exp(rate * (rate / 2 - z)), 0.0)


def gaussian_laplace_laplace(z: Array, b: Array, c: Array, erfcx: Erfcx = numpy_erfcx) -> Array:
    """Mean of ``exp(-(z + b E - c E')^2 / 2)``, E and E' independent standard Laplace.

    ``(b^2 g(b) - c^2 g(c)) / (b^2 - c^2)`` with ``g`` of :func:`gaussian_laplace`; close scales by the mean slope of
    the Mills ratio between their rates. Relative error 1e-12 where the value exceeds 1e-280. Single precision is
    computed in double, as differences of the Mills ratio need it.

    >>> float(gaussian_laplace_laplace(np.asarray(0.7), np.asarray(1.0), np.asarray(1.0)).round(12))
    0.463671994965
    """
    xp = namespace(z, b, c)
    dtype = (z + b + c).dtype
    z, b, c = (xp.astype(x, xp.float64) for x in (xp.abs(z), *_descending(xp, b, c)))
    # The next term of this series has relative size (b z)^6; below, noise of c / b would drown the gradient.
    small = b * (1 + z) < 1e-3
    narrow = xp.exp(-z * z / 2) * _narrow(*(xp.where(small, x, 0.0) for x in (z, b, c)))
    b, c = xp.where(small, 1.0, b), xp.where(small, 0.5, c)
    ratio, gap = c / b, (b - c) / b
    # Scales that are not close lose 2/gap < 600 roundings. Beyond z = 36 narrow ones have values below 1e-280.
    close = (gap < 1 / 16) & ((gap < b / 8) | (gap < (1 - 36 * b) / 10))
    wide = gaussian_laplace(z, b, erfcx)
    far = (wide - ratio * ratio * gaussian_laplace(z, c, erfcx)) / xp.where(close, 1.0, gap)
    near = wide + _mean_slope(xp, z, b, xp.where(close, c, b), erfcx)
    return xp.astype(xp.where(small, narrow, xp.where(close, near, far) / (1 + ratio)), dtype)


def _tiny(xp: Any, x: Array) -> float:
    """A number that changes no sum with 1 when added to a scale, and keeps quotients by zero scales finite."""
    return float(xp.finfo(x.dtype).eps) ** 2


def _descending(xp: Any, b: Array, c: Array) -> tuple[Array, Array]:
    """The larger and the smaller; the weights of their gradients sum to one at ties too."""
    return xp.maximum(b, c), xp.minimum(b, c)


def _relative(xp: Any, z: Array, a: Array, b: Array) -> tuple[Array, Array, Array]:
    """For scales ``a >= b``: ``t = z/a``, ``r = b/a``, and ``u = t/r - t`` without cancellation."""
    t = xp.abs(z) / a
    t = xp.where(t > _UNDERFLOW, _UNDERFLOW, t)
    r = b / a + _tiny(xp, t)
    return t, r, t * ((a - b) / a) / r


def _series(x: Array, coefficients: tuple[float, ...]) -> Array:
    """The polynomial with these coefficients, constant first."""
    total = 0.0 * x + coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        total = total * x + coefficient
    return total


def _exponential_differences(xp: Any, u: Array) -> tuple[Array, Array, Array]:
    """Means of ``exp`` over the simplices with corners (0, -u), (0, 0, -u) and (0, -u, -u), for ``u >= 0``."""
    small = u < 1
    zero = _series(xp.where(small, u, 0.0), _SECOND)
    first = 1 - u * zero
    large = xp.where(small, 1.0, u)
    decay = xp.exp(-large)
    ratio = (1 - decay) / large
    return (
        xp.where(small, first, ratio),
        xp.where(small, zero, (1 - ratio) / large),
        xp.where(small, first - zero, (ratio - decay) / large),
    )


def _second_difference(xp: Any, u: Array, v: Array, equal: Array, zero: Array) -> Array:
    """Mean of ``exp`` over the simplex 0, -u, -v with ``0 <= u <= v``, from those of (0, -u, -u) and (0, 0, u - v)."""
    # The weight u/v is 0/0 where all meet; there the series, whose next term is below 1e-17.
    small = v < 1e-3
    x, y = xp.where(small, u, 0.0), xp.where(small, v, 0.0)
    h1 = x + y
    h2 = x * h1 + y**2
    h3 = x * h2 + y**3
    h4 = x * h3 + y**4
    meeting = 1 / 2 - h1 / 6 + h2 / 24 - h3 / 120 + h4 / 720
    weight = u / xp.where(small, 1.0, v)
    return xp.where(small, meeting, weight * equal + (1 - weight) * xp.exp(-u) * zero)


def _mills(xp: Any, b: Array, x: Array, erfcx: Erfcx) -> Array:
    """Mills ratio ``R(x/b) / b``, for ``x/b`` not far below zero; its gradient is right for all b, zero included."""
    far = x >= _FAR * b
    inverse = 1 / xp.where(far, x, 1.0)
    series = inverse * _series((xp.where(far, b, 0.0) * inverse) ** 2, _RATIO)
    scale = xp.where(far, 1.0, b)
    return xp.where(far, series, sqrt(pi / 2) * erfcx(xp.where(far, 0.0, x) / scale / sqrt(2)) / scale)


def _mills_slope(xp: Any, b: Array, x: Array, erfcx: Erfcx) -> Array:
    """Slope ``-R'(x/b) / b^2`` of the Mills ratio, ``-R'(x) = 1 - x R(x)``."""
    far = x >= _FAR * b
    inverse = 1 / xp.where(far, x, 1.0)
    series = inverse**2 * _series((xp.where(far, b, 0.0) * inverse) ** 2, _SLOPE)
    scale = xp.where(far, 1.0, b)
    y = xp.where(far, 0.0, x) / scale
    return xp.where(far, series, (1 - y * sqrt(pi / 2) * erfcx(y / sqrt(2))) / scale**2)


def _two_sided(xp: Any, b: Array, sides: tuple[Array, Array], erfcx: Erfcx) -> Array:
    """Sum of the Mills ratios at both sides, less ``sqrt(2 pi) exp(x^2/2)`` where the lower one is in the tail."""
    low, high = sides
    tail = low < _TAIL * b
    mills = _mills(xp, b, xp.where(tail, -low, low), erfcx)
    return _mills(xp, b, high, erfcx) + xp.where(tail, -mills, mills)


def _narrow(z: Array, b: Array, c: Array) -> Array:
    """``sum_k h_k(b^2, c^2) He_2k(z)`` up to k = 2: the mean of the Gaussian kernel over its value at small scales."""
    b2, c2, z2 = b * b, c * c, z * z
    h1 = b2 + c2
    return 1 + h1 * (z2 - 1) + (b2 * h1 + c2 * c2) * (z2 * (z2 - 6) + 3)


def _mean_slope(xp: Any, z: Array, b: Array, c: Array, erfcx: Erfcx) -> Array:
    """Mean over the rates ``1/b`` to ``1/c`` of the slopes of the Mills ratios at ``rate -+ z``, times the kernel."""
    reach = (b - c) / c
    tail = 1 - b * z < _TAIL * b
    bulk = 0.0 * reach
    for node, weight in _NODES:
        rate = 1 + reach * (1 + node) / 2
        low = rate - b * z
        slopes = _mills_slope(xp, b, xp.where(tail, -low, low), erfcx) + _mills_slope(xp, b, rate + b * z, erfcx)
        bulk = bulk + weight / 4 * slopes
    # In the tail exp(x^2/2) dominates; its difference is exact, so that the quadrature sees slow functions only.
    rate = 1 / xp.where(tail, b, 1.0)
    step = xp.where(tail, rate * reach, 0.0)
    distance = xp.where(tail, z - rate - step / 2, 0.0)
    first, _, _ = _exponential_differences(xp, step * distance)
    steep = sqrt(pi / 2) * rate**2 * xp.exp(rate * (rate / 2 - z)) * distance * first
    return xp.exp(-z * z / 2) * bulk + xp.where(tail, steep, 0.0)
