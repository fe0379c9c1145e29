"""Kernels of a distance: exponential, Gaussian, Matérn and energy."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._array import namespace
from calibrant._validate import InputError
from calibrant.kernels.base import ZERO, Kernel, Radial, student_frequencies
from calibrant.kernels.metrics import Euclidean, Metric, as_real_points, check_points
from calibrant.typing import Array


def exponential_product(
    x: Array, v: Array, rate: float, coefficients: Sequence[float], *, diagonal: bool, power: int
) -> Array:
    """``K @ v`` for ``K_ij = (p(s) exp(-s))^power``, ``s = rate |x_i - x_j|``, p of the coefficients; v ``(n, q)``."""
    polynomial = np.ones(1)
    for _ in range(power):
        polynomial = np.convolve(polynomial, coefficients)
    scaled = polynomial / float(power) ** np.arange(len(polynomial))  # in powers of power * s
    product = _both_sides(rate * power * (x - x[:1]), v, scaled)
    return product + float(polynomial[0]) * v if diagonal else product


def exponential_pair_sums(x: np.ndarray, v: np.ndarray, rate: float, coefficients: Sequence[float]) -> np.ndarray:
    """``sum_{i < j} p(s) exp(-s) v_i v_j`` of each column of v ``(n, q)``, in one compiled pass."""
    from calibrant._compiled.cpu import pair_sums

    return pair_sums(rate * (x - x[:1]), v, np.asarray(coefficients))


def energy_product(x: Array, v: Array, *, diagonal: bool, power: int) -> Array:
    """``K @ v`` for ``K_ij = ((|x_i| + |x_j| - |x_i - x_j|) / 2)^power``: the smaller of two numbers of one sign, else 0."""
    xp = namespace(x, v)
    x = x[:, None]
    size = xp.abs(x) ** power
    product = _smaller(size, xp.where(x > 0, v, xp.zeros_like(v)))
    mirrored = _smaller(xp.flip(size, axis=0), xp.flip(xp.where(x < 0, v, xp.zeros_like(v)), axis=0))
    product = xp.where(x > 0, product, xp.flip(mirrored, axis=0))
    return product if diagonal else product - size * v


def _smaller(size: Array, v: Array) -> Array:
    """``sum_i min(size_i, size_j) v_i`` of increasing sizes."""
    xp = namespace(size, v)
    below = xp.cumulative_sum(v, axis=0)
    return xp.cumulative_sum(size * v, axis=0) + size * (below[-1:, :] - below)


def _both_sides(x: Array, v: Array, coefficients: np.ndarray) -> Array:
    """Sums over the points to the left and to the right of each."""
    xp = namespace(x, v)
    if isinstance(v, np.ndarray) and isinstance(x, np.ndarray):
        from calibrant._compiled.cpu import running_sums

        return running_sums(x, v, coefficients)
    left = _doubled(x, v, coefficients)
    return left + xp.flip(_doubled(-xp.flip(x), xp.flip(v, axis=0), coefficients), axis=0)


def _doubled(x: Array, v: Array, coefficients: np.ndarray) -> Array:
    """Sums over the points strictly to the left, by doubling the stretch that is summed."""
    xp = namespace(x, v)
    n = x.shape[0]
    sums = [v] + [xp.zeros_like(v)] * (len(coefficients) - 1)
    step = 1
    while step < n:
        moved = _move([part[: n - step, :] for part in sums], (x[step:] - x[: n - step])[:, None])
        sums = [xp.concat([part[:step, :], part[step:, :] + new]) for part, new in zip(sums, moved, strict=True)]
        step *= 2
    moved = _move([part[: n - 1, :] for part in sums], (x[1:] - x[: n - 1])[:, None])
    total = sum(float(c) * part for c, part in zip(coefficients, moved, strict=True))
    return xp.concat([xp.zeros_like(v[:1, :]), total])


def _move(sums: list[Array], distance: Array) -> list[Array]:
    """Running sums as seen from further right: ``(s + t)^m exp(-(s + t))`` expanded in powers of s."""
    decay = namespace(distance).exp(-distance)
    return [
        decay * sum(math.comb(m, j) * distance ** (m - j) * sums[j] for j in range(m + 1)) for m in range(len(sums))
    ]


@dataclass(frozen=True)
class Exponential(Radial):
    """``exp(-(d / l)^power)`` with ``0 < power <= 2``; power 1 is the Laplacian kernel.
    Characteristic, and strictly positive definite with Euclidean distances.

    A kernel for every distance that is Hilbertian, such as those of all our coordinates. A list of length scales has one for
    each coordinate.

    >>> import math, numpy as np
    >>> float(Exponential(lengthscale=2.0)(np.array([[0.0]]), np.array([[2.0]]))[0, 0]) == math.exp(-1)
    True
    """

    lengthscale: float | Sequence[float] | None = None
    metric: Metric = Euclidean()  # noqa: RUF009  # frozen
    power: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.power, int | float) or not 0 < self.power <= 2:
            raise InputError(f"power must lie above 0 and at most at 2, else this is no kernel; got {self.power!r}")

    def profile(self, distance: Array) -> Array:
        """``exp(-u^power)``."""
        xp = namespace(distance)
        if self.power == 1:
            return xp.exp(-distance)
        return xp.exp(-((xp.clip(distance, 0.0, ZERO) if self.power > 1 else distance) ** self.power))

    def frequencies(self, rng: np.random.Generator, count: int, dimensions: int) -> Any:
        """Cauchy, the case of one degree of freedom."""
        return self.in_units(student_frequencies(rng, count, dimensions, 1.0)) if self.power == 1 else NotImplemented

    @property
    def has_product(self) -> bool:
        """The Laplacian kernel has."""
        return self.power == 1 and self.metric.is_absolute

    def pair_sums(self, x: np.ndarray, v: np.ndarray) -> Any:
        """One running sum from the left."""
        if not self.has_product:
            return NotImplemented
        return exponential_pair_sums(x, v, 1 / self.unit, (1.0,))

    def product(self, x: Array, v: Array, *, diagonal: bool, power: int = 1) -> Any:
        """One running sum from the left, one from the right."""
        if not self.has_product:
            return NotImplemented
        return exponential_product(x, v, 1 / self.unit, (1.0,), diagonal=diagonal, power=power)


REACH = 8.6
"""Standard deviations beyond which a Gaussian is below 1e-16."""

MAX_NODES = 1 << 20
"""More frequencies than this are of no use to anyone."""


@dataclass(frozen=True)
class Gaussian(Radial):
    """``exp(-d^2 / (2 l^2))``; infinitely smooth. Characteristic, and strictly positive definite with Euclidean distances.

    A list of length scales has one for each coordinate.

    >>> import numpy as np
    >>> float(Gaussian(lengthscale=2.0)(np.array([[0.0]]), np.array([[2.0]]))[0, 0]) == math.exp(-0.5)
    True
    >>> float(Gaussian([1.0, 10.0])(np.array([[0.0, 0.0]]), np.array([[0.0, 10.0]]))[0, 0]) == math.exp(-0.5)
    True
    """

    lengthscale: float | Sequence[float] | None = None
    metric: Metric = Euclidean()  # noqa: RUF009  # frozen

    def profile(self, distance: Array) -> Array:
        """``exp(-u^2 / 2)``."""
        xp = namespace(distance)
        return xp.exp(-0.5 * xp.clip(distance, 0.0, ZERO) ** 2)

    def __call__(self, x: Array, y: Array) -> Array:
        """Without the square root of the distance."""
        if not 1 / ZERO < self.unit < ZERO:  # whose square single precision may not hold
            return super().__call__(x, y)
        check_points(x, y)
        with np.errstate(over="ignore"):  # the distances have no name, so that NumPy works in their memory
            return namespace(x, y).exp(-0.5 * self.metric.squared(x, y) / self.unit**2)

    def frequencies(self, rng: np.random.Generator, count: int, dimensions: int) -> Any:
        """Normal."""
        return self.in_units(rng.standard_normal((count, dimensions)))

    @property
    def reach(self) -> float:
        """Some nine length scales."""
        return REACH * self.unit

    def spectrum(self, span: float) -> Any:
        """The trapezoid rule on the Gaussian spectral density: exact to rounding for differences within the span."""
        if not self.metric.is_absolute:
            return NotImplemented
        # Copies of the kernel at multiples of the period must lie further away than the kernel reaches.
        step = 2 * math.pi / (span / self.unit + REACH)
        if not step > REACH / MAX_NODES:
            return NotImplemented
        nodes = step * np.arange(math.ceil(REACH / step) + 1)
        weights = 2 * step / math.sqrt(2 * math.pi) * np.exp(-0.5 * nodes**2)
        weights[0] /= 2
        return nodes / self.unit, weights


@dataclass(frozen=True)
class Matern(Radial):
    """``(1 + s) e^-s`` with ``s = sqrt3 d/l`` for smoothness 3/2, ``(1 + s + s^2/3) e^-s`` with ``s = sqrt5 d/l`` for 5/2.

    >>> import numpy as np
    >>> Matern(1.5, lengthscale=1.0)(np.array([[0.0]]), np.array([[0.0], [1.0]])).round(4)
    array([[1.    , 0.4834]])
    """

    smoothness: float = 1.5
    lengthscale: float | Sequence[float] | None = None
    metric: Metric = Euclidean()  # noqa: RUF009  # frozen

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.smoothness not in (1.5, 2.5):
            raise InputError(f"smoothness must be 1.5 or 2.5; got {self.smoothness!r}")

    def profile(self, distance: Array) -> Array:
        """A polynomial times an exponential."""
        s = namespace(distance).clip(math.sqrt(2 * self.smoothness) * distance, 0.0, ZERO)
        polynomial = sum(c * s**m for m, c in enumerate(self._coefficients))
        return polynomial * namespace(distance).exp(-s)

    @property
    def _coefficients(self) -> tuple[float, ...]:
        return (1.0, 1.0) if self.smoothness == 1.5 else (1.0, 1.0, 1 / 3)

    def frequencies(self, rng: np.random.Generator, count: int, dimensions: int) -> Any:
        """Student's t with twice the smoothness as degrees of freedom."""
        return self.in_units(student_frequencies(rng, count, dimensions, 2 * self.smoothness))

    @property
    def has_product(self) -> bool:
        """Where distances are absolute differences."""
        return self.metric.is_absolute

    def product(self, x: Array, v: Array, *, diagonal: bool, power: int = 1) -> Any:
        """Running sums with as many states as the polynomial has terms."""
        if not self.has_product:
            return NotImplemented
        rate = math.sqrt(2 * self.smoothness) / self.unit
        return exponential_product(x, v, rate, self._coefficients, diagonal=diagonal, power=power)


