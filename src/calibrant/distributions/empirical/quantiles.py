"""Predictions given by a fan of quantiles: quantile regression, weather services, epidemic forecasts."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from calibrant._array import is_traced, matched, namespace, to_numpy
from calibrant._validate import InputError, check_fraction
from calibrant.distributions.base import Distribution, as_numbers, needed
from calibrant.distributions.empirical.ensemble import counted
from calibrant.distributions.empirical.piecewise import Piecewise, parts_of
from calibrant.results import how_many
from calibrant.typing import Array, ArrayLike

Tails = str | tuple[Any, Any]

SAME_LEVEL = 1e-9
"""Levels this close to each other are the same."""


@dataclass(frozen=True, eq=False)
class Quantiles(Piecewise):
    """Quantiles ``values`` ``(n, m)`` at the ``levels`` ``(m,)``; what lies between and beyond them was not forecast.

    Tests, PIT values, coverage and reports rest on what was: between which of its quantiles each target lies. Scores and
    kernel errors need a whole distribution, and take the quantiles as joined by straight lines; so the density is a histogram.
    :meth:`joined` says that these lines are meant, and tests may use them.

    Beyond the outer quantiles, ``tails="exponential"`` goes on through the last two: ``F(y) = u_1 exp((y - q_1) / s)``
    with ``s = (q_2 - q_1) / log(u_2 / u_1)``, and likewise above. ``tails=(low, high)`` are the ends of the range
    instead, numbers or one per row, straight lines up to them; an infinite end keeps its exponential tail, as in
    ``tails=(0, inf)``. ``tails="flat"`` leaves what is beyond at the outer quantiles themselves. Neighbouring quantiles
    that are equal give that value a probability of its own. Quantiles that cross are refused:
    :meth:`rearranged` sorts them.

    Coordinates are means and standard deviations of the pieces times the roots of their probabilities: their Euclidean
    distance is the Wasserstein distance W2. All methods are exact for the joined distribution; O(m) per row.

    >>> fan = Quantiles([[0.0, 1.0, 3.0], [0.0, 0.0, 2.0]], levels=[0.25, 0.5, 0.75])
    >>> fan.cdf(np.array([2.0, 0.0]))
    array([0.625, 0.5  ])
    >>> fan.below(np.array([2.0, 0.0]))
    array([0.625, 0.   ])
    """

    values: Array
    levels: Array
    tails: Tails = "exponential"

    is_joined: ClassVar[bool] = False
    """Whether what lies between and beyond the levels is part of the forecast."""

    def __post_init__(self) -> None:
        values, levels = as_numbers(self.values, "values"), checked_levels(self.levels)
        if values.ndim != 2 or values.shape[1] != len(levels):
            raise InputError(
                f"values must be (n, {len(levels)}), one column per level; got shape {tuple(values.shape)}"
            )
        _check_order(values, levels)
        for name, value in (("values", values), ("levels", levels), ("tails", _checked_tails(self.tails, values))):
            object.__setattr__(self, name, value)

    @classmethod
    def rearranged(cls, values: ArrayLike, levels: ArrayLike, tails: Tails = "exponential") -> Self:
        """Quantiles that may cross, sorted in each row; never farther from the true ones. Chernozhukov et al. (2010).

        >>> Quantiles.rearranged([[2.0, 1.0, 3.0]], [0.25, 0.5, 0.75]).values
        array([[1., 2., 3.]])
        """
        fan = as_numbers(values, "values")
        return cls(namespace(fan).sort(fan, axis=-1), levels, tails)

    @classmethod
    def interval(cls, low: ArrayLike, high: ArrayLike, level: float) -> Self:
        """Central intervals that hold the target with the probability ``level``: two quantiles, and no median.

        >>> Quantiles.interval([1.0, 2.0], [3.0, 5.0], level=0.9)
        <Quantiles: 2 predictions of 2 quantiles>
        >>> Quantiles.interval([1.0], [3.0], level=0.9).levels.round(2)
        array([0.05, 0.95])
        """
        check_fraction(level, "level")
        ends = as_numbers(low, "low"), as_numbers(high, "high")
        if ends[0].ndim != 1 or ends[0].shape != ends[1].shape:
            shapes = " and ".join(str(tuple(end.shape)) for end in ends)
            raise InputError(f"low and high must have one number per row; got shapes {shapes}")
        if (below := to_numpy(ends[1] < ends[0])).any():
            row = int(below.argmax())
            raise InputError(f"low must not be above high; row {row} has {ends[0][row]:g} and {ends[1][row]:g}")
        return cls(namespace(*ends).stack(ends, axis=-1), [(1 - level) / 2, (1 + level) / 2])

    @classmethod
    def joined(cls, values: ArrayLike, levels: ArrayLike, tails: Tails = "exponential") -> "JoinedQuantiles":
        """Quantiles of which the straight lines between them, and the tails, are part of the forecast.

        Resamples, kernel tests and every level may then rest on them. True quantiles that are joined are
        in general no true distribution.

        >>> Quantiles.joined([[0.0, 1.0, 3.0]], [0.25, 0.5, 0.75]).is_joined
        True
        """
        return JoinedQuantiles(values, levels, tails)

    @classmethod
    def _trusted(cls, values: Array, levels: np.ndarray, tails: Tails) -> Self:
        self = object.__new__(cls)
        for name, value in (("values", values), ("levels", levels), ("tails", tails)):
            object.__setattr__(self, name, value)
        return self

    def __getitem__(self, rows: slice | Array) -> Self:
        tails = self.tails if isinstance(self.tails, str) else (self.tails[0][rows], self.tails[1][rows])
        return self._trusted(self.values[rows, :], self.levels, tails)

    def __repr__(self) -> str:
        name = "JoinedQuantiles" if self.is_joined else "Quantiles"
        return f"<{name}: {how_many(len(self), 'prediction')} of {how_many(len(self.levels), 'quantile')}>"

    @property
    def parameters(self) -> list[Array]:
        """The quantiles; levels are the same for all rows."""
        return [self.values]

    @property
    def position(self) -> Array:
        """The lowest quantiles."""
        return self.values[:, 0]

    def shifted(self, by: float) -> Self:
        """All quantiles, and the ends of the range, moved."""
        tails = self.tails if isinstance(self.tails, str) else (self.tails[0] + by, self.tails[1] + by)
        return self._trusted(self.values + by, self.levels, tails)

    @cached_property
    def shape(self) -> tuple[Array, Array, Array]:
        """The quantiles with the ends of the range, where it has ends."""
        values, levels = self.values, self.levels
        xp = namespace(values)
        scales = [self._scale(side) for side in (0, 1)]
        if not isinstance(self.tails, str):
            for side, end in enumerate(self.tails):
                if np.isfinite(to_numpy(end)).all():
                    scales[side] = 0 * scales[side]
                    parts = [end[:, None], values] if side == 0 else [values, end[:, None]]
                    values, levels = xp.concat(parts, axis=1), np.insert(levels, side * len(levels), float(side))
        return values, xp.astype(matched(levels, values), values.dtype), xp.stack(scales, axis=1)

    def _scale(self, side: int) -> Array:
        """Of the exponential through the last two quantiles."""
        if self.tails == "flat":
            return 0 * self.values[:, 0]
        near, far, u = (0, 1, self.levels) if side == 0 else (-1, -2, 1 - self.levels)
        gap = self.values[:, far] - self.values[:, near]
        return (gap if side == 0 else -gap) / float(np.log(u[far] / u[near]))

    @property
    def coords(self) -> Array:
        """Means and standard deviations of the pieces, weighted, ``(n, 2m + 2)``."""
        mass, middle, spread = parts_of(*self.shape)
        root = mass**0.5
        return namespace(mass).concat([root * middle, root * spread], axis=1)

    def point(self, y: Array) -> Self:
        """All quantiles at the target."""
        y = matched(y, self.values)
        same = y[:, None] + 0 * matched(np.zeros(len(self.levels)), y)[None, :]
        return self._trusted(namespace(y).astype(same, self.values.dtype), self.levels, "flat")

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Five quantiles around 0, not too close to each other."""
        return cls(
            rng.normal(size=(n, 1)) + np.cumsum(rng.uniform(0.3, 1, (n, 5)), axis=1) - 2, np.linspace(0.1, 0.9, 5)
        )

    def cells_around(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first and the last cell, from 0 below all quantiles on, that targets ``(..., n)`` may belong to.

        A target that equals a quantile may belong to either side, as a value with a probability of its own does.
        """
        quantiles = self.quantiles
        return counted(quantiles, y, np.less), counted(quantiles, y, np.less_equal)

    def levels_around(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The levels between which targets ``(..., n)`` are known to lie.

        >>> Quantiles([[0.0, 1.0, 3.0]] * 2, [0.1, 0.5, 0.9]).levels_around(np.array([2.0, 1.0]))
        (array([0.5, 0.1]), array([0.9, 0.9]))
        """
        first, last = self.cells_around(y)
        ends = np.concatenate([[0.0], self.levels, [1.0]])
        return ends[first], ends[last + 1]

    @property
    def quantiles(self) -> np.ndarray:
        """The values on the host, in double precision."""
        return to_numpy(self.values).astype(np.float64)


class JoinedQuantiles(Quantiles):
    """Quantiles of which the straight lines between them are part of the forecast; :meth:`Quantiles.joined` makes them.

    >>> from calibrant import Quantiles
    >>> Quantiles.joined([[0.0, 1.0, 3.0]], [0.1, 0.5, 0.9]).cdf([0.5]).round(3)          # half way between two of them
    array([0.3])
    """

    is_joined = True


def checked_levels(x: ArrayLike) -> np.ndarray:
    """At least two levels between 0 and 1 that increase, on the host."""
    levels = to_numpy(as_numbers(x, "levels")).astype(np.float64)
    if levels.ndim != 1 or len(levels) < 2:
        raise InputError(f"levels must be at least two numbers, one per column; got shape {levels.shape}")
    wrong = levels[(levels <= 0) | (levels >= 1)]
    if len(wrong):
        remedy = "divide percentages by 100" if wrong.max() > 1 else "give the ends of the range as tails=(low, high)"
        raise InputError(f"levels must lie strictly between 0 and 1; found {wrong[-1]:g}: {remedy}")
    place = int(np.argmin(np.diff(levels)))
    if levels[place + 1] <= levels[place]:
        first, second = levels[place], levels[place + 1]
        problem = f"found {first:g} twice" if first == second else f"{second:g} comes after {first:g}"
        raise InputError(f"levels must increase; {problem}: sort levels and columns of values together, each once")
    return levels


def _check_order(values: Array, levels: np.ndarray) -> None:
    """Refuse quantiles that cross."""
    if is_traced(values):
        return
    host = to_numpy(values)
    falls = host[:, 1:] < host[:, :-1]
    if falls.any():
        row, place = (int(i) for i in np.argwhere(falls)[0])
        raise InputError(
            f"values cross in {how_many(int(falls.any(axis=1).sum()), 'row')}, first in row {row}: {host[row, place]:g} at level "
            f"{levels[place]:g} is above {host[row, place + 1]:g} at level {levels[place + 1]:g}; "
            "Quantiles.rearranged(values, levels) sorts them"
        )


def _checked_tails(tails: Tails, values: Array) -> Tails:
    """The name of the tails, or both ends of the range for every row."""
    if isinstance(tails, str) and tails in ("exponential", "flat"):
        return tails
    if isinstance(tails, str) or not isinstance(tails, tuple | list) or len(tails) != 2:
        raise InputError(f"tails must be 'exponential', 'flat' or the ends of the range (low, high); got {tails!r}")
    low, high = (_checked_end(end, values, side) for side, end in enumerate(tails))
    return low, high


def _checked_end(end: Any, values: Array, side: int) -> Array:
    """One end of the range, ``(n,)``: infinite in every row, or beyond the outer quantile of each."""
    name, outer = ("low", values[:, 0]) if side == 0 else ("high", values[:, -1])
    given = np.asarray(to_numpy(end) if hasattr(end, "shape") else end, dtype=np.float64)
    n = int(values.shape[0])
    if given.shape not in ((), (n,)):
        raise InputError(f"tails: {name} must be one number, or one per row; got shape {given.shape}")
    host = np.broadcast_to(given, (n,))
    infinite = host == (-np.inf if side == 0 else np.inf)
    if not infinite.all() and not np.isfinite(host).all():
        raise InputError(f"tails: {name} must be finite, or infinite in every row; got {end!r}")
    inside = (to_numpy(outer) - host) * (1 - 2 * side) < 0
    if inside.any():
        row = int(np.argmax(inside))
        raise InputError(
            f"tails: {name} is {host[row]:g} in row {row}, within its quantiles: {float(outer[row]):g} is beyond it"
        )
    xp = namespace(values)
    return xp.astype(matched(np.array(host), values), values.dtype)


def fan_of(predictions: object) -> Quantiles | None:
    """The quantiles, where nothing but them was forecast."""
    return predictions if isinstance(predictions, Quantiles) and not predictions.is_joined else None


def in_percent(levels: ArrayLike) -> str:
    """Levels as sentences list them.

    >>> in_percent([0.1, 0.5, 0.975])
    '10 %, 50 %, 97.5 %'
    """
    return ", ".join(f"{100 * level:g} %" for level in np.asarray(levels).tolist())


def forecast_at(predictions: Distribution, levels: ArrayLike, asker: object) -> np.ndarray:
    """Quantiles ``(n, m)`` at these levels; those of quantile forecasts alone are refused where they were not forecast."""
    u = np.atleast_1d(np.asarray(levels, dtype=np.float64))
    fan = fan_of(predictions)
    if fan is None:
        return needed(predictions.quantile(u), "quantiles", predictions, asker)
    near = np.abs(fan.levels[:, None] - u).argmin(axis=0)
    missing = u[np.abs(fan.levels[near] - u) > SAME_LEVEL]
    if len(missing):
        name = asker if isinstance(asker, str) else type(asker).__name__
        raise InputError(
            f"{name} asks for the levels {in_percent(missing)}, and these quantiles have {in_percent(fan.levels)}: ask for "
            "those, or say that straight lines between them are meant, Quantiles.joined(values, levels)"
        )
    return fan.quantiles[:, near]


def central_levels(fan: Quantiles) -> tuple[float, ...]:
    """The levels of central intervals that both ends were forecast of, the smallest first.

    >>> central_levels(Quantiles([[0.0, 1.0, 2.0, 5.0]], [0.1, 0.25, 0.5, 0.9]))
    (0.8,)
    """
    u = fan.levels[fan.levels < 0.5 - SAME_LEVEL]
    has_other = (np.abs(1 - u[:, None] - fan.levels) <= SAME_LEVEL).any(axis=1)
    return tuple(float(round(1 - 2 * low, 9)) for low in u[has_other][::-1])


def check_whole(predictions: object, asker: object) -> None:
    """Refuse quantile forecasts where a whole distribution is tested: nothing is known between their levels."""
    if fan_of(predictions) is not None:
        name = asker if isinstance(asker, str) else type(asker).__name__
        raise InputError(
            f"{name} tests whole distributions, and quantiles say nothing between their levels: use "
            "ExactTest(PITError()), or say that straight lines between them are meant, Quantiles.joined(values, levels)"
        )
