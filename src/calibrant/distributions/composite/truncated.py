"""Predictions kept within a range: truncated, where nothing happens outside, and censored, where it is seen at the ends."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from calibrant._array import matched, to_numpy
from calibrant._validate import InputError, as_array
from calibrant.distributions.base import Distribution, check_is_distribution
from calibrant.distributions.continuous.location_scale import Laplace, Logistic, Normal
from calibrant.distributions.empirical.piecewise import MIN_LEVEL, SLICES, Piecewise
from calibrant.distributions.quadrature import cf_by_cells, crps_by_cells, is_whole, moments_by_cells
from calibrant.results import how_many
from calibrant.typing import Array, ArrayLike

SYMMETRIC = (Normal, Laplace, Logistic)
"""Families with ``P(Y > y) = F(2 loc - y)``, by which levels next to 1 are as fine as those next to 0."""

HAIR = 4 * np.finfo(np.float64).eps
"""Levels are lowered by this share, so that the way there and back does not round up to the next member of an ensemble."""


def above(predictions: Distribution, y: np.ndarray) -> np.ndarray:
    """``P(Y > y)`` of each row.

    >>> float(above(Normal([0.0], 1.0), np.array([30.0]))[0]) < 1e-197
    True
    """
    if isinstance(predictions, SYMMETRIC):
        return to_numpy(predictions.cdf(2 * predictions.host[0] - y))
    return 1 - to_numpy(predictions.cdf(y))


def at_least(predictions: Distribution, y: np.ndarray) -> np.ndarray:
    """``P(Y >= y)`` of each row."""
    return above(predictions, y) if isinstance(predictions, SYMMETRIC) else 1 - to_numpy(predictions.below(y))


def value_at(predictions: Distribution, u: np.ndarray) -> np.ndarray:
    """The values of each row at levels of its own, ``(..., n)``.

    >>> value_at(Normal([0.0, 5.0], 1.0), np.array([0.5, 0.5]))
    array([0., 5.])
    """
    if isinstance(predictions, SYMMETRIC):
        loc, scale = predictions.host
        return loc + scale * type(predictions)([0.0], 1.0).quantile(u.reshape(-1)).reshape(u.shape)
    if isinstance(predictions, Piecewise):
        return predictions.at(u)
    flat = u.reshape(-1, len(predictions))
    columns = [to_numpy(predictions[i : i + 1].quantile(flat[:, i]))[0] for i in range(len(predictions))]
    return np.stack(columns, axis=1).reshape(u.shape)


def value_above(predictions: Distribution, v: np.ndarray) -> np.ndarray:
    """The values of each row that leave ``P(Y > y) = v`` of its own, ``(..., n)``."""
    if isinstance(predictions, SYMMETRIC):
        return 2 * predictions.host[0] - value_at(predictions, v)
    return value_at(predictions, 1 - v)


@dataclass(frozen=True, eq=False)
class Bounded(Distribution):
    """Predictions ``base`` of numbers, and the ends ``low`` and ``high`` of their range, one in all or one per row.

    Coordinates are 64 quantiles: their Euclidean distance is nearly the Wasserstein distance W2. Mean, standard deviation,
    ranked probability score and characteristic function are integrals of the distribution function.
    """

    base: Distribution
    low: Array = -np.inf
    high: Array = np.inf

    def __post_init__(self) -> None:
        name = type(self).__name__
        check_is_distribution(self.base, "base")
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
        end = to_numpy(as_array(value, name)) if isinstance(value, list | tuple) else value
        end = np.asarray(to_numpy(end) if hasattr(end, "shape") else end)
        n = len(self.base)
        if end.dtype.kind not in "fiu" or end.shape not in ((), (n,)):
            raise InputError(f"{name} must be one number, or one per row ({n:,}); got {value!r}")
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


MIN_MASS = 1e-13
"""What must be left within the range where it is a difference of levels next to 1."""


@dataclass(frozen=True, eq=False, repr=False)
class Truncated(Bounded):
    """The distributions of ``base``, given that targets lie between ``low`` and ``high``, ends included.

    ``P(Y <= y) = P(low <= B <= y) / P(low <= B <= high)``. For amounts that are positive, rates below one; use
    :class:`Censored` where what lies outside is recorded at the end of the range. Far upper tails of normal and
    Laplace predictions keep their digits. Draws by inversion, row by row where the base has no faster way.

    >>> from calibrant import Normal
    >>> rain = Truncated(Normal([0.0, 2.0], 1.0), low=0.0)
    >>> rain.cdf(np.array([0.0, 2.0])).round(4)
    array([0.    , 0.4884])
    >>> bool(abs(rain.mean[0] - (2 / np.pi) ** 0.5) < 1e-9)
    True
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        least = 0.0 if isinstance(self.base, SYMMETRIC) else np.where(self._is_high, MIN_MASS, 0.0)
        wrong = ~(self._kept > least)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(
                f"the range must hold some probability; {self.low[row]:g} to {self.high[row]:g} holds none of row {row}"
            )

    @cached_property
    def _before(self) -> tuple[np.ndarray, np.ndarray]:
        """``P(B < low)`` and ``P(B >= low)``."""
        return to_numpy(self.base.below(self.low)), at_least(self.base, self.low)

    @property
    def _is_high(self) -> np.ndarray:
        """Rows whose range begins above the median: their levels are counted from above."""
        return self._before[0] > 0.5

    @cached_property
    def _kept(self) -> np.ndarray:
        """``P(low <= B <= high)``."""
        return self._within(to_numpy(self.base.cdf(self.high)), above(self.base, self.high))

    def _within(self, under: np.ndarray, over: np.ndarray) -> np.ndarray:
        """What is between low and a value, from what is under and over the value."""
        return np.where(self._is_high, self._before[1] - over, under - self._before[0])

    def cdf(self, y: Array) -> np.ndarray:
        """``P(Y <= y)``."""
        y = to_numpy(y)
        inside = np.clip(y, self.low, self.high)
        share = self._within(to_numpy(self.base.cdf(inside)), above(self.base, inside)) / self._kept
        return np.where(y < self.low, 0.0, np.where(y >= self.high, 1.0, np.clip(share, 0, 1)))

    def below(self, y: Array) -> np.ndarray:
        """``P(Y < y)``."""
        y = to_numpy(y)
        inside = np.clip(y, self.low, self.high)
        share = self._within(to_numpy(self.base.below(inside)), at_least(self.base, inside)) / self._kept
        return np.where(y <= self.low, 0.0, np.where(y > self.high, 1.0, np.clip(share, 0, 1)))

    def log_prob(self, targets: Array) -> np.ndarray:
        """Log density of the base, over what the range holds."""
        y = to_numpy(targets)
        inside = to_numpy(self.base.log_prob(np.clip(y, self.low, self.high))) - np.log(self._kept)
        return np.where((y < self.low) | (y > self.high), -np.inf, inside)

    def quantile(self, u: Array) -> np.ndarray:
        """Values ``(n, m)`` at the levels u."""
        levels = to_numpy(u)
        return self._at(np.broadcast_to(levels[:, None], (len(levels), len(self)))).T

    def _at(self, u: np.ndarray) -> np.ndarray:
        """Values of each row at levels ``(..., n)``, counted from the nearer end of the base."""
        under = self._before[0] + u * self._kept
        over = above(self.base, self.high) + (1 - u) * self._kept
        lower = value_at(self.base, under * (1 - HAIR))
        hair = HAIR * np.where(u < 1, over if isinstance(self.base, SYMMETRIC) else 1.0, 0.0)
        upper = value_above(self.base, np.minimum(over + hair, 1))
        return np.clip(np.where(under < 0.5, lower, upper), self.low, self.high)

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draws ``(size, n)``: values at random levels."""
        drawn = self._at(np.maximum(rng.random((size, len(self))), MIN_LEVEL))
        return drawn.astype(np.int64) if is_whole(self.base) else drawn

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Normal predictions, kept above zero, and below three where they are low."""
        from calibrant.distributions.continuous.location_scale import Normal

        base = Normal.example(rng, n)
        return cls(base, 0.0, np.where(base.loc > 0, np.inf, 3.0))