@dataclass(frozen=True)
class Energy(Kernel):
    """``(|x| + |y| - |x - y|) / 2``: no length scale, unbounded. Sejdinovic et al. (2013).

    As a kernel on targets it sees every difference between distributions that have a mean. As a kernel on predictions it is
    zero where coordinates are zero, and errors there are not seen: take :class:`Exponential` or :class:`Gaussian`.

    >>> import numpy as np
    >>> Energy()(np.array([[1.0]]), np.array([[3.0], [-2.0]]))
    array([[1., 0.]])
    """

    @property
    def vanishes_at_origin(self) -> bool:
        """Always."""
        return True

    @property
    def has_free_origin(self) -> bool:
        """Always: what depends on the distance of one point from the origin cancels."""
        return True

    def __call__(self, x: Array, y: Array) -> Array:
        """The overlap of two points as seen from the origin."""
        x, y = as_real_points(x, y)
        distance = Euclidean()
        origin = namespace(x).zeros((1, x.shape[1]), dtype=x.dtype, device=getattr(x, "device", None))
        return (distance(x, origin) + distance(origin, y) - distance(x, y)) / 2

    def diagonal(self, points: Array) -> Array:
        """Distances from the origin."""
        return Euclidean()(points, namespace(points).zeros_like(points[:1, :]))[:, 0]

    @property
    def has_product(self) -> bool:
        """Always."""
        return True

    def product(self, x: Array, v: Array, *, diagonal: bool, power: int = 1) -> Any:
        """Prefix sums."""
        return energy_product(x, v, diagonal=diagonal, power=power)
