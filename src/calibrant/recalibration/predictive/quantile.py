"""Quantile recalibration: a monotone map of PIT values, and predictions seen through it."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np
from scipy.special import ndtr, ndtri

from calibrant._array import to_numpy
from calibrant._validate import InputError, as_array
from calibrant.distributions.base import Distribution, check_is_distribution
from calibrant.distributions.composite.truncated import HAIR, SYMMETRIC, above
from calibrant.distributions.continuous.location_scale import LocationScale, Normal
from calibrant.distributions.empirical.ensemble import Ensemble
from calibrant.distributions.empirical.quantiles import fan_of
from calibrant.distributions.quadrature import LEVELS, crps_by_cells, edges_of, moments_by_cells
from calibrant.recalibration.base import Found, Recalibrator, in_rows
from calibrant.recalibration.maps import Map
from calibrant.results import how_many
from calibrant.typing import Array, ArrayLike

MIN_PIT, MAX_PIT = np.finfo(np.float64).tiny, 1 - np.finfo(np.float64).epsneg
"""The PIT values next to 0 and 1, 37.5 standard deviations below and 8.2 above: what is not certain goes no farther."""

PARTS = (np.arange(8) + 0.5) / 8
"""The share of the way from the least to the largest PIT value of a count, of the PIT values that stand for it."""


def normal_scores(predictions: Distribution, y: np.ndarray, *, strictly: bool = False) -> np.ndarray:
    """``Phi^-1(F(y))`` of each row's targets, infinite where PIT values are 0 or 1; of ``P(Y < y)`` if ``strictly``.

    >>> from calibrant import Normal
    >>> normal_scores(Normal([0.0, 1.0], 2.0), np.array([60.0, 3.0]))
    array([30.,  1.])
    """
    lower = ndtri(np.clip(to_numpy(predictions.below(y) if strictly else predictions.cdf(y)), 0, 1))
    if not isinstance(predictions, SYMMETRIC):
        return lower
    upper = -ndtri(above(predictions, y))
    return np.where(lower < 0, lower, upper)


def at_normal_scores(predictions: Distribution, z: np.ndarray) -> np.ndarray:
    """The targets ``(n, m)`` that have the normal scores z, ``(m,)``, in every row.

    >>> from calibrant import Normal
    >>> at_normal_scores(Normal([0.0, 1.0], 2.0), np.array([-1.0, 30.0])).round(9)
    array([[-2., 60.],
           [-1., 61.]])
    """
    if isinstance(predictions, LocationScale) and isinstance(predictions, SYMMETRIC):
        below = to_numpy(predictions.quantile(np.where(np.isinf(z), 0, np.maximum(ndtr(-np.abs(z)), MIN_PIT))))
        return np.where(z <= 0, below, 2 * predictions.host[0][:, None] - below)
    levels = np.clip(ndtr(z) * (1 - HAIR), MIN_PIT, MAX_PIT)
    return to_numpy(predictions.quantile(np.where(np.isinf(z), ndtr(z), levels)))


def mid_scores(predictions: Distribution, y: np.ndarray) -> np.ndarray:
    """Normal scores of targets; among m members of an ensemble, of the middle of their rank, ``(rank + 1/2) / (m + 1)``."""
    if isinstance(predictions, Ensemble):
        m = 1 / predictions.coincidence
        return ndtri((m * to_numpy(predictions.cdf(y)) + 0.5) / (m + 1))
    return normal_scores(predictions, y)


def spread_scores(predictions: Distribution, y: np.ndarray) -> np.ndarray:
    """Normal scores of targets, ``(1, n)``; of targets with a probability of their own, ``(8, n)`` over their PIT values.

    A count has all PIT values from ``P(Y < y)`` to ``P(Y <= y)``, and those of a calibrated forecast fill (0, 1) evenly only if
    all of them count: the middles of eight equal parts stand for them. So do they between two quantiles, where nothing else was
    forecast. Czado, Gneiting & Held (2009).

    >>> from calibrant import Poisson
    >>> ndtr(spread_scores(Poisson([1.0]), np.array([0.0]))[:, 0]).round(2)  # P(Y = 0) is 0.37
    array([0.02, 0.07, 0.11, 0.16, 0.21, 0.25, 0.3 , 0.34])
    """
    if isinstance(predictions, Ensemble) or type(predictions).below is Distribution.below:
        return mid_scores(predictions, y)[None]
    if (fan := fan_of(predictions)) is not None:
        low, high = fan.levels_around(y)
    else:
        low, high = (to_numpy(f(y)).astype(np.float64) for f in (predictions.below, predictions.cdf))
    return ndtri(low + PARTS[:, None] * (high - low))


def check_levels(predictions: Distribution, asker: str) -> None:
    """Refuse families without a distribution function and quantiles."""
    if predictions[:1].quantile(np.array([0.5])) is NotImplemented:
        raise InputError(
            f"{asker} takes predictions of numbers that have quantiles, such as Normal, Laplace and Ensemble; "
            f"got {type(predictions).__name__}"
        )


MAX_SCORE = 37.0
"""Normal scores beyond which PIT values are 0 or 1 to all digits, and the map has the density that it has here."""

ENDS = float(ndtri(MAX_PIT))
"""The normal score of the last PIT value below 1."""


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
            given = to_numpy(as_array(getattr(self, name), name))
            is_number = given.dtype.kind in "fiu" and given.ndim == 1
            points = given.astype(np.float64) if is_number else np.full(1, np.nan)
            if not np.all(np.isfinite(points)) or not np.all(points[1:] > points[:-1]):
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
        """The logarithm of the derivative of the PIT values of values, by those of scores."""
        x, _, slopes = self._points
        z = np.clip(z, -MAX_SCORE, MAX_SCORE)
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
        check_is_distribution(self.base, "base")
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
        """Log density: of the base, and of the map at its PIT value; of values with a probability of their own, that of it."""
        y = to_numpy(targets)
        z, base = normal_scores(self.base, y), to_numpy(self.base.log_prob(y))
        if type(self.base).below is Distribution.below:
            return base + self.lines.log_density(z)
        low = normal_scores(self.base, y, strictly=True)
        with np.errstate(divide="ignore"):
            logs = np.log(_between(self.lines(low), self.lines(z)))
        # Beyond the last PIT value below 1 the base goes on, though its PIT values do not: at the density of the map there.
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
        """As ``size`` equally likely values per row, the quantiles in the middle of as many slices, for what takes no cdf."""
        return Ensemble(self.quantile((np.arange(size) + 0.5) / size))

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Normal predictions, a little skewed."""
        return cls(Normal.example(rng, n), np.array([-0.6, 0.6]), np.array([-0.9, 0.5]))


