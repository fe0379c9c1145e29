"""What every family of predictive distributions provides."""

import math
from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any, Self

import numpy as np

from calibrant._array import is_array, is_traced, namespace, to_numpy
from calibrant._array import matched as matched
from calibrant._validate import InputError, as_array, as_real, as_working_precision, of_what
from calibrant.typing import Array, ArrayLike


class Distribution(ABC):
    """A batch of n predictions, each a probability distribution of that row's target.

    A family is one file: a frozen dataclass that holds arrays with rows first, and the methods below. Targets are
    arrays whose last axes are those of one batch, so a stack of resampled targets ``(size, n, ...)`` goes wherever one
    vector of targets goes. The methods that are not abstract are optional: "I cannot" is ``NotImplemented``, and what
    needs them looks for another way.
    """

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __getitem__(self, rows: slice | Array) -> Self:
        """The predictions of these rows (a slice, or an array of row numbers)."""

    @abstractmethod
    def as_targets(self, y_true: ArrayLike) -> Array:
        """The caller's targets in the form this family computes with; refuses what cannot be one."""

    def checked(self) -> Self:
        """The same predictions, known to belong to targets that :meth:`as_targets` has converted already."""
        return self

    @abstractmethod
    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """``size`` independent draws of all n targets, ``(size, n, ...)``."""

    @classmethod
    @abstractmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """A valid random batch, for conformance checks and simulations."""

    @property
    def parameters(self) -> list[Array]:
        """The arrays that make up the batch, rows first; what all rows share is not among them."""
        found: list[Array] = []
        for field in fields(self):  # type: ignore[arg-type]  # families are dataclasses
            value = getattr(self, field.name)
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, Distribution):
                    found += part.parameters
                elif is_array(part) and part.shape[0] == len(self):
                    found.append(part)
        return found

    @property
    def coords(self) -> Any:
        """Points ``(n, d)`` whose Euclidean distance is the natural distance of the predictions."""
        return NotImplemented

    def point(self, y: Array) -> Any:
        """Targets as distributions of this family without spread."""
        return NotImplemented

    def log_prob(self, targets: Array) -> Array:
        """Log density (or mass) of each row's target."""
        raise InputError(f"{type(self).__name__} has no log_prob ({targets.shape[-1]} targets given)")

    def cdf(self, y: Array) -> Any:
        """``P(Y <= y)`` of each row, for y with any leading axes."""
        return NotImplemented

    def below(self, y: Array) -> Any:
        """``P(Y < y)`` of each row; families in which single values have a probability of their own say otherwise."""
        return self.cdf(y)

    @property
    def mean(self) -> Any:
        """The mean of each row, ``(n,)``, or ``(n, d)`` of vectors."""
        return NotImplemented

    @property
    def std(self) -> Any:
        """The standard deviation of each row, ``(n,)``, or of each coordinate, ``(n, d)``."""
        return NotImplemented

    def crps(self, y: Array) -> Any:
        """The continuous ranked probability score ``E|Y - y| - E|Y - Y'| / 2`` of each row, for y with any leading axes."""
        return NotImplemented

    def distance(self, other: Self) -> Any:
        """``E|Y - Y'|`` of each row and the same row of another batch of this family, independent of each other, ``(n,)``."""
        return NotImplemented

    @property
    def kinks(self) -> Any:
        """Values ``(n, k)`` where the density of a row jumps or has a corner, or that have a probability of their own."""
        return NotImplemented

    def quantile(self, u: Array) -> Any:
        """The values ``(n, m)`` below which each row has the probabilities u, ``(m,)``."""
        return NotImplemented

    def cf(self, w: Array) -> Any:
        """Real and imaginary part of the characteristic function ``E exp(i w.Y)``, ``(n, m)`` each, at w ``(m,)`` or ``(m, d)``."""
        return NotImplemented

    @property
    def position(self) -> Any:
        """Numbers ``(n,)``, or vectors ``(n, d)``, that move with the predictions and lie among them."""
        return NotImplemented

    def shifted(self, by: Any) -> Any:
        """The distributions of ``Y + by``, for a number or a vector ``(d,)``, of families that have a :attr:`position`."""
        return NotImplemented

    @property
    def is_cheaper_by_features(self) -> bool:
        """Whether the characteristic function gives expectations of kernels at less cost than sums over values do."""
        return False

    def temper(self, temperature: float) -> Any:
        """The distributions proportional to ``p^(1 / T)``, densities p with respect to the family's reference measure."""
        return NotImplemented

    def log_reference(self, y: Array) -> Any:
        """Log density of the measure that :meth:`temper` refers to: zero for lengths and counts."""
        return 0.0


def check_is_distribution(x: object, name: str) -> None:
    """Refuse what is no distribution, such as the numbers of one."""
    if not isinstance(x, Distribution):
        raise InputError(f"{name} must be a distribution such as Normal(loc, scale); got {of_what(x)}")


def as_numbers(x: ArrayLike, name: str, *, most: float = math.inf) -> Array:
    """Finite real numbers, none of them larger than ``most`` and at least one along every axis, in single or double precision."""
    values = as_array(x, name)
    if 0 in values.shape:
        raise InputError(f"{name} is empty: got shape {tuple(values.shape)}")
    return as_working_precision(as_real(values, name, most=most))


def as_shares(weights: ArrayLike | None, n: int, k: int) -> Array:
    """Weights ``(n, k)`` that sum to one in each row, from those or from ``(k,)`` for all rows; equal if not given."""
    if weights is None:
        return np.full((n, k), 1 / k)
    w = as_numbers(weights, "weights")
    xp = namespace(w)
    w = (
        xp.broadcast_to(w[None, :], (n, k)) + 0.0 if w.ndim == 1 and w.shape[0] == k else w
    )  # a copy, which torch can share
    if tuple(w.shape) != (n, k):
        raise InputError(f"weights must be (n, {k}) or ({k},); got shape {tuple(w.shape)}")
    if is_traced(w):
        return w
    host = to_numpy(w).astype(np.float64)
    if host.min() < 0:
        raise InputError(f"weights must not be negative; found {host.min():g} in row {int(host.min(axis=1).argmin())}")
    total = host.sum(axis=1)
    row = int(np.abs(total - 1).argmax())
    if abs(total[row] - 1) > 1e-6:
        raise InputError(f"weights must sum to 1; row {row} sums to {total[row]:.9g}")
    return w


def displaced(x: Array, by: Any) -> Array:
    """``x + by`` in the library and precision of x, for a number or a vector along the last axis."""
    if isinstance(by, float):
        return x + by
    return x + namespace(x).astype(matched(by, x), x.dtype)


def needed(answer: Any, what: str, predictions: Distribution, asker: object) -> np.ndarray:
    """What a family says of itself, on the host; a family that cannot say it is refused in the name of who asked."""
    if answer is NotImplemented:
        name = asker if isinstance(asker, str) else type(asker).__name__
        raise InputError(f"{name} needs {what}, which {type(predictions).__name__} predictions do not have")
    return to_numpy(answer)


def one_a_row(x: ArrayLike, name: str, *, most: float = math.inf) -> Array:
    """Finite real numbers ``(n,)``, none of them larger than ``most``; a single column is one, too."""
    values = as_numbers(x, name, most=most)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise InputError(f"{name} must be one number per row; got shape {tuple(values.shape)}")
    return values


def check_temperature(temperature: float) -> None:
    """Refuse what is no temperature."""
    if not temperature > 0:
        raise InputError(f"temperature must be positive; got {temperature!r}")
