"""Predictions of any real-valued family seen through a monotone map of their levels."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np
from scipy.special import ndtr, ndtri

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.cells import LEVELS, crps_by_cells, edges_of, moments_by_cells
from calibrant.distributions.ensemble import Ensemble
from calibrant.distributions.normal import Normal
from calibrant.recalibration.normal_scores import HIGHEST, at_normal_scores, check_levels, normal_scores
from calibrant.results import how_many
from calibrant.typing import Array, ArrayLike

FARTHEST = 37.0
"""Normal scores beyond which levels are 0 or 1 to all digits, and the map has the density that it has here."""

ENDS = float(ndtri(HIGHEST))
"""The normal score of the last level below 1."""


@dataclass(frozen=True, eq=False)
class Lines:
    """An increasing map of normal scores: straight lines through points ``(scores, values)``, ``(m,)`` each.

    Beyond the first and last point the line goes on, with the slope that it has had since the point in the middle. One
    point alone is a shift, none the identity.

    >>> Lines([-1.0, 0.0, 2.0], [-3.0, 0.0, 1.0])(np.array([-2.0, -1.0, 1.0, 4.0]))
    array([-6. , -3. ,  0.5,  2. ])
    """

    scores: np.ndarray
    values: np.ndarray

    def __post_init__(self) -> None:
        for name in ("scores", "values"):
            points = np.asarray(getattr(self, name), dtype=np.float64)
            if points.ndim != 1 or not np.all(np.isfinite(points)) or not np.all(np.diff(points) > 0):
                raise InputError(f"{name} must be finite numbers that increase")
            object.__setattr__(self, name, points)
        if len(self.scores) != len(self.values):
            raise InputError(f"scores and values must be as many; got {len(self.scores)} and {len(self.values)}")

    @cached_property
    def _points(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Points, and the slopes of the lines before, between and after them."""
        x, y = self.scores, self.values
        if len(x) < 2:
            return (x, y, np.ones(2)) if len(x) else (np.zeros(1), np.zeros(1), np.ones(2))
        low, high = len(x) // 2, (len(x) - 1) // 2
        before = (y[low] - y[0]) / (x[low] - x[0])
        after = (y[-1] - y[high]) / (x[-1] - x[high])
        return x, y, np.concatenate([[before], np.diff(y) / np.diff(x), [after]])

    def __call__(self, z: np.ndarray) -> np.ndarray:
        """The value of each score."""
        x, y, slopes = self._points
        return _on_lines(z, x, y, slopes)

    def inverse(self, value: np.ndarray) -> np.ndarray:
        """The score of each value."""
        x, y, slopes = self._points
        return _on_lines(value, y, x, 1 / slopes)

    def log_density(self, z: np.ndarray) -> np.ndarray:
        """The logarithm of the derivative of the levels of values, by the levels of scores."""
        x, _, slopes = self._points
        z = np.clip(z, -FARTHEST, FARTHEST)
        return np.log(slopes)[np.searchsorted(x, z)] + (z**2 - self(z) ** 2) / 2


