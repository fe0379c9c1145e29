"""Bands that hold everywhere at once: what uniform levels show in a histogram and in a distribution function."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.special import gammaln, xlogy

from calibrant.inference.proportions import Band

HALVINGS = 25
"""Steps of the search for the pointwise level."""


def _poisson(k: np.ndarray, mean: float) -> np.ndarray:
    """Probabilities of counts."""
    return np.exp(xlogy(k, mean) - mean - gammaln(k + 1))


def curve_coverage(low: np.ndarray, high: np.ndarray, n: int) -> float:
    """The chance that n uniform numbers have between ``low`` and ``high`` of them up to each of ``1/m, 2/m, ...``, exactly.

    There are ``m - 1`` such points. A Poisson process with rate n, given that it has n events in all, has the same law, and its
    counts are followed from point to point by convolution: O(m w log w), w the width of the band.
    Moscovich & Nadler (2017); Säilynoja, Bürkner & Vehtari (2022).

    >>> round(curve_coverage(np.array([1]), np.array([1]), 2), 12)  # of two, one on either side of 1/2
    0.5
    """
    step = n / (len(low) + 1)
    state, first = np.ones(1), 0
    for least, most in zip(low.tolist(), high.tolist(), strict=True):
        moves = _poisson(np.arange(max(most - first, 0) + 1), step)
        state = _convolved(state, moves)[least - first : most - first + 1]
        first = least
    last = _poisson(n - np.arange(first, first + len(state)), step)
    return float(state @ last / _poisson(np.array(n), n))


def _convolved(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    full = len(a) + len(b) - 1
    size = 1 << full.bit_length()
    return np.fft.irfft(np.fft.rfft(a, size) * np.fft.rfft(b, size), size)[:full]


def histogram_coverage(low: int, high: int, n: int, n_bins: int) -> float:
    """The chance that n uniform numbers put between ``low`` and ``high`` into each of equal bins, exactly.

    As for curves: Poisson counts, given that they add up to n. O(w log w) with w the width of the band times the bins.
    Levin (1981).

    >>> round(histogram_coverage(1, 1, 2, 2), 12)
    0.5
    """
    if n_bins * low > n or n_bins * high < n:
        return 0.0
    counts = _poisson(np.arange(low, high + 1), n / n_bins)
    size = 1 << (n_bins * (high - low) + 1).bit_length()
    return float(np.fft.irfft(np.fft.rfft(counts, size) ** n_bins, size)[n - n_bins * low] / _poisson(np.array(n), n))


def _largest(coverage: Callable[[float], float], level: float, events: int) -> float:
    """The largest pointwise tail whose band holds the level; the union bound gives the first guess."""
    low, high = np.log((1 - level) / events / 2), np.log((1 - level) / 2)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if coverage(np.exp(middle)) >= level else (low, middle)
    return float(np.exp(low))


@lru_cache(maxsize=64)
def curve_band(n: int, n_points: int, level: float) -> Band:
    """Shares of n uniform numbers up to ``1/m, ..., (m - 1)/m``: all lie in the band at once with at least the given chance.

    Binomial quantiles of one tail at every point, as far out as it takes for all together: the chance is found exactly
    (:func:`curve_coverage`), and exceeds the level by what whole numbers make it.

    >>> curve_band(50, 5, 0.95)
    (array([0.08, 0.24, 0.44, 0.66]), array([0.34, 0.56, 0.76, 0.92]))
    """
    from scipy.stats import binom

    points = np.arange(1, n_points) / n_points

    def band(tail: float) -> tuple[np.ndarray, np.ndarray]:
        return binom.ppf(tail, n, points).astype(np.intp), binom.isf(tail, n, points).astype(np.intp)

    low, high = band(_largest(lambda tail: curve_coverage(*band(tail), n), level, n_points))
    ends = low / n, high / n
    for end in ends:
        end.flags.writeable = False  # the next caller gets the same
    return ends


@lru_cache(maxsize=64)
def histogram_band(n: int, n_bins: int, level: float) -> tuple[int, int]:
    """How many of n uniform numbers fall into a bin: all bins lie between both at once with at least the given chance.

    As for :func:`curve_band`, by :func:`histogram_coverage`.

    >>> histogram_band(500, 10, 0.95)
    (32, 69)
    """
    from scipy.stats import binom

    def band(tail: float) -> tuple[int, int]:
        return int(binom.ppf(tail, n, 1 / n_bins)), int(binom.isf(tail, n, 1 / n_bins))

    return band(_largest(lambda tail: histogram_coverage(*band(tail), n, n_bins), level, n_bins))