@dataclass(frozen=True, eq=False, repr=False)
class Censored(Bounded):
    """The distributions of ``min(max(B, low), high)``, B from ``base``: both ends have a probability of their own.

    Rain that is recorded as zero, demand that is capped by the stock, times that end with the study.
    ``log_prob`` is the log density inside and the log probability at the ends (Tobit), so the log loss is proper for
    targets that are recorded alike.

    >>> from calibrant import Normal
    >>> demand = Censored(Normal([5.0, 9.0], 2.0), low=0.0, high=8.0)
    >>> demand.below(np.array([8.0, 8.0])).round(4), demand.cdf(np.array([8.0, 8.0]))
    (array([0.9332, 0.3085]), array([1., 1.]))
    """

    def cdf(self, y: Array) -> np.ndarray:
        """``P(Y <= y)``."""
        y = to_numpy(y)
        inside = to_numpy(self.base.cdf(np.clip(y, self.low, self.high)))
        return np.where(y < self.low, 0.0, np.where(y >= self.high, 1.0, inside))

    def below(self, y: Array) -> np.ndarray:
        """``P(Y < y)``."""
        y = to_numpy(y)
        inside = to_numpy(self.base.below(np.clip(y, self.low, self.high)))
        return np.where(y <= self.low, 0.0, np.where(y > self.high, 1.0, inside))

    def log_prob(self, targets: Array) -> np.ndarray:
        """Log density inside, log probability at the ends."""
        y = to_numpy(targets)
        with np.errstate(divide="ignore"):
            ends = np.log(to_numpy(self.base.cdf(self.low))), np.log(at_least(self.base, self.high))
        inside = to_numpy(self.base.log_prob(np.clip(y, self.low, self.high)))
        found = np.where(y == self.low, ends[0], np.where(y == self.high, ends[1], inside))
        return np.where((y < self.low) | (y > self.high), -np.inf, found)

    def quantile(self, u: Array) -> np.ndarray:
        """Those of the base, kept in the range, ``(n, m)``."""
        return np.clip(to_numpy(self.base.quantile(to_numpy(u))), self.low[:, None], self.high[:, None])

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draws of the base, kept in the range, ``(size, n)``."""
        drawn = self.base.sample(rng, size)
        return np.clip(drawn, self.low, self.high).astype(drawn.dtype)

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Normal predictions between -1/2 and 1."""
        from calibrant.distributions.continuous.location_scale import Normal

        return cls(Normal.example(rng, n), -0.5, 1.0)
