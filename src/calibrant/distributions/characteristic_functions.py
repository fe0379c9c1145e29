"""Characteristic functions that keep their digits and cost little.

Years, pressures in pascals or prices have a large common part that no residual depends on, and that would cost digits:
``cos(w y)`` at ``y = 1e9`` is right to seven digits only, in single precision to none. So predictions are moved to their middle.
Long empty stretches of the line are cut short, and cosines and sines at many even frequencies come from those at few.
"""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant._array import as_double, detached, is_traced, matched, namespace, to_numpy
from calibrant.distributions.base import Distribution, displaced
from calibrant.typing import Array

FAR = 4.0
"""How many times farther from zero than from each other predictions must lie to be moved."""


def origin_of(*batches: Distribution, far: float = FAR) -> Any:
    """The middle of all predictions, a number or a vector ``(d,)``; ``None`` where they lie around zero or cannot be moved.

    They do where the middle is at most ``far`` times as far away as they are from it.

    >>> from calibrant import Normal
    >>> origin_of(Normal([1000.0, 1002.0], 1.0)), origin_of(Normal([-1.0, 1.5], 1.0))
    (1001.0, None)
    """
    found = [batch.position for batch in batches]
    if any(position is NotImplemented or is_traced(position) for position in found):
        return None
    xp = namespace(*found)
    places = xp.concat([as_double(detached(position)) for position in found])
    middle = xp.mean(places, axis=0)
    width = float(xp.max(xp.abs(places - middle)))
    if float(xp.max(xp.abs(middle))) <= far * width:
        return None
    rounded = to_numpy(xp.astype(middle, found[0].dtype)).astype(np.float64)  # so that nothing is lost in differences
    return float(rounded) if rounded.ndim == 0 else rounded


def around(origin: Any, predictions: Distribution, *targets: Array) -> tuple[Any, ...]:
    """Predictions and targets as seen from an origin; themselves where that is ``None``, or predictions cannot be moved.

    >>> from calibrant import Normal
    >>> moved, y = around(1000.0, Normal([1000.0], 1.0), np.array([1002.0]))
    >>> moved.loc, y
    (array([0.]), array([2.]))
    """
    moved = NotImplemented if origin is None else predictions.shifted(-origin)
    if moved is NotImplemented:
        return predictions, *targets
    return moved, *(displaced(y, -origin) for y in targets)


@dataclass(frozen=True, eq=False)
class ShortenedLine:
    """Numbers below and above a range, and how far each is moved towards it.

    Of two numbers whose distance is at most ``reach``, as of any two within the range, the distance stays; others stay at least
    that far apart. So a kernel that is zero beyond its reach sees no difference.

    >>> line = ShortenedLine.of(0.0, 1.0, np.array([0.5, 100.0, 102.0, 1e6]), reach=5.0)
    >>> line(np.array([0.5, 100.0, 102.0, 1e6])), line.span
    (array([ 0.5,  6. ,  8. , 13. ]), 13.0)
    """

    low: float
    high: float
    below: np.ndarray
    above: np.ndarray
    moves: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(cls, low: float, high: float, points: np.ndarray, reach: float) -> Self:
        """For all points that will be asked for; nothing is cut between ``low`` and ``high``."""
        below, above = np.unique(points[points < low]), np.unique(points[points > high])
        excess = [np.maximum(np.diff(end) - reach, 0) for end in (np.append(below, low), np.insert(above, 0, high))]
        moves = np.cumsum(excess[0][::-1])[::-1], np.cumsum(excess[1])
        return cls(low, high, below, above, moves)

    def __call__(self, y: Array) -> Array:
        """Where these points lie on the shortened line."""
        host = to_numpy(y)
        move = np.zeros(host.shape, dtype=np.float64)
        for side, inside, moves, sign in (
            (self.below, host < self.low, self.moves[0], 1),
            (self.above, host > self.high, self.moves[1], -1),
        ):
            move[inside] = sign * moves[np.searchsorted(side, host[inside])]
        return y + matched(move.astype(host.dtype), y) if move.any() else y

    @property
    def span(self) -> float:
        """The length of all that is left."""
        ends = np.array([self.low, self.high, *self.below[:1], *self.above[-1:]])
        return float(np.ptp(self(ends)))


MAX_DIRECT = 32
"""Up to so many frequencies are taken as they are."""


def as_sums(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers a and b whose sums ``a_i + b_j``, in rows, begin with the frequencies; few of each if those are evenly spaced.

    >>> as_sums(np.arange(100.0))
    (array([ 0., 10., 20., 30., 40., 50., 60., 70., 80., 90.]), array([0., 1., 2., 3., 4., 5., 6., 7., 8., 9.]))
    >>> as_sums(np.array([1.0, 2.0, 4.0]))
    (array([1., 2., 4.]), array([0.]))
    """
    m = len(w)
    step = (w[-1] - w[0]) / max(m - 1, 1)
    if m <= MAX_DIRECT or np.abs(w - w[0] - step * np.arange(m)).max() > 1e-14 * np.abs(w).max():
        return w, np.zeros(1)
    size = math.isqrt(m)
    return w[0] + step * size * np.arange(-(-m // size)), step * np.arange(size)


def cosines_and_sines(y: Array, w: np.ndarray) -> tuple[Array, Array]:
    """``cos(w.y)`` and ``sin(w.y)``, ``(n, m)`` each, for y ``(n,)`` and frequencies ``(m,)``, or ``(n, d)`` and ``(m, d)``.

    >>> cosine, sine = cosines_and_sines(np.array([1.0]), np.pi * np.arange(100))
    >>> np.abs(cosine - (-1.0) ** np.arange(100)).max() < 1e-12
    np.True_
    """
    xp = namespace(y)
    if w.ndim == 2:
        phase = y @ xp.astype(matched(w.T, y), y.dtype)
        return xp.cos(phase), xp.sin(phase)
    phases = [y[:, None] * matched(part, y)[None, :] for part in as_sums(w)]
    if phases[1].shape[1] == 1:
        return xp.cos(phases[0]), xp.sin(phases[0])
    (c, s), (d, t) = ((xp.cos(phase), xp.sin(phase)) for phase in phases)
    c, s, d, t = c[:, :, None], s[:, :, None], d[:, None, :], t[:, None, :]
    parts = c * d - s * t, s * d + c * t
    return tuple(xp.reshape(part, (y.shape[0], -1))[:, : len(w)] for part in parts)


def along_path(y: np.ndarray, weight: np.ndarray, w: np.ndarray) -> np.ndarray:
    """``sum_k weight_k exp(i w y_k)``, ``(n, m)``, over points ``(n, k)`` of paths in the complex plane.

    >>> along_path(np.array([[0.0, np.pi]]), np.array([[0.5, 0.5]]), np.array([1.0, 2.0])).round(12).real + 0.0
    array([[0., 1.]])
    """
    first, second = as_sums(w)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        rows, columns = (np.exp(1j * part * y[:, :, None]) for part in (first, second))
    found = np.swapaxes(rows, 1, 2) @ (weight[:, :, None] * columns)
    return found.reshape(len(y), -1)[:, : len(w)]
