"""Moments, ranked probability scores and waves of any real distribution, as integrals of its distribution function.

Integration by parts: ``integral g dP = g(b) F(b) - g(a) F(a) - integral g' F dx`` over a panel, so that single values with a
probability of their own need no care. The range is cut at quantiles and at kinks: every panel holds little probability
and is smooth inside. Eight Gauss-Legendre nodes a panel.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._array import to_numpy
from calibrant.distributions.base import Distribution

TAIL = np.array([1e-13, 1e-11, 1e-9, 1e-7, 1e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.04])
LEVELS = np.concatenate([TAIL, np.arange(1, 16) / 16, 1 - TAIL[::-1]])
"""Where panels meet: sixteenths, and ever less in the tails."""

NODES, WEIGHTS = (part / 2 for part in np.polynomial.legendre.leggauss(8))
NODES = NODES + 0.5
"""On the unit interval."""

TURN = 12.0
"""Waves that turn farther than this within a panel are averaged as if it had an even density: such panels are far out."""

MOST_WHOLE = 2000
"""Whole numbers that are panels of their own, where targets are counts."""

ROOM = 10_000_000
"""Numbers that are made at a time."""


@dataclass(frozen=True, eq=False)
class Panels:
    """K panels a row: the ``knots`` between them with what lies below, ``(n, K + 1)`` each; the nodes ``x`` in them with the
    distribution function and the weights there, ``(n, K, 8)`` each.
    """

    knots: np.ndarray
    parts: np.ndarray
    x: np.ndarray
    levels: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, batch: Distribution) -> "Panels":
        """Cut at quantiles and at kinks."""
        knots = to_numpy(batch.quantile(LEVELS)).astype(np.float64)
        parts = np.repeat(LEVELS[None], len(knots), axis=0)
        jumps = _jumps(batch, knots)
        if jumps is not NotImplemented:
            kinks = np.clip(jumps, knots[:, :1], knots[:, -1:])
            knots = np.sort(np.concatenate([knots, kinks], axis=1), axis=1)
            parts = np.sort(np.concatenate([parts, to_numpy(batch.cdf(kinks.T)).T], axis=1), axis=1)
        widths = np.diff(knots, axis=1)[..., None]
        x = knots[:, :-1, None] + widths * NODES
        levels = to_numpy(batch.cdf(np.moveaxis(x, 0, -1).reshape(-1, len(knots))))
        return cls(knots, parts, x, np.moveaxis(levels.reshape(*x.shape[1:], -1), -1, 0), widths * WEIGHTS)

    def total(self, f: np.ndarray) -> np.ndarray:
        """``integral f`` of each row, for values ``(n, K, 8)`` at the nodes."""
        return (self.weights * f).sum(axis=(1, 2))


def _jumps(batch: Distribution, knots: np.ndarray) -> Any:
    """The kinks of a batch; all whole numbers in its range, where targets are counts and these are not too many."""
    first, last = np.floor(knots[:, 0]), np.ceil(knots[:, -1])
    most = int((last - first).max()) + 1
    if batch.kinks is not NotImplemented or most > MOST_WHOLE or not is_whole(batch):
        return batch.kinks
    return first[:, None] + np.arange(most)


def is_whole(batch: Distribution) -> bool:
    """Whether targets are whole numbers."""
    return batch[:1].sample(np.random.default_rng(0), 1).dtype.kind in "iu"


def in_parts(batch: Distribution) -> list[Distribution]:
    """Consecutive rows, few enough for the room."""
    size = max(1, ROOM // (len(LEVELS) * len(NODES)))
    return [batch[i : min(i + size, len(batch))] for i in range(0, len(batch), size)]


def moments(batch: Distribution) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each row; infinite where tails are too heavy.

    Beyond the last panels tails go on as powers of the distance from the median, fitted to the decades before.

    >>> from calibrant.distributions.normal import Normal
    >>> [part.round(9) for part in moments(Normal([1.0, 3.0], [1.0, 2.0]))]
    [array([1., 3.]), array([1., 2.])]
    """
    found = [_moments(part) for part in in_parts(batch)]
    return np.concatenate([mean for mean, _ in found]), np.concatenate([std for _, std in found])