def _between(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The probability of a standard normal variable between two values, from the nearer tail."""
    return np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))


def _on_lines(z: np.ndarray, x: np.ndarray, y: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Values at z of the lines through points, with these slopes."""
    cell = np.searchsorted(x, z)
    near = np.maximum(cell - 1, 0)
    return y[near] + slopes[cell] * (z - x[near])


@dataclass(frozen=True, eq=False)
class Recalibrated(Distribution):
    """The distributions with ``P(Y <= y) = R(F(y))``: F those of the ``base``, R the same increasing map for all rows.

    R is given by what it does to normal scores ``Phi^-1(F(y))``: :class:`Lines` through ``(scores, values)``. So a factor
    or a shift of normal predictions is one line, and tails have a density too, ``R'(F(y)) f(y)`` where the base has one.

    >>> wider = Recalibrated(Normal([0.0, 5.0], 1.0), scores=[-1, 1], values=[-0.5, 0.5])
    >>> wider.quantile(np.array([0.5, 0.975])).round(2)
    array([[0.  , 3.92],
           [5.  , 8.92]])
    """

    base: Distribution
    scores: ArrayLike
    values: ArrayLike
    lines: Lines = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_levels(self.base, "Recalibrated")
        object.__setattr__(self, "lines", Lines(self.scores, self.values))

    def __len__(self) -> int:
        return len(self.base)

    def __getitem__(self, rows: slice | Array) -> Self:
        part = object.__new__(type(self))
        for name in ("scores", "values", "lines"):
            object.__setattr__(part, name, getattr(self, name))
        object.__setattr__(part, "base", self.base[rows])
        return part

    def __repr__(self) -> str:
        return f"<Recalibrated: {how_many(len(self), 'prediction')} from {type(self.base).__name__}>"

    def as_targets(self, y_true: ArrayLike) -> Array:
        """As the base takes them."""
        return self.base.as_targets(y_true)

    @property
    def coords(self) -> np.ndarray:
        """Those of an ensemble of quantiles: their distance is nearly the Wasserstein distance W2."""
        return to_numpy(self.ensemble().coords)

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draws ``(size, n)``: targets at random normal scores, row by row."""
        z = self.lines.inverse(rng.standard_normal((size, len(self))))
        columns = [at_normal_scores(self.base[i : i + 1], z[:, i])[0] for i in range(len(self))]
        return np.stack(columns, axis=1)

    def log_prob(self, targets: Array) -> Array:
        """Log density: of the base, and of the map at its level; of values with a probability of their own, that of it."""
        y = to_numpy(targets)
        z, base = normal_scores(self.base, y), to_numpy(self.base.log_prob(y))
        if type(self.base).below is Distribution.below:
            return base + self.lines.log_density(z)
        low = normal_scores(self.base, y, strictly=True)
        with np.errstate(divide="ignore"):
            logs = np.log(_between(self.lines(low), self.lines(z)))
        # Beyond the last level below 1 the base goes on, though its levels do not: at the density of the map there.
        density = base + self.lines.log_density(np.clip(z, -ENDS, ENDS))
        return np.where((low < z) & np.isfinite(logs), logs, density)

    def cdf(self, y: Array) -> Array:
        """``R(F(y))``."""
        return ndtr(self.lines(normal_scores(self.base, to_numpy(y))))

    def below(self, y: Array) -> Array:
        """``R(P(Y < y))``."""
        return ndtr(self.lines(normal_scores(self.base, to_numpy(y), strictly=True)))

    @property
    def mean(self) -> np.ndarray:
        """By integration between quantiles."""
        return moments_by_cells(self)[0]

    @property
    def std(self) -> np.ndarray:
        """By integration between quantiles."""
        return moments_by_cells(self)[1]

    def crps(self, y: Array) -> np.ndarray:
        """By integration between quantiles."""
        return crps_by_cells(self, y)

    def quantile(self, u: Array) -> Array:
        """Quantiles of the base at the levels that the map sends to u, ``(n, m)``."""
        return at_normal_scores(self.base, self.lines.inverse(ndtri(to_numpy(u))))

    def ensemble(self, size: int = 100) -> Ensemble:
        """As ``size`` equally likely values a row, the quantiles in the middle of as many slices, for what takes no cdf."""
        return Ensemble(self.quantile((np.arange(size) + 0.5) / size))

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Normal predictions, a little skewed."""
        return cls(Normal.example(rng, n), np.array([-0.6, 0.6]), np.array([-0.9, 0.5]))


@edges_of.register
def _edges(predictions: Recalibrated) -> np.ndarray:
    """Where the base has its probability, and where the map has put it."""
    return np.sort(np.concatenate([edges_of(predictions.base), predictions.quantile(LEVELS)], axis=1), axis=1)
