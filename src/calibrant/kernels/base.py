"""What every kernel provides, how kernels are put together, and the registry of their expectations in closed form.

Closed forms ``L(P, Q) = E l(Z, Z')``, ``Z ~ P`` and ``Z' ~ Q`` independent, live beside the family, the axis that grows; this file
knows no family. A form is registered for a kernel and two families and found by their classes, nearest first. A form that
cannot serve a particular kernel returns ``NotImplemented``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Self, TypeVar

import numpy as np

from calibrant._array import namespace
from calibrant._spellings import Settings
from calibrant._validate import InputError
from calibrant.kernels.metrics import Euclidean, Metric, PerCoordinate, check_lengthscale, median_distance
from calibrant.typing import Array

ZERO = 1e15
"""In length scales: from there on kernels are zero in every precision, and the square of the distance is a number."""


class Kernel(Settings, ABC):
    """A positive semi-definite function of two points; subclasses are frozen dataclasses.

    A kernel is complete with :meth:`__call__`. Those that can do more override :meth:`spectrum` (then every family with a
    characteristic function has explicit features), :meth:`frequencies` (then tests of any number of rows are affordable) or
    :meth:`product` (then sums over one-dimensional points cost O(n)).
    "I cannot" is ``NotImplemented``.
    """

    @abstractmethod
    def __call__(self, x: Array, y: Array) -> Array:
        """The matrix ``k(x_i, y_j)``, ``(n, m)``, of points ``(n, d)`` and ``(m, d)``."""

    @property
    def is_open(self) -> bool:
        """Whether some setting waits for :meth:`resolve`."""
        return False

    def resolve(self, points: Array) -> "Kernel":
        """The kernel with every open setting fixed from these points."""
        return self

    @property
    def is_euclidean(self) -> bool:
        """Whether the kernel depends on points only through their Euclidean distances."""
        return False

    @property
    def is_stationary(self) -> bool:
        """Whether the kernel depends on points only through their differences."""
        return False

    @property
    def vanishes_at_origin(self) -> bool:
        """Whether the kernel is zero between the point zero and all others."""
        return False

    @property
    def has_free_origin(self) -> bool:
        """Whether inner products of residuals, which have a total of zero, do not change when all points are moved together."""
        return self.is_stationary

    def diagonal(self, points: Array) -> Array:
        """``k(x_i, x_i)``, ``(n,)``."""
        xp = namespace(points)
        cuts = [points[i : min(i + 16, len(points)), :] for i in range(0, len(points), 16)]
        return xp.concat([xp.linalg.diagonal(self(x, x)) for x in cuts])

    def spectrum(self, span: float) -> Any:
        """Frequencies and weights such that ``k(x, y) = sum_j w_j cos(f_j (x - y))`` for ``|x - y| <= span``."""
        return NotImplemented

    @property
    def reach(self) -> float:
        """The distance from which on the kernel is zero but for rounding."""
        return float("inf")

    def frequencies(self, rng: np.random.Generator, count: int, dimensions: int) -> Any:
        """Random frequencies ``(count, dimensions)`` with ``k(x, y) = E cos(f (x - y))``."""
        return NotImplemented

    @property
    def has_product(self) -> bool:
        """Whether :meth:`product` and :meth:`pair_sums` exist."""
        return False

    def product(self, x: Array, v: Array, *, diagonal: bool, power: int = 1) -> Any:
        """``K @ v`` for sorted one-dimensional points, in O(n); with the entries of K raised to a power."""
        return NotImplemented

    def pair_sums(self, x: np.ndarray, v: np.ndarray) -> Any:
        """``sum_{i < j} k(x_i, x_j) v_i v_j`` of each column of v, for sorted one-dimensional points, in O(n)."""
        product = self.product(x, v, diagonal=False)
        return NotImplemented if product is NotImplemented else np.einsum("nq,nq->q", product, v) / 2

    def __add__(self, other: "Kernel") -> "Sum":
        return Sum((self, other))

    def __mul__(self, other: "Kernel | float") -> "Kernel":
        return Product((self, other)) if isinstance(other, Kernel) else Scaled(self, other)

    def __rmul__(self, factor: float) -> "Scaled":
        return Scaled(self, factor)


class Radial(Kernel):
    """A function of the distance in units of a length scale; subclasses add the fields and :meth:`profile`."""

    lengthscale: float | Sequence[float] | None
    metric: Metric

    def __post_init__(self) -> None:
        scale = self.lengthscale
        if isinstance(scale, Sequence | np.ndarray) and not isinstance(scale, str):
            per_coordinate = PerCoordinate(tuple(np.asarray(scale).tolist()), self.metric)
            object.__setattr__(self, "lengthscale", 1.0)
            object.__setattr__(self, "metric", per_coordinate)
        elif scale is not None:
            check_lengthscale(scale, "lengthscale")

    @abstractmethod
    def profile(self, distance: Array) -> Array:
        """The kernel as a function of distance in length scales."""

    def __call__(self, x: Array, y: Array) -> Array:
        """The profile of the scaled distances."""
        distance = self.metric(x, y)
        with np.errstate(over="ignore"):  # farther than all numbers: zero
            return self.profile(distance * self.rate(distance))

    def rate(self, like: Array) -> float:
        """``1 / l``, at most what the precision of an array can hold, so that equal points have a distance of zero."""
        return min(1 / self.unit, float(namespace(like).finfo(like.dtype).max) ** 0.9)

    def diagonal(self, points: Array) -> Array:
        """The profile at distance zero."""
        return self.profile(0 * points[:, 0])

    @property
    def unit(self) -> float:
        """The length scale, once it is fixed."""
        if self.lengthscale is None:
            raise InputError(f"{self!r} has no length scale yet: give one, or call resolve(points)")
        return float(self.lengthscale)  # type: ignore[arg-type]  # a list has become the metric

    def in_units(self, frequencies: np.ndarray) -> Any:
        """Random frequencies ``(count, d)`` of a kernel of unit length scale as those of this one, for Euclidean distances."""
        units = self.metric.units(frequencies.shape[1])
        return NotImplemented if units is NotImplemented else frequencies / (self.unit * units)

    @property
    def is_open(self) -> bool:
        """Whether the length scale is not given."""
        return self.lengthscale is None

    def resolve(self, points: Array) -> Self:
        """The length scale, if not given, is the median distance of the points."""
        if self.lengthscale is not None:
            return self
        return replace(self, lengthscale=median_distance(points, self.metric))  # type: ignore[type-var]

    @property
    def is_euclidean(self) -> bool:
        """Whether the metric is."""
        return isinstance(self.metric, Euclidean)

    @property
    def is_stationary(self) -> bool:
        """With a metric of differences."""
        return self.metric.is_of_differences


@dataclass(frozen=True)
class Several(Kernel):
    """What kernels made of kernels share."""

    kernels: tuple[Kernel, ...]

    @property
    def is_euclidean(self) -> bool:
        """Whether all are."""
        return all(kernel.is_euclidean for kernel in self.kernels)

    @property
    def is_stationary(self) -> bool:
        """Whether all are."""
        return all(kernel.is_stationary for kernel in self.kernels)

    @property
    def is_open(self) -> bool:
        """Whether any is."""
        return any(kernel.is_open for kernel in self.kernels)

    def resolve(self, points: Array) -> Self:
        """Each on its own."""
        return type(self)(tuple(kernel.resolve(points) for kernel in self.kernels))


@dataclass(frozen=True)
class Sum(Several):
    """The sum of kernels.

    >>> import numpy as np
    >>> from calibrant.kernels import Energy, Identity
    >>> (Identity() + Energy())(np.array([[2.0]]), np.array([[2.0]]))
    array([[3.]])
    """

    @property
    def has_free_origin(self) -> bool:
        """Whether all have."""
        return all(kernel.has_free_origin for kernel in self.kernels)

    @property
    def vanishes_at_origin(self) -> bool:
        """Whether all do."""
        return all(kernel.vanishes_at_origin for kernel in self.kernels)

    def __call__(self, x: Array, y: Array) -> Array:
        """Added up."""
        return sum(kernel(x, y) for kernel in self.kernels)


@dataclass(frozen=True)
class Product(Several):
    """The product of kernels.

    >>> import numpy as np
    >>> from calibrant.kernels import Energy
    >>> (Energy() * Energy())(np.array([[2.0]]), np.array([[3.0]]))
    array([[4.]])
    """

    @property
    def vanishes_at_origin(self) -> bool:
        """Whether any does."""
        return any(kernel.vanishes_at_origin for kernel in self.kernels)

    def __call__(self, x: Array, y: Array) -> Array:
        """Multiplied."""
        first, *rest = (kernel(x, y) for kernel in self.kernels)
        for value in rest:
            first = first * value
        return first


@dataclass(frozen=True)
class Scaled(Kernel):
    """A kernel times a positive number.

    >>> import numpy as np
    >>> from calibrant.kernels import Energy
    >>> (0.5 * Energy())(np.array([[2.0]]), np.array([[3.0]]))
    array([[1.]])
    """

    kernel: Kernel
    factor: float

    def __post_init__(self) -> None:
        if not isinstance(self.factor, int | float) or not 0 < self.factor < float("inf"):
            raise InputError(f"a kernel can be multiplied by a positive number; got {self.factor!r}")

    def __call__(self, x: Array, y: Array) -> Array:
        """Scaled."""
        return self.factor * self.kernel(x, y)

    @property
    def is_euclidean(self) -> bool:
        """Whether the kernel inside is."""
        return self.kernel.is_euclidean

    @property
    def is_stationary(self) -> bool:
        """Whether the kernel inside is."""
        return self.kernel.is_stationary

    @property
    def vanishes_at_origin(self) -> bool:
        """Whether the kernel inside does."""
        return self.kernel.vanishes_at_origin

    @property
    def has_free_origin(self) -> bool:
        """Whether the kernel inside has."""
        return self.kernel.has_free_origin

    def diagonal(self, points: Array) -> Array:
        """Scaled."""
        return self.factor * self.kernel.diagonal(points)

    @property
    def has_product(self) -> bool:
        """Whether the kernel inside has."""
        return self.kernel.has_product

    def product(self, x: Array, v: Array, *, diagonal: bool, power: int = 1) -> Any:
        """Scaled."""
        product = self.kernel.product(x, v, diagonal=diagonal, power=power)
        return NotImplemented if product is NotImplemented else self.factor**power * product

    @property
    def is_open(self) -> bool:
        """Whether the kernel inside is."""
        return self.kernel.is_open

    def resolve(self, points: Array) -> "Scaled":
        """The kernel inside."""
        return Scaled(self.kernel.resolve(points), self.factor)


def student_frequencies(rng: np.random.Generator, count: int, dimensions: int, freedom: float) -> np.ndarray:
    """Draws of Student's t distribution in several dimensions: the spectrum of Matérn kernels at unit length scale."""
    tail = np.sqrt(rng.chisquare(freedom, (count, 1)) / freedom)
    return rng.standard_normal((count, dimensions)) / tail


