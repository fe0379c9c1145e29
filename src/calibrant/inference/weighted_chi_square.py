"""The tail of a weighted sum of chi-square variables: the limit law of degenerate U- and V-statistics."""

import numpy as np
from scipy.optimize import brentq

from calibrant._validate import InputError

NODES = 200
"""Points of the trapezoid rule; twice as many give the same digits."""

ANGLE = np.pi / 3
"""How far the path bends to the right: less than 30 degrees, and many small weights would make the integrand grow."""

NEGLIGIBLE = 40.0
"""The path ends where the integrand has fallen by this power of e, below rounding."""

FARTHEST = 1e12
"""Largest weights away from 0 beyond which the tail is 0 in double precision."""


def sf(x: float, weights: np.ndarray, degrees: np.ndarray | None = None) -> float:
    """``P(sum_i w_i Q_i >= x)`` of independent chi-square ``Q_i`` with ``degrees`` of freedom (1 each, or any positive number).

    With ``K(s) = -1/2 sum_i d_i log(1 - 2 w_i s)`` the tail is ``(1 / 2 pi i) int exp(K(s) - s x) / s ds``. Imhof integrates
    along the imaginary axis, where few weights decay slowly and small tails drown in rounding. Here the path is a hyperbola
    through the saddlepoint around the singularities on the right: the integrand falls exponentially from there, and so
    does the error of the trapezoid rule. Weights must not be negative. Relative error below 1e-10, however small the
    tail, for up to a million degrees of freedom; O(number of weights). Imhof (1961), Weideman & Trefethen (2007).

    >>> round(sf(3.841458820694124, np.array([1.0])), 12)
    0.05
    """
    w = np.asarray(weights, dtype=np.float64)
    d = np.ones_like(w) if degrees is None else np.asarray(degrees, dtype=np.float64)
    if np.any(w < 0) or np.any(d < 0):
        raise InputError(f"weights and degrees must not be negative; the least is {min(w.min(), d.min()):g}")
    counted = (w > 0) & (d > 0)
    if x <= 0 or not counted.any():
        return float(x <= 0)
    largest = float(w[counted].max())
    return _inverted(min(x / largest, FARTHEST), w[counted] / largest, d[counted])


def _inverted(x: float, w: np.ndarray, d: np.ndarray) -> float:
    """The integral, for a largest weight of 1."""
    start = _saddlepoint(x, w, d)
    size = (0.5 - start) / (1 - np.cos(ANGLE))  # then the first singularity, at 1/2, is the focus

    def log_integrand(t: np.ndarray) -> np.ndarray:
        s = start + size * (np.cosh(t + 1j * ANGLE) - np.cos(ANGLE))
        return _cumulants(s, w, d) - s * x - np.log(s) + np.log(size * np.sinh(t + 1j * ANGLE))

    top = float(log_integrand(np.zeros(1))[0].real)
    tried = np.geomspace(1e-5, 60, 80)
    end = tried[np.flatnonzero(log_integrand(tried).real > top - NEGLIGIBLE).max(initial=-1) + 1 :].min(initial=60)
    values = np.exp(log_integrand(np.arange(NODES) * (end / NODES)) - top).imag
    tail = np.exp(top) * (values.sum() - values[0] / 2) * (end / NODES) / np.pi
    return abs(float(np.clip(tail if start > 0 else 1 + tail, 0, 1)))  # abs: rounding may leave -0.0


def _cumulants(s: np.ndarray, w: np.ndarray, d: np.ndarray) -> np.ndarray:
    """``K(s)`` in the upper half-plane, ``(m,)``, with the logarithm by parts: exact next to 0 and next to 1, and fast."""
    z = 2 * s[:, None] * w[None, :]
    real, imag = z.real, z.imag
    distance = (1 - real) ** 2 + imag**2
    squared = np.where(distance < 0.5, np.log(distance), np.log1p(np.maximum(real**2 + imag**2 - 2 * real, -0.9)))
    return -0.25 * (squared @ d) - 0.5j * (np.arctan2(-imag, 1 - real) @ d)


def _saddlepoint(x: float, w: np.ndarray, d: np.ndarray) -> float:
    """Where ``exp(K(s) - s x) / |s|`` is least on the real axis: right of the pole for x above the mean, else left of it.

    The pole at 0 has the residue 1: a path on its left gives the tail less 1.
    """

    def slope(s: float) -> float:
        return float(np.sum(d * w / (1 - 2 * s * w))) - x - 1 / s

    near = 1e-9 / (1 + x)
    if x >= d @ w:
        return float(brentq(slope, near, np.nextafter(0.5, 0), xtol=1e-300, rtol=1e-10))
    return float(brentq(slope, -(d.sum() + 2) / x, -near, xtol=1e-300, rtol=1e-10))