def _moments(batch: Distribution) -> tuple[np.ndarray, np.ndarray]:
    """From what is above and below the median: ``E (Y - c)_+ = integral_c (1 - F)``, twice ``(x - c)`` for the square."""
    panels, centre = Panels.of(batch), to_numpy(batch.quantile(np.array([0.5])))
    distance = panels.x - centre[..., None]
    tails = np.where(distance > 0, 1 - panels.levels, panels.levels)
    ends = to_numpy(batch.quantile(np.array([TAIL[2], TAIL[0], 1 - TAIL[0], 1 - TAIL[2]]))) - centre
    far = [_far_tail(-ends[:, 0], -ends[:, 1]), _far_tail(ends[:, 3], ends[:, 2])]
    first = panels.total(np.sign(distance) * tails) + far[1][0] - far[0][0]
    second = panels.total(2 * np.abs(distance) * tails) + far[1][1] + far[0][1]
    with np.errstate(invalid="ignore"):
        variance = np.where(np.isfinite(second), second - first**2, second)
    return centre[:, 0] + first, np.sqrt(np.maximum(variance, 0))


def _far_tail(near: np.ndarray, far: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What a tail leaves to the first two moments beyond the distance ``far``, where it is ``TAIL[0]``."""
    with np.errstate(divide="ignore", invalid="ignore"):
        power = np.log(TAIL[2] / TAIL[0]) / np.log(far / near)
        parts = [np.where(power > order, TAIL[0] * order * far**order / (power - order), np.inf) for order in (1, 2)]
    return tuple(np.where(far > near, part, 0.0) for part in parts)  # type: ignore[return-value]


def crps(batch: Distribution, y: np.ndarray) -> np.ndarray:
    """``integral (F(x) - [y <= x])^2 dx`` of each row, for targets with any leading axes.

    >>> from calibrant.distributions.normal import Normal
    >>> bool(abs(crps(Normal([0.0], 1.0), np.array([0.0]))[0] - (2**0.5 - 1) / np.pi**0.5) < 1e-9)
    True
    """
    parts, start = [], 0
    for part in in_parts(batch):
        parts.append(_crps(part, y[..., start : start + len(part)]))
        start += len(part)
    return np.concatenate(parts, axis=-1)


def _crps(batch: Distribution, y: np.ndarray) -> np.ndarray:
    panels, rows = Panels.of(batch), np.arange(len(batch))
    squares = [(panels.weights * f**2).sum(axis=2) for f in (panels.levels, 1 - panels.levels)]
    under, over = (np.cumsum(part, axis=1) for part in (squares[0], squares[1][:, ::-1]))
    under, over = (np.c_[np.zeros(len(rows)), part] for part in (under, over))
    inside = np.clip(y, panels.knots[:, 0], panels.knots[:, -1])
    cell = np.zeros(inside.shape, dtype=np.intp)
    for knot in panels.knots.T[1:-1]:
        cell += knot <= inside
    left, right = (panels.knots[rows, cell + step] for step in (0, 1))
    found = under[rows, cell] + over[rows, panels.x.shape[1] - 1 - cell] + np.abs(y - inside)
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        found = found + weight * (inside - left) * to_numpy(batch.cdf(left + node * (inside - left))) ** 2
        found = found + weight * (right - inside) * (1 - to_numpy(batch.cdf(inside + node * (right - inside)))) ** 2
    return found


def cf(batch: Distribution, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``E exp(i w Y)``, real and imaginary part, ``(n, m)`` each.

    >>> from calibrant.distributions.normal import Normal
    >>> bool(abs(cf(Normal([0.0], 1.0), np.array([1.0]))[0][0, 0] - np.exp(-0.5)) < 1e-9)
    True
    """
    found = [_cf(Panels.of(part), w) for part in in_parts(batch)]
    return np.concatenate([waves.real for waves in found]), np.concatenate([waves.imag for waves in found])


def _cf(panels: Panels, w: np.ndarray) -> np.ndarray:
    knots, parts = panels.knots[..., None], panels.parts[..., None]
    total = parts[:, 0] * np.exp(1j * w * knots[:, 0]) + (1 - parts[:, -1]) * np.exp(1j * w * knots[:, -1])
    for j in range(panels.x.shape[1]):
        mass, width = parts[:, j + 1] - parts[:, j], knots[:, j + 1] - knots[:, j]
        inside = panels.weights[:, j] * (panels.levels[:, j] - parts[:, j])
        terms = (inside[:, k, None] * np.exp(1j * w * panels.x[:, j, k, None]) for k in range(len(NODES)))
        waves = mass * np.exp(1j * w * knots[:, j + 1]) - 1j * w * sum(terms)
        turn = w * width
        if np.abs(turn).max() > TURN:
            even = mass * np.exp(1j * w * (knots[:, j] + width / 2)) * np.sinc(turn / (2 * np.pi))
            waves = np.where(np.abs(turn) > TURN, even, waves)
        total = total + waves
    return total
