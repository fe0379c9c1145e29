"""Distances between points, and their median: the length scale that needs no choice."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._array import as_double, detached, is_array, is_integer, is_traced, matched, namespace, on_gpu, to_numpy
from calibrant._validate import InputError, of_what
from calibrant.results.text import how_many
from calibrant.typing import Array

DIRECT = 16
"""Up to so many coordinates, distances are sums of squared differences; beyond, they come from inner products.

Inner products around the middle of the points are faster in many dimensions. They are right relative to the distance from that
middle: where two points lie much closer to each other, arrays of NumPy take differences again; in other libraries distances
that rounding could have made are zero.
"""

NEAR = 1e-3
"""Squared distances below this part of the squared lengths are made again: above, 30 coordinates leave twelve digits."""

MAX_DIFFERENCES = 1 << 20
"""Differences of coordinates that are held at a time."""


def check_points(x: Array, y: Array) -> None:
    """Refuse what is not two arrays of points, ``(n, d)`` and ``(m, d)``, of one library."""
    for points, name in ((x, "x"), (y, "y")):
        if not is_array(points) or points.ndim != 2 or not points.shape[1]:
            found = f"shape {tuple(points.shape)}" if is_array(points) else of_what(points)
            raise InputError(
                f"{name} must be an array of points, (n, d); got {found}: numbers become points by np.reshape({name}, (-1, 1))"
            )
    if x.shape[1] != y.shape[1]:
        raise InputError(f"x has {x.shape[1]} coordinates and y has {y.shape[1]}: they must be equal")
    if type(x) is type(y):
        return
    try:
        namespace(x, y)
    except TypeError as error:
        raise InputError(f"x is {of_what(x)} and y is {of_what(y)}: give both in one library") from error


def as_real_points(x: Array, y: Array) -> tuple[Array, Array]:
    """Points that are checked, with whole numbers in double precision: differences of those without a sign wrap.

    >>> as_real_points(np.array([[1]]), np.array([[2.0]]))[0]
    array([[1.]])
    """
    check_points(x, y)
    return _real(x, "x"), _real(y, "y")


def _real(points: Array, name: str) -> Array:
    xp = namespace(points)
    if xp.isdtype(points.dtype, "real floating"):
        return points
    if not is_integer(points):
        raise InputError(f"{name} must hold real numbers; got {points.dtype}: give floats")
    return as_double(points)


MIN_LENGTHSCALE, MAX_LENGTHSCALE = 1e-50, 1e50
"""Length scales between these have fourth powers, and inverse ones, that are numbers, as closed forms need them."""


def check_lengthscale(scale: object, name: str) -> None:
    """Refuse what is no length scale, and those whose powers are no numbers."""
    if not (isinstance(scale, int | float) and 0 < scale < float("inf")):
        raise InputError(f"{name} must be a positive number, or None for the median distance; got {scale!r}")
    if not MIN_LENGTHSCALE <= scale <= MAX_LENGTHSCALE:
        raise InputError(
            f"{name} must lie between {MIN_LENGTHSCALE:g} and {MAX_LENGTHSCALE:g}, so that its powers are numbers; got {scale!r}: "
            "give the data in other units"
        )


class Metric(ABC):
    """A distance between the rows of two arrays; subclasses are frozen dataclasses."""

    name: str | None = None
    """What SciPy calls it, if it knows it."""

    is_absolute: bool = False
    """Whether it is ``|x - y|`` in one dimension."""

    @property
    def is_of_differences(self) -> bool:
        """Whether it depends on points only through their differences."""
        return self.is_absolute

    def units(self, dimensions: int) -> Any:
        """The lengths by which so many coordinates are divided before Euclidean distances are taken; else ``NotImplemented``."""
        return NotImplemented

    @abstractmethod
    def __call__(self, x: Array, y: Array) -> Array:
        """Distances ``(n, m)`` of points ``(n, d)`` and ``(m, d)``."""

    def squared(self, x: Array, y: Array) -> Array:
        """Squared distances."""
        return self(x, y) ** 2


@dataclass(frozen=True)
class Euclidean(Metric):
    """``sqrt(sum_c (x_c - y_c)^2)``.

    >>> import numpy as np
    >>> Euclidean()(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]))
    array([[5.]])
    """

    name = "euclidean"
    is_absolute = True

    def units(self, dimensions: int) -> Any:
        """One."""
        return 1.0

    def __call__(self, x: Array, y: Array) -> Array:
        """Distances; the square root is taken where it has a derivative."""
        x, y = as_real_points(x, y)
        xp = namespace(x, y)
        with np.errstate(over="ignore", invalid="ignore"):
            if x.shape[1] == 1:  # the same digits, without squares that are no numbers
                return xp.abs(x[:, 0][:, None] - y[:, 0][None, :])
            squared = self._squared(x, y)
        apart = squared > 0
        return xp.where(apart, xp.sqrt(xp.where(apart, squared, xp.ones_like(squared))), xp.zeros_like(squared))

    def squared(self, x: Array, y: Array) -> Array:
        """Squared distances."""
        x, y = as_real_points(x, y)
        with np.errstate(over="ignore", invalid="ignore"):  # farther than all numbers: infinite
            return self._squared(x, y)

    def _squared(self, x: Array, y: Array) -> Array:
        if x.shape[1] <= DIRECT:
            return sum((x[:, c][:, None] - y[:, c][None, :]) ** 2 for c in range(x.shape[1]))
        if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
            return _repaired(*(_around(y, points) for points in (x, y))).astype(np.result_type(x, y), copy=False)
        xp = namespace(x, y)
        x, y = x - (middle := xp.mean(detached(y), axis=0)), y - middle
        squared, size = _by_products(x, y)
        rounding = x.shape[1] * float(xp.finfo(squared.dtype).eps)
        return xp.where(squared > rounding * size, squared, xp.zeros_like(squared))


def _by_products(x: Array, y: Array) -> tuple[Array, Array]:
    """Squared distances, and the sums of squared lengths that they are rounded relative to."""
    xp = namespace(x, y)
    size = xp.sum(x * x, axis=1)[:, None] + xp.sum(y * y, axis=1)[None, :]
    return size - 2 * xp.matmul(x, xp.permute_dims(y, (1, 0))), size


def _around(y: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Points as seen from the middle of y, in double precision."""
    return points.astype(np.float64) - y.mean(axis=0, dtype=np.float64)


