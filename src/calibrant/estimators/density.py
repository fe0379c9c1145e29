"""The calibration error from two density estimates, for comparison with the literature."""

from dataclasses import dataclass

import numpy as np
from scipy.signal import fftconvolve

from calibrant._validate import InputError
from calibrant.estimators.lensed import Answers, MeanOverEvents
from calibrant.lenses import Lens

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
        if not 1 <= self.norm < np.inf:
            raise InputError(f"norm must be a finite number of at least 1; got {self.norm!r}")

    def errors(self, scores: np.ndarray, weights: np.ndarray | None) -> Answers:
        """The bandwidth depends on what happened, so every set of answers is estimated by itself."""
        return _EachSet(scores, np.ones(len(scores)) if weights is None else weights, self.norm)


@dataclass(frozen=True, eq=False)
class _EachSet:
    scores: np.ndarray
    weights: np.ndarray
    norm: float

    def __call__(self, happened: np.ndarray) -> np.ndarray:
        return np.array([self._error(answers * self.weights) for answers in happened])

    def _error(self, happened: np.ndarray) -> float:
        bandwidth = _bandwidth(self.scores, happened, self.weights)
        density, right = (_density(self.scores, v, bandwidth) for v in (self.weights, happened))
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
    position = scores * CELLS
    left = np.minimum(position.astype(np.int64), CELLS - 1)
    part = position - left
    mass = np.bincount(left, weights * (1 - part), CELLS + 1) + np.bincount(left + 1, weights * part, CELLS + 1)
    half = CELLS // 2
    mirrored = np.concatenate([mass[half:0:-1], mass, mass[-2 : -half - 2 : -1]])
    mirrored[[half, half + CELLS]] *= 2  # what lies on an end is its own image
    reach = max(1, int(np.ceil(3 * bandwidth * CELLS)))
    u = np.arange(-reach, reach + 1) / (3 * bandwidth * CELLS)
    kernel = np.maximum(1 - u**2, 0) ** 3
    return np.maximum(fftconvolve(mirrored, kernel / kernel.sum(), mode="same")[half : half + CELLS + 1], 0)