def as_points(y: Array) -> Array:
    """Targets as points: ``(n,)`` becomes ``(n, 1)``."""
    return namespace(y).reshape(y, (y.shape[0], 1)) if y.ndim == 1 else y


Form = TypeVar("Form", bound=Callable[..., Any])

_FORMS: dict[tuple[type, type, type], Callable[..., Any]] = {}

_OF_ANY_METRIC: set[tuple[type, type, type]] = set()
"""Those of radial kernels that look at the metric themselves."""


def closed_form(kernel: type, p: type, q: type, *, any_metric: bool = False) -> Callable[[Form], Form]:
    """Register ``form(kernel, p, q) -> (n, m)`` for a kernel and two families.

    A form of one radial kernel is taken where its metric is ``|x - y|`` on a line, unless it says that it looks at it.

    >>> from calibrant import Normal
    >>> from calibrant.kernels import Gaussian, expectation
    >>> expectation(Gaussian(1.0), Normal([0.0], 1.0), Normal([1.0], 1.0)).round(3)      # of a form that is registered
    array([[0.489]])
    """

    def register(form: Form) -> Form:
        _FORMS[kernel, p, q] = form
        if any_metric:
            _OF_ANY_METRIC.add((kernel, p, q))
        return form

    return register


def registered() -> list[tuple[type, type, type]]:
    """What has a closed form, for checks and messages."""
    return list(_FORMS)


