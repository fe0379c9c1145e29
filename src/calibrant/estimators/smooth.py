"""The smooth calibration error: residuals smoothed over the score, with a bandwidth that is the error itself."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.fft import dct
from scipy.sparse import csc_array

from calibrant._validate import InputError
from calibrant.estimators.error_limits import Slack, SmoothedGap, noise_of_all
from calibrant.estimators.lensed import Answers, MeanOverEvents
from calibrant.lenses import Lens

RESOLUTION = 64
"""Grid cells a standard error of the mean: bandwidths are hardly ever below it."""

FEWEST, MOST = 1 << 10, 1 << 18
"""Grid cells."""

NEGLIGIBLE = 8.6
"""Standard deviations at which a Gaussian is smaller than rounding."""

STEPS = 100
PRECISION = 1e-10


@dataclass(frozen=True)
class SmoothECE(MeanOverEvents):
    """Smooth calibration error: ``integral |mean_i K_s(t, f_i) (f_i - y_i)| dt`` over [0, 1].

    The kernel is Gaussian with standard deviation s, reflected at 0 and 1. Unless ``bandwidth`` fixes it, s is where the
    error equals s: finer smoothing would add up noise, coarser would hide errors. There are no bins to choose and no
    jumps; the value changes little when scores do. Several events are averaged.

    Scores are shared between the two nearest points of a grid, far finer than the bandwidth, and smoothed by cosine
    transforms: O(n + g log g). Blasiok & Nakkiran (2023).

    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(5_000)
    >>> honest, boastful = (rng.random(5_000) < p) * 1, (rng.random(5_000) < 0.3 + 0.4 * p) * 1
    >>> round(SmoothECE()(honest, p).value, 3), round(SmoothECE()(boastful, p).value, 3)
    (0.016, 0.138)
    """

    least = 0.0
    most = 1.0
    name = "smooth ECE"

    bandwidth: float | None = None
    lens: Lens | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bandwidth is not None and not 0 < self.bandwidth <= 10:
            raise InputError(f"bandwidth must be a positive number, or None to find it; got {self.bandwidth!r}")

    def errors(self, scores: np.ndarray, weights: np.ndarray | None) -> Answers:
        """The grid and the part of the predictions are found once."""
        n = len(scores)
        finest = RESOLUTION * np.sqrt(n) if self.bandwidth is None else RESOLUTION / self.bandwidth
        cells = int(min(MOST, 1 << int(np.ceil(np.log2(max(finest, FEWEST))))))
        w = np.full(n, 1 / n) if weights is None else weights / weights.sum()
        grid = _shared_out(scores, cells, w)
        return _SmoothedResiduals(grid, grid @ scores, _Smoother.of(cells), self.bandwidth)

    def slack(self, scores: np.ndarray, happened: np.ndarray, weights: np.ndarray | None, value: float) -> Slack:
        """Noise is smoothed with the bandwidth; its mean size is at most the root of its mean square.

        The error falls with the bandwidth. So where that is the error itself, both limits smooth noise at least as much.
        """
        variance, step = noise_of_all(scores, happened, weights)
        bandwidth = max(value if self.bandwidth is None else self.bandwidth, 1e-6)
        w = np.full(len(scores), 1 / len(scores)) if weights is None else weights / weights.sum()
        peak = w**2 * (1 + np.exp(-((scores / bandwidth) ** 2)) + np.exp(-(((1 - scores) / bandwidth) ** 2)))
        noise = max(float(peak @ (scores - happened) ** 2), float(peak @ (scores * (1 - scores))))
        squares = noise * max(1 / (2 * np.sqrt(np.pi) * bandwidth), 1.0)
        return SmoothedGap(float(np.sqrt(2 / np.pi * squares)), variance, step)


def _shared_out(scores: np.ndarray, cells: int, weights: np.ndarray) -> csc_array:
    """The matrix ``(cells + 1, n)`` that puts rows on the grid, each between its two neighbours."""
    position = scores * cells
    left = np.minimum(position.astype(np.int64), cells - 1)
    part = position - left
    rows = np.stack([left, left + 1], axis=1).ravel()
    values = np.stack([(1 - part) * weights, part * weights], axis=1).ravel()
    return csc_array((values, rows, np.arange(0, len(rows) + 1, 2)), shape=(cells + 1, len(scores)))


@dataclass(frozen=True, eq=False)
class _Smoother:
    """Gaussian smoothing of masses on a grid over [0, 1] with reflecting ends, in the space of cosines."""

    frequency: np.ndarray
    sharpening: np.ndarray
    nodes: np.ndarray

    @classmethod
    def of(cls, cells: int) -> Self:
        """Nodes of the trapezoid rule, and what undoes the sharing between neighbours: it damps by a squared sinc."""
        k = np.arange(cells + 1)
        nodes = np.full(cells + 1, 1 / cells)
        nodes[[0, -1]] /= 2
        return cls(np.pi * k, 1 / np.sinc(k / (2 * cells)) ** 2, nodes)

    def cosines(self, mass: np.ndarray) -> np.ndarray:
        """``sum_j mass_j cos(pi k t_j)`` of masses ``(m, cells + 1)``."""
        whole = mass.copy()
        whole[:, [0, -1]] *= 2  # the transform takes its ends by half
        return dct(whole, type=1, axis=1) / 2 * self.sharpening

    def error(self, cosines: np.ndarray, bandwidth: np.ndarray) -> np.ndarray:
        """The integral of the size of what is smoothed, with a bandwidth for each of m, ``(m,)``."""
        heard = np.searchsorted(self.frequency, NEGLIGIBLE / max(bandwidth.min(), 1e-9)) + 1
        damped = cosines[:, :heard] * np.exp(-0.5 * (self.frequency[:heard] * bandwidth[:, None]) ** 2)
        return np.abs(dct(damped, type=1, n=len(self.nodes), axis=1)) @ self.nodes


@dataclass(frozen=True, eq=False)
class _SmoothedResiduals:
    grid: csc_array
    predicted: np.ndarray
    smoother: _Smoother
    bandwidth: float | None

    def __call__(self, happened: np.ndarray) -> np.ndarray:
        """The error of each of m sets of answers."""
        mass = self.predicted - (self.grid @ happened.T.astype(np.float64)).T
        cosines = self.smoother.cosines(mass)
        if self.bandwidth is not None:
            return self.smoother.error(cosines, np.full(len(cosines), self.bandwidth))
        return self._fixed_point(cosines)

    def _fixed_point(self, cosines: np.ndarray) -> np.ndarray:
        """Where the error equals the bandwidth: it falls with it, from at least the mean residual. By false position."""
        low = np.abs(cosines[:, 0])
        high = self.smoother.error(cosines, low)
        above = high - low
        below = self.smoother.error(cosines, high) - high
        for _ in range(STEPS):
            open_ = np.flatnonzero((high - low > PRECISION) & (above > 0) & (below < 0))
            if not len(open_):
                break
            a, b, fa, fb = low[open_], high[open_], above[open_], below[open_]
            middle = (a * fb - b * fa) / (fb - fa)
            value = self.smoother.error(cosines[open_], middle) - middle
            is_low = value > 0
            low[open_], high[open_] = np.where(is_low, middle, a), np.where(is_low, b, middle)
            # The end that stays counts half (the Illinois rule), so that both ends close in.
            above[open_], below[open_] = np.where(is_low, value, fa / 2), np.where(is_low, fb / 2, value)
        return np.where(below >= 0, high, np.where(above <= 0, low, (low + high) / 2))