@edges_of.register
def _edges(predictions: Recalibrated) -> np.ndarray:
    """Where the base has its probability, and where the map has put it."""
    return np.sort(np.concatenate([edges_of(predictions.base), predictions.quantile(LEVELS)], axis=1), axis=1)


END_ROWS = 10
"""Rows beyond the first and last point."""

MIN_STEP = 1e-6
"""Points whose normal scores are closer than this would make a line of rounding errors."""


@dataclass(frozen=True)
class QuantileRecalibration(Recalibrator):
    """PIT values put right: ``R(F(y))`` in place of ``F(y)``, with R the empirical distribution function of PIT values.

    A calibrated model has PIT values ``u_i = F_i(y_i)`` that are uniform. R goes through points of their distribution function
    (ties count half, and one row of the identity is mixed in), joined by straight lines in normal scores: one point after
    each of about ``n^(1/3)`` equal shares of the rows, in the first and last of which further ones halve the rest down to ten
    rows. With a corner at each row, as in the paper, the map would be as right on average but have no density worth
    the name; without normal scores it would leave the tails as they were.
    The result is a :class:`Recalibrated`: distribution function, quantiles, draws, and the density ``R'(F(y)) f(y)``. R is
    the same for all rows: it mends what is wrong on average, not what is wrong of some rows. O(n log n).
    Counts have all PIT values from ``P(Y < y)`` to ``P(Y <= y)``, in equal shares, and probabilities in place of the density.
    Of quantile forecasts the map has seen the shares of targets between them, and gives new quantiles at the same levels: those
    between and beyond the given ones are taken from straight lines and tails, which held-out pinball losses judge.
    PIT values of an ensemble of m are ``(rank + 1/2) / (m + 1)``, which has no density: the CRPS judges.
    Kuleshov, Fenner & Ermon (2018).

    >>> from calibrant import Normal
    >>> rng = np.random.default_rng(0)
    >>> fitted = QuantileRecalibration().fit(rng.normal(0.0, 2.0, 2_000), Normal(np.zeros(2_000), 1.0))
    >>> fitted(Normal([10.0], 1.0)).quantile(np.array([0.1, 0.5, 0.9])).round(1), bool(fitted.scores["change"][0] < 0)
    (array([[ 7.4, 10. , 12.5]]), True)
    """

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """Corners of the distribution function of PIT values."""
        check_levels(predictions, "QuantileRecalibration")
        scores = spread_scores(predictions, targets.astype(np.float64))
        w = np.tile(in_rows(weights, len(targets)) / len(scores), len(scores))
        z, which = np.unique(scores.ravel(), return_inverse=True)
        rows = np.bincount(which, weights=w)
        n = rows.sum()
        reached = (np.cumsum(rows) - rows / 2) / n
        wanted = _shares(n) * (1 - 1e-12)  # sums of weights are rounded
        points = np.unique(np.minimum(np.searchsorted(reached, wanted), len(z) - 1))
        points = points[np.isfinite(z[points])]
        points = points[np.diff(z[points], prepend=-np.inf) > MIN_STEP]
        extreme = rows[~np.isfinite(z)].sum() / n
        notes = (
            () if extreme == 0 else (f"{extreme:.1%} of targets have a PIT value of 0 or 1: try VarianceScaling first",)
        )
        values = ndtri((n * reached[points] + ndtr(z[points])) / (n + 1))
        return Found(PITMap(type(predictions).__name__, z[points], values), notes=notes)


def _shares(n: float) -> np.ndarray:
    """Shares of the rows up to each corner: even ones, halved again and again at both ends."""
    cells = max(2, round(n ** (1 / 3)))
    halvings = np.arange(1, max(0, int(np.log2(max(n / cells / END_ROWS, 1)))) + 1)
    ends = 0.5**halvings / cells
    return np.sort(np.concatenate([np.arange(1, cells) / cells, ends, 1 - ends]))


@dataclass(frozen=True, eq=False)
class PITMap(Map):
    """Points of a map of normal scores, joined by straight lines."""

    family: str
    scores: np.ndarray
    values: np.ndarray

    def __post_init__(self) -> None:
        lines = Lines(self.scores, self.values)
        object.__setattr__(self, "scores", lines.scores)
        object.__setattr__(self, "values", lines.values)

    def apply(self, predictions: Distribution) -> Distribution:
        """The same predictions, seen through the map; of quantile forecasts, new quantiles at the same levels."""
        better = Recalibrated(predictions, self.scores, self.values)
        fan = fan_of(predictions)
        return better if fan is None else type(fan).rearranged(better.quantile(fan.levels), fan.levels, fan.tails)

    def check(self, predictions: Distribution) -> None:
        """Refuse other families."""
        if type(predictions).__name__ != self.family:
            raise InputError(f"this map was fitted on {self.family} predictions; got {type(predictions).__name__}")