def _fits(key: tuple[type, type, type], kernel: Kernel) -> bool:
    """Whether the form is for the distances of this kernel."""
    return not isinstance(kernel, Radial) or key[0] is Kernel or kernel.metric.is_absolute or key in _OF_ANY_METRIC


def expectation(kernel: Kernel, p: Any, q: Any) -> Any:
    """The matrix ``E l(Z_i, Z'_j)``, ``(n, m)``, in closed form, or ``NotImplemented``.

    >>> import numpy as np
    >>> from calibrant import Normal
    >>> from calibrant.kernels import Gaussian
    >>> expectation(Gaussian(1.0), Normal([0.0], 1.0), Normal([0.0], 1.0)).round(12) == (1 / np.sqrt(3)).round(12)
    array([[ True]])
    """
    # Linear in the kernel, whatever the families.
    if isinstance(kernel, Sum):
        parts = [expectation(part, p, q) for part in kernel.kernels]
        return NotImplemented if any(part is NotImplemented for part in parts) else sum(parts)
    if isinstance(kernel, Scaled):
        value = expectation(kernel.kernel, p, q)
        return NotImplemented if value is NotImplemented else kernel.factor * value
    for key in product(type(kernel).__mro__, type(p).__mro__, type(q).__mro__):
        if key in _FORMS and _fits(key, kernel):
            value = _FORMS[key](kernel, p, q)
            if value is not NotImplemented:
                return value
    return NotImplemented
