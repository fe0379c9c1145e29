"""What families with a location and a scale share."""

from dataclasses import dataclass
from numbers import Real
from typing import Self

import numpy as np

from calibrant._array import namespace, to_numpy
from calibrant._validate import InputError, check_finite, check_same_length
from calibrant.distributions.base import Distribution, as_numbers, matched, real_targets
from calibrant.typing import Array, ArrayLike


def as_scale(x: ArrayLike, loc: Array) -> Array:
    """Positive real numbers in the shape of ``loc``; one number a row, or one in all, is repeated."""
    xp, n = namespace(loc), loc.shape[0]
    if isinstance(x, Real) or getattr(x, "shape", None) == ():
        scale = loc * 0 + (float(x) if isinstance(x, Real) else matched(x, loc))
    else:
        scale = matched(as_numbers(x, "scale"), loc)
        check_same_length(scale.shape[0], n, "scale", "loc")
    if tuple(scale.shape) in ((n,), (n, 1)):
        scale = loc * 0 + xp.reshape(scale, (n, *[1] * (loc.ndim - 1)))
    if scale.shape != loc.shape:
        raise InputError(f"scale must be one number a row, or like loc; got shape {tuple(scale.shape)}")
    low, _ = check_finite(scale, "scale")
    if low <= 0:
        row = int(xp.argmin(xp.min(xp.reshape(scale, (n, -1)), axis=1)))
        raise InputError(f"scale must be positive; found {low:g} in row {row}")
    return scale


@dataclass(frozen=True, eq=False)
class LocationScale(Distribution):
    """A batch with ``loc`` and ``scale``, ``(n,)`` each; subclasses say what they mean."""

    loc: Array
    scale: Array

    def __post_init__(self) -> None:
        loc = as_numbers(self.loc, "loc")
        if loc.ndim == 2 and loc.shape[1] == 1:
            loc = loc[:, 0]
        if loc.ndim != 1:
            raise InputError(f"loc must be one number a row; got shape {tuple(loc.shape)}")
        object.__setattr__(self, "scale", as_scale(self.scale, loc))
        object.__setattr__(self, "loc", loc)

    @classmethod
    def _trusted(cls, loc: Array, scale: Array) -> Self:
        """Without checks; the scale may be zero."""
        self = object.__new__(cls)
        object.__setattr__(self, "loc", loc)
        object.__setattr__(self, "scale", scale)
        return self

    def __len__(self) -> int:
        return int(self.loc.shape[0])

    def __getitem__(self, rows: slice | Array) -> Self:
        return self._trusted(self.loc[rows], self.scale[rows])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self):,} predictions>"

    def as_targets(self, y_true: ArrayLike) -> Array:
        """Real numbers, ``(n,)``."""
        return matched(real_targets(y_true), self.loc)

    def point(self, y: Array) -> Self:
        """The same family with scale zero."""
        y = matched(y, self.loc)
        return self._trusted(y, namespace(y).zeros_like(y))

    @property
    def host(self) -> tuple[np.ndarray, np.ndarray]:
        """Location and scale as NumPy float64."""
        return to_numpy(self.loc).astype(np.float64), to_numpy(self.scale).astype(np.float64)

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Locations around 0, scales between 1/2 and 2."""
        return cls(rng.normal(size=n), rng.uniform(0.5, 2, n))
