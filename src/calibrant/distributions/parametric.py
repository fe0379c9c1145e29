"""What families given by a few numbers per row share."""

import math
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np

from calibrant._array import matched, namespace, to_numpy
from calibrant._validate import MAX_NUMBER, MIN_NUMBER, InputError, check_finite, check_same_length
from calibrant.distributions.base import Distribution, one_a_row
from calibrant.distributions.empirical.ensemble import Ensemble
from calibrant.results import how_many
from calibrant.typing import Array, ArrayLike


def is_single(x: object) -> bool:
    """Whether one number is meant for all rows."""
    return isinstance(x, Real) or getattr(x, "shape", None) == ()


def single(x: Any, to: Array) -> Any:
    """That number as one that an array can be multiplied by."""
    return float(x) if isinstance(x, Real) else matched(x, to)


def check_positive(
    x: Array,
    name: str,
    *,
    least: float = 0.0,
    most: float = math.inf,
    remedy: str = "drop those rows, or give targets and forecasts in another unit",
) -> None:
    """Refuse zeros, negative and infinite numbers, and those outside of a range, naming the row of the worst.

    >>> check_positive(np.array([1.0, 0.0]), "scale")
    Traceback (most recent call last):
        ...
    calibrant._validate.InputError: scale must be positive; found 0 in row 1
    """
    low, high = check_finite(x, name)
    if not (low <= 0 or low < least or high > most):
        return
    xp = namespace(x)
    rows = xp.reshape(x, (x.shape[0], -1))
    if low <= 0:
        raise InputError(f"{name} must be positive; found {low:g} in row {int(xp.argmin(xp.min(rows, axis=1)))}")
    is_low = low < least
    row = int(xp.argmin(xp.min(rows, axis=1)) if is_low else xp.argmax(xp.max(rows, axis=1)))
    raise InputError(
        f"{name} must lie between {least:g} and {most:g}; found {low if is_low else high:g} in row {row}: {remedy}"
    )


def check_scale(x: Array, name: str) -> None:
    """Refuse scales that are not positive, or whose squares are no numbers."""
    check_positive(x, name, least=MIN_NUMBER, most=MAX_NUMBER)


def as_columns(values: dict[str, ArrayLike]) -> list[Array]:
    """Parameters ``(n,)`` in one library and precision; a single number is repeated, but they cannot all be one."""
    given = {name: one_a_row(x, name) for name, x in values.items() if not is_single(x)}
    if not given:
        names = " or ".join(values)
        raise InputError(f"{names} must be one number per row, as an array or a list; got {list(values.values())!r}")
    lead = next(iter(given))
    for name, x in given.items():
        check_same_length(x.shape[0], given[lead].shape[0], name, lead)
    library = next((x for x in given.values() if not isinstance(x, np.ndarray)), given[lead])
    joined = {name: matched(x, library) for name, x in given.items()}
    zero = sum(0 * x for x in joined.values())
    return [joined[name] + zero if name in joined else zero + single(x, library) for name, x in values.items()]


@dataclass(frozen=True, eq=False, repr=False)
class Parametric(Distribution):
    """A batch whose fields are its parameters, ``(n,)`` each; one number for all rows is repeated.

    Subclasses check the range of their parameters after ``super().__post_init__()``.
    """

    __match_args__: ClassVar[tuple[str, ...]]

    largest: ClassVar[float] = MAX_NUMBER
    """The largest size of parameters and targets that the family computes with."""

    def __post_init__(self) -> None:
        names = [field.name for field in fields(self)]
        for name, column in zip(names, as_columns({name: getattr(self, name) for name in names}), strict=True):
            check_finite(column, name, most=self.largest)
            object.__setattr__(self, name, column)

    @classmethod
    def _trusted(cls, *parameters: Array) -> Self:
        """Without checks, in the order of the fields."""
        self = object.__new__(cls)
        for field, column in zip(fields(cls), parameters, strict=True):
            object.__setattr__(self, field.name, column)
        return self

    @property
    def parameters(self) -> list[Array]:
        """The fields, in their order."""
        return [getattr(self, name) for name in self.__match_args__]

    @property
    def host(self) -> tuple[np.ndarray, ...]:
        """The parameters as NumPy float64."""
        return tuple(to_numpy(column).astype(np.float64, copy=False) for column in self.parameters)

    def __len__(self) -> int:
        return int(self.parameters[0].shape[0])

    def __getitem__(self, rows: slice | Array) -> Self:
        return self._trusted(*(column[rows] for column in self.parameters))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {how_many(len(self), 'prediction')}>"

    def as_targets(self, y_true: ArrayLike) -> Array:
        """Real numbers, ``(n,)``."""
        return matched(one_a_row(y_true, "y_true", most=self.largest), self.parameters[0])

    def point(self, y: Array) -> Any:
        """A single member, as most families have none without spread."""
        return Ensemble(matched(y, self.parameters[0])[:, None])
