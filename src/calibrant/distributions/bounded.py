"""What predictions share that are those of another family kept within bounds."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution, matched
from calibrant.distributions.cells import cf_by_cells, crps_by_cells, is_whole, moments_by_cells
from calibrant.distributions.piecewise import SLICES
from calibrant.results import how_many
from calibrant.typing import Array, ArrayLike


@dataclass(frozen=True, eq=False)
class Bounded(Distribution):
    """Predictions ``base`` of numbers, and the ends ``low`` and ``high`` of their range, one in all or one a row.

    Coordinates are 64 quantiles: their Euclidean distance is nearly the Wasserstein distance W2. Mean, standard deviation,
    ranked probability score and characteristic function are integrals of the distribution function.
    """

    base: Distribution
    low: Array = -np.inf
    high: Array = np.inf

    def __post_init__(self) -> None:
        name = type(self).__name__
        if not isinstance(self.base, Distribution):
            raise InputError(f"base must be a distribution such as Normal(loc, scale); got {self.base!r}")
        one = self.base[:1]
        if any(part is NotImplemented for part in (one.quantile(np.array([0.5])), one.cdf(np.zeros(1)))):
            raise InputError(
                f"{name} takes predictions of numbers with a distribution function and quantiles, such as Normal; "
                f"got {type(self.base).__name__}"
            )
        ends = [self._checked_end("low", np.inf), self._checked_end("high", -np.inf)]
        wrong = ~(ends[0] < ends[1])
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(f"low must be below high; got {ends[0][row]:g} and {ends[1][row]:g} in row {row}")
        if np.isinf(ends).all():
            raise InputError(f"{name} needs an end of the range: give low, high or both")
        object.__setattr__(self, "low", ends[0])
        object.__setattr__(self, "high", ends[1])

    def _checked_end(self, name: str, never: float) -> np.ndarray:
        """One end of the range for every row."""
        value = getattr(self, name)
        end = np.asarray(to_numpy(value) if hasattr(value, "shape") else value)
        n = len(self.base)
        if end.dtype.kind not in "fiu" or end.shape not in ((), (n,)):
            raise InputError(f"{name} must be one number, or one a row ({n:,}); got {value!r}")
        ends = np.broadcast_to(end.astype(np.float64), (n,)).copy()
        if np.isnan(ends).any() or (ends == never).any():
            raise InputError(f"{name} must be a number, or infinite where there is no end; got {value!r}")
        if is_whole(self.base) and np.any(np.isfinite(ends) & (ends != np.round(ends))):
            raise InputError(f"{name} must be whole where targets are counts; got {value!r}")
        return ends

    @classmethod
    def _trusted(cls, base: Distribution, low: np.ndarray, high: np.ndarray) -> Self:
        self = object.__new__(cls)
        for name, value in (("base", base), ("low", low), ("high", high)):
            object.__setattr__(self, name, value)
        return self

    def __len__(self) -> int:
        return len(self.base)

    def __getitem__(self, rows: slice | Array) -> Self:
        host = rows if isinstance(rows, slice) else to_numpy(rows)
        return self._trusted(self.base[rows], self.low[host], self.high[host])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {how_many(len(self), 'prediction')} from {type(self.base).__name__}>"

    def as_targets(self, y_true: ArrayLike) -> Array:
        """As the base takes them, within the range."""
        y = self.base.as_targets(y_true)
        host = to_numpy(y)
        outside = (host < self.low) | (host > self.high) if len(host) == len(self) else np.zeros(1, dtype=bool)
        if outside.any():
            row = int(np.argmax(outside))
            raise InputError(
                f"y_true must lie within the range of the predictions; row {row} has {host[row]:g}, "
                f"and its range is {self.low[row]:g} to {self.high[row]:g}"
            )
        return y

    def checked(self) -> Self:
        """With a checked base."""
        return self._trusted(self.base.checked(), self.low, self.high)

    @abstractmethod
    def below(self, y: Array) -> np.ndarray:
        """``P(Y < y)``."""

    @property
    def position(self) -> Any:
        """That of the base."""
        return self.base.position

    def shifted(self, by: float) -> Any:
        """Base and ends moved."""
        moved = self.base.shifted(by)
        return NotImplemented if moved is NotImplemented else self._trusted(moved, self.low + by, self.high + by)

    @property
    def kinks(self) -> np.ndarray:
        """The ends of the range, and those of the base within."""
        middle = to_numpy(self.quantile(np.array([0.5])))[:, 0]
        ends = [np.where(np.isfinite(end), end, middle) for end in (self.low, self.high)]
        inner: Any = self.base.kinks
        if inner is NotImplemented:
            return np.stack(ends, axis=1)
        return np.concatenate([np.stack(ends, axis=1), np.clip(inner, self.low[:, None], self.high[:, None])], axis=1)

    @property
    def coords(self) -> Array:
        """Quantiles in the middle of 64 slices over 8: nearly the Wasserstein distance W2."""
        values = to_numpy(self.quantile((np.arange(SLICES) + 0.5) / SLICES)) / SLICES**0.5
        return matched(values, self.base.parameters[0])

    @cached_property
    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        return moments_by_cells(self)

    @property
    def mean(self) -> np.ndarray:
        """Mean of each row."""
        return self._moments[0]

    @property
    def std(self) -> np.ndarray:
        """Standard deviation of each row."""
        return self._moments[1]

    def crps(self, y: Array) -> np.ndarray:
        """``integral (F(x) - [y <= x])^2 dx``."""
        return crps_by_cells(self, y)

    def cf(self, w: Array) -> tuple[Array, Array]:
        """By an integral of the distribution function."""
        like = self.base.parameters[0]
        real, imaginary = cf_by_cells(self, w)
        return matched(real, like), matched(imaginary, like)
