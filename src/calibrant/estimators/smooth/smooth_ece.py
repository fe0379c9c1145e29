"""Calibration errors by smoothing: of residuals (SmoothECE), or of two densities (DensityECE)."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.fft import dct
from scipy.sparse import csc_array

from calibrant._numerics.reflected_smoothing import GridPlaces, cosine_sums
from calibrant._validate import InputError, check_norm
from calibrant.estimators.base import Answers, MeanOverEvents
from calibrant.estimators.limits import Slack, SmoothedGap, noise_of_all
from calibrant.lenses.class_lenses import Lens

RESOLUTION = 64
"""Grid cells a standard error of the mean: bandwidths are hardly ever below it."""

MIN_CELLS, MAX_CELLS = 1 << 10, 1 << 18
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
        cells = int(min(MAX_CELLS, 1 << int(np.ceil(np.log2(max(finest, MIN_CELLS))))))
        w = np.full(n, 1 / n) if weights is None else weights / weights.sum()
        grid = GridPlaces.of(scores, cells).matrix(w)
        return _SmoothedResiduals(grid, grid @ scores, _Smoother.of(cells), self.bandwidth)

    def slack(self, scores: np.ndarray, observed: np.ndarray, weights: np.ndarray | None, value: float) -> Slack:
        """Noise is smoothed with the bandwidth; its mean size is at most the root of its mean square.

        The error falls with the bandwidth. So where that is the error itself, both limits smooth noise at least as much.
        """
        variance, step = noise_of_all(scores, observed, weights)
        bandwidth = max(value if self.bandwidth is None else self.bandwidth, 1e-6)
        w = np.full(len(scores), 1 / len(scores)) if weights is None else weights / weights.sum()
        peak = w**2 * (1 + np.exp(-((scores / bandwidth) ** 2)) + np.exp(-(((1 - scores) / bandwidth) ** 2)))
        noise = max(float(peak @ (scores - observed) ** 2), float(peak @ (scores * (1 - scores))))
        squares = noise * max(1 / (2 * np.sqrt(np.pi) * bandwidth), 1.0)
        return SmoothedGap(float(np.sqrt(2 / np.pi * squares)), variance, step)


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
        return cosine_sums(mass) * self.sharpening

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

    def __call__(self, observed: np.ndarray) -> np.ndarray:
        """The error of each of m sets of answers."""
        mass = self.predicted - (self.grid @ observed.T.astype(np.float64)).T
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


CELLS = 1 << 14
"""Cells of the grid over [0, 1]."""


@dataclass(frozen=True)
class DensityECE(MeanOverEvents):
    """The calibration error of Mix-n-Match: frequencies are ratios of kernel density estimates.

    ``integral |t - min(c p_1(t) / p(t), 1)|^p p(t) dt`` over [0, 1], with p the density of the scores, p_1 that of the
    scores where the event happened and c how often it did. Both have a triweight kernel whose standard deviation is
    ``sd (2n)^(-1/5)``, with sd of the scores where the event happened; scores are mirrored at the nearer end. With
    ``norm`` p it is the p-th root. Its bias depends on the bandwidth: for comparison with published numbers rather than
    for reporting. O(n + g log g). Zhang, Kailkhura & Han (2020).

    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2_000)
    >>> round(DensityECE()((rng.random(2_000) < 0.3 + 0.4 * p) * 1, p).value, 2)
    0.16
    """

    least = 0.0
    most = 1.0
    name = "density ECE"

    norm: float = 1
    lens: Lens | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_norm(self.norm)
        if self.norm == np.inf:
            raise InputError(f"norm must be a finite number of at least 1; got {self.norm!r}")

    def errors(self, scores: np.ndarray, weights: np.ndarray | None) -> Answers:
        """The bandwidth depends on what happened, so every set of answers is estimated by itself."""
        return _EachSet(scores, np.ones(len(scores)) if weights is None else weights, self.norm)


@dataclass(frozen=True, eq=False)
class _EachSet:
    scores: np.ndarray
    weights: np.ndarray
    norm: float

    def __call__(self, observed: np.ndarray) -> np.ndarray:
        return np.array([self._error(answers * self.weights) for answers in observed])

    def _error(self, observed: np.ndarray) -> float:
        bandwidth = _bandwidth(self.scores, observed, self.weights)
        density, right = (_density(self.scores, v, bandwidth) for v in (self.weights, observed))
        t = np.linspace(0, 1, CELLS + 1)
        seen = density > 1e-9 * density.max()
        frequency = np.minimum(right / np.where(seen, density, 1), 1)
        integrand = np.where(seen, np.abs(t - frequency) ** self.norm * density, 0)
        return float((np.trapezoid(integrand) / np.trapezoid(density)) ** (1 / self.norm))


def _bandwidth(scores: np.ndarray, right: np.ndarray, w: np.ndarray) -> float:
    """The standard deviation of the kernel."""
    if not np.any(right):
        raise InputError("the event never happened, so there is no density of it: use ECE() or SmoothECE()")
    mean = np.average(scores, weights=right)
    sd = float(np.sqrt(np.average((scores - mean) ** 2, weights=right)))
    if sd < 1e-9:
        raise InputError("all scores where the event happened are equal, so there is no bandwidth: use ECE()")
    return sd * float(2 * w.sum() ** 2 / (w**2).sum()) ** -0.2


def _density(scores: np.ndarray, weights: np.ndarray, bandwidth: float) -> np.ndarray:
    """Masses of the scores and of their mirror images on a grid, smoothed; not normalised, ``(CELLS + 1,)``."""
    mass = GridPlaces.of(scores, CELLS).mass(weights)
    half = CELLS // 2
    mirrored = np.concatenate([mass[half:0:-1], mass, mass[-2 : -half - 2 : -1]])
    mirrored[[half, half + CELLS]] *= 2  # what lies on an end is its own image
    reach = max(1, int(np.ceil(3 * bandwidth * CELLS)))
    u = np.arange(-reach, reach + 1) / (3 * bandwidth * CELLS)
    kernel = np.maximum(1 - u**2, 0) ** 3
    from scipy.signal import fftconvolve  # which loads all of scipy.stats

    return np.maximum(fftconvolve(mirrored, kernel / kernel.sum(), mode="same")[half : half + CELLS + 1], 0)
