"""What families with a location and a scale share."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant._array import namespace, to_numpy
from calibrant._validate import InputError, check_same_length
from calibrant.distributions.base import as_numbers, matched, one_a_row
from calibrant.distributions.parametric import Parametric, check_positive, is_single, single
from calibrant.typing import Array, ArrayLike


def as_scale(x: ArrayLike, loc: Array) -> Array:
    """Positive real numbers in the shape of ``loc``; one number a row, or one in all, is repeated."""
    xp, n = namespace(loc), loc.shape[0]
    if is_single(x):
        scale = loc * 0 + single(x, loc)
    else:
        scale = matched(as_numbers(x, "scale"), loc)
        check_same_length(scale.shape[0], n, "scale", "loc")
    if tuple(scale.shape) in ((n,), (n, 1)):
        scale = loc * 0 + xp.reshape(scale, (n, *[1] * (loc.ndim - 1)))
    if scale.shape != loc.shape:
        raise InputError(f"scale must be one number a row, or like loc; got shape {tuple(scale.shape)}")
    check_positive(scale, "scale")
    return scale


@dataclass(frozen=True, eq=False, repr=False)
class LocationScale(Parametric):
    """A batch with ``loc`` and ``scale``, ``(n,)`` each; subclasses say what they mean."""

    loc: Array
    scale: Array

    def __post_init__(self) -> None:
        loc = one_a_row(self.loc, "loc")
        object.__setattr__(self, "scale", as_scale(self.scale, loc))
        object.__setattr__(self, "loc", loc)

    def point(self, y: Array) -> Self:
        """The same family with scale zero."""
        y = matched(y, self.loc)
        return self._trusted(y, namespace(y).zeros_like(y))

    @property
    def position(self) -> Array:
        """``loc``."""
        return self.loc

    def shifted(self, by: float) -> Self:
        """With another ``loc``."""
        return self._trusted(self.loc + by, self.scale)

    def standardised(self, y: Array) -> tuple[np.ndarray, np.ndarray]:
        """Targets less their location, in scales, and the scales, on the host; beyond all numbers they are infinite."""
        loc, scale = self.host
        with np.errstate(over="ignore"):
            return (to_numpy(y) - loc) / scale, scale

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Locations around 0, scales between 1/2 and 2."""
        return cls(rng.normal(size=n), rng.uniform(0.5, 2, n))