def _repaired(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Squared distances; by differences for points that lie far closer to each other than to the middle."""
    squared, size = _by_products(x, y)
    i, j = np.nonzero(squared <= NEAR * size)
    step = max(1, MAX_DIFFERENCES // x.shape[1])
    for start in range(0, len(i), step):
        rows, columns = i[start : start + step], j[start : start + step]
        squared[rows, columns] = ((x[rows] - y[columns]) ** 2).sum(axis=1)
    return squared


@dataclass(frozen=True)
class Cityblock(Metric):
    """``sum_c |x_c - y_c|``; for probability vectors, twice the total variation distance.

    >>> import numpy as np
    >>> Cityblock()(np.array([[0.2, 0.8]]), np.array([[0.5, 0.5]])).round(12)
    array([[0.6]])
    """

    name = "cityblock"
    is_absolute = True

    def __call__(self, x: Array, y: Array) -> Array:
        """Distances, one coordinate after the other."""
        x, y = as_real_points(x, y)
        xp = namespace(x, y)
        with np.errstate(over="ignore", invalid="ignore"):
            return sum(xp.abs(x[:, c][:, None] - y[:, c][None, :]) for c in range(x.shape[1]))


@dataclass(frozen=True)
class PerCoordinate(Metric):
    """A distance in which every coordinate has a length scale of its own: that of ``x / lengthscales`` and ``y / lengthscales``.

    ``Gaussian([1.0, 10.0])`` is short for ``Gaussian(1.0, PerCoordinate([1.0, 10.0]))``.

    >>> import numpy as np
    >>> PerCoordinate([1.0, 10.0])(np.array([[0.0, 0.0]]), np.array([[3.0, 40.0]]))
    array([[5.]])
    """

    lengthscales: tuple[float, ...]
    metric: Metric = Euclidean()  # frozen

    def __post_init__(self) -> None:
        scales = self.lengthscales
        is_list = isinstance(scales, Sequence) and not isinstance(scales, str)
        if not is_list or len(scales) == 0 or not all(isinstance(scale, int | float) for scale in scales):
            raise InputError(f"lengthscales must be a list of numbers, one per coordinate; got {scales!r}")
        for scale in scales:
            check_lengthscale(scale, "every one of lengthscales")
        if not isinstance(self.metric, Euclidean | Cityblock):
            raise InputError(
                f"metric must be Euclidean() or Cityblock(), which look at coordinates; got {self.metric!r}"
            )
        object.__setattr__(self, "lengthscales", tuple(map(float, scales)))

    @property
    def is_of_differences(self) -> bool:
        """Always."""
        return True

    def units(self, dimensions: int) -> Any:
        """The length scales, with Euclidean distances."""
        return self._of(dimensions) if isinstance(self.metric, Euclidean) else NotImplemented

    def __call__(self, x: Array, y: Array) -> Array:
        """Distances in these units."""
        return self.metric(self._scaled(x, y), self._scaled(y, x))

    def squared(self, x: Array, y: Array) -> Array:
        """Squared distances in these units."""
        return self.metric.squared(self._scaled(x, y), self._scaled(y, x))

    def _scaled(self, x: Array, beside: Array) -> Array:
        x, _ = as_real_points(x, beside)
        return x / namespace(x).astype(matched(self._of(x.shape[1]), x), x.dtype)

    def _of(self, dimensions: int) -> np.ndarray:
        if dimensions != len(self.lengthscales):
            raise InputError(
                f"there are {len(self.lengthscales)} length scales for {how_many(dimensions, 'coordinate')}: give one for each, or "
                "one number"
            )
        return np.array(self.lengthscales)


MAX_ROWS = 2000
"""Larger samples are thinned to so many rows."""

MAX_COSTLY_ROWS = 500
"""The same for metrics that SciPy does not know: those may solve a problem for each pair."""

ROWS_AT_ONCE = 128
"""Rows whose distances from all others are made at a time."""

SPREAD = 0x9E3779B97F4A7C15 - (1 << 64)
"""An odd number near the golden section of 2^64, with a sign: products with it spread over all bits."""

COARSE = 0xFFFFE000
"""The leading bits of a float32, about three digits."""

BITS = 16
"""Leading bits that tell most hashes apart."""

UNSIGNED = -(1 << 63)
"""The bit that differs between the order of whole numbers with a sign and that of their bits."""


def median_distance(points: Array, metric: Metric) -> float:
    """The median of the distances between different rows, ``(n, d)``; it does not depend on their order.

    Where more than half of the pairs coincide, the mean of the positive distances; where all do, 1.

    >>> from calibrant.kernels import Euclidean
    >>> median_distance(np.array([[0.0], [1.0], [3.0]]), Euclidean())
    2.0
    """
    if is_traced(points):
        raise InputError("give a length scale: the median distance of values that are being traced is not known yet")
    points, _ = as_real_points(points, points)
    here = where_they_are(points)
    most = MAX_ROWS if metric.name else MAX_COSTLY_ROWS
    distances = _distances(here[thinned(here, most)] if len(here) > most else here, metric)
    if not distances.any():
        return 1.0
    median = float(np.median(distances))
    return median if median > 0 else float(distances[distances > 0].mean())


def where_they_are(points: Array) -> Array:
    """Rows on a GPU stay there; those of other libraries become arrays of NumPy."""
    plain = detached(points)
    return plain if on_gpu(plain) else to_numpy(plain)


def _distances(points: Array, metric: Metric) -> np.ndarray:
    """Of all pairs, by that very metric: by SciPy where it knows it, unless products of matrices are faster."""
    from scipy.spatial.distance import pdist

    if metric.name is None or (isinstance(metric, Euclidean) and points.shape[1] > DIRECT):
        exact = as_double(points)
        cuts = [exact[i : i + ROWS_AT_ONCE] for i in range(0, len(points), ROWS_AT_ONCE)]
        return np.concatenate([to_numpy(metric(cut, exact)) for cut in cuts])[np.triu_indices(len(points), 1)]
    return pdist(to_numpy(points).astype(np.float64), metric.name)


def from_lowest(points: Array) -> Array:
    """Rows as seen from the lowest finite number of each column, ``(n, d)`` in double precision.

    Where differences are exact these are the same digits wherever the rows lie.

    >>> from_lowest(np.array([[1000.0, -np.inf], [1002.5, 3.0]]))
    array([[ 0. , -inf],
           [ 2.5,  0. ]])
    """
    xp = namespace(points)
    values = as_double(xp.reshape(points, (len(points), -1)))
    lowest = xp.min(xp.where(xp.isfinite(values), values, xp.inf), axis=0)
    return values - xp.where(xp.isfinite(lowest), lowest, 0.0)


def by_value(points: Array) -> Array:
    """At most so many row numbers, evenly spread in the order of the column with the widest range.

    Rows that agree there are in an order that their other digits decide, as good as random. The order in which they are given
    does not matter, nor does a number added to all; rounding puts neighbours in the place of each other at most.

    >>> by_value(np.array([[1.0, 5.0], [1.0, 4.0], [1.0, 7.0]]))
    array([1, 0, 2])
    """
    xp, n, values = namespace(points), len(points), from_lowest(points)
    ranges = xp.max(xp.where(xp.isfinite(values), values, 0.0), axis=0)
    column = values[:, int(xp.argmax(ranges))]
    order = xp.argsort(_hashed(values.view(xp.int64)))
    for keys in (_coarse(values), column):
        order = order[xp.argsort(keys[order], stable=True)]
    if n <= MAX_ROWS:
        return order
    return order[(2 * xp.arange(MAX_ROWS, device=getattr(order, "device", None)) + 1) * n // (2 * MAX_ROWS)]


def thinned(points: Array, most: int = MAX_ROWS) -> Array:
    """At most so many row numbers, as good as random, in an order that does not depend on that of the rows.

    Rows are taken by their digits: the leading ones decide, so that float32 and float64 take much the same rows, the others
    put rows in order that agree in those. Arrays of NumPy, and tensors, give the same. Sorting numbers is all it costs:
    which rows they belong to is asked of few.
    """
    xp = namespace(points)
    values = xp.reshape(points, (len(points), -1)) + 0.0  # no negative zeros
    coarse = _coarse(values)
    ordered = xp.sort(coarse)
    keys = _keys(ordered)
    limit = _smallest(keys, most)
    rows = _among(coarse, ordered[keys <= limit])
    fine = _hashed(xp.astype(values[rows], xp.float64).view(xp.int64)) ^ UNSIGNED
    rows = rows[xp.argsort(fine, stable=True)]
    rows = rows[xp.argsort(coarse[rows], stable=True)]
    keys = _keys(coarse[rows])
    return rows[keys <= limit][xp.argsort(keys[keys <= limit])]


def _coarse(values: Array) -> Array:
    """A number for each row, from its leading digits."""
    xp = namespace(values)
    with np.errstate(over="ignore"):  # numbers that single precision has not are all alike, roughly
        single = xp.astype(values, xp.float32)
    return _hashed(xp.astype(single.view(xp.int32), xp.int64) & COARSE)


def _keys(ordered: Array) -> Array:
    """A number for each of these, which are in order: from itself, and how many equal ones stand before it."""
    xp = namespace(ordered)
    places = xp.arange(len(ordered), dtype=xp.int64, device=getattr(ordered, "device", None))
    return _mixed(ordered ^ _mixed(places - xp.searchsorted(ordered, ordered))) ^ UNSIGNED


def _smallest(keys: Array, count: int) -> Array:
    """The last of so many smallest numbers, or of all; most likely among those below a bound, as keys are spread evenly."""
    xp, n = namespace(keys), len(keys)
    few = keys[keys <= UNSIGNED + (1 << 63) * min(4 * count, n) // n]
    return xp.sort(few if len(few) >= count else keys)[min(count, n) - 1]


def _among(values: Array, some: Array) -> Array:
    """The places of values that are among some, which are in order; their leading bits tell most apart."""
    xp = namespace(values)
    seen = xp.zeros(1 << BITS, dtype=xp.bool, device=getattr(values, "device", None))
    seen[_leading(some)] = True
    places = xp.nonzero(seen[_leading(values)])[0]
    found = xp.clip(xp.searchsorted(some, values[places]), 0, len(some) - 1)
    return places[some[found] == values[places]]


def _leading(values: Array) -> Array:
    return (values >> (64 - BITS)) + (1 << (BITS - 1))


def _hashed(bits: Array) -> Array:
    """One number per row, from whole numbers only: the same wherever the row stands."""
    hashed = 0 * bits[:, 0]
    for c in range(bits.shape[1]):
        hashed = _mixed(hashed ^ bits[:, c])
    return hashed


def _mixed(x: Array) -> Array:
    """Products beyond 64 bits lose their leading ones."""
    x = (x + SPREAD) * SPREAD
    return (x ^ ((x >> 29) & ((1 << 35) - 1))) * SPREAD
