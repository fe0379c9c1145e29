"""PIT values as a curve and as a histogram, with bands that hold everywhere at once."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import gammaln, xlogy

from calibrant._array import to_numpy
from calibrant._clusters import Clusters
from calibrant._spellings import Settings
from calibrant._validate import check_count, check_fraction
from calibrant.distributions.reading.conversion import as_clustered_problem
from calibrant.estimators.forecast_errors.pit import Prerank, check_prerank, pit_of, randomised, share_upto
from calibrant.inference.exact_tests.cluster_signs import Signs, check_enough
from calibrant.inference.proportions import Band, equal_rows
from calibrant.results import Table
from calibrant.typing import ArrayLike

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


SIGNS_OF_BAND = 999
"""Sets of signs behind a band."""


def band_of_signs(
    gaps: np.ndarray, chance: np.ndarray, scale: np.ndarray | float, clusters: Clusters, level: float, seed: int
) -> Band:
    """Shares around ``chance`` (k,) that all lie in the band at once where rows of a cluster depend on each other.

    ``gaps`` are what each row adds to the shares less their chances, ``(n, k)``. The band is as wide, in units of ``scale``, as
    holds the largest gap under random signs of whole clusters in so many of 999 sets, as in :class:`ExactTest`.

    >>> clusters = Clusters(np.arange(400) // 4, 100)
    >>> below = np.random.default_rng(0).random(400) < 0.5
    >>> low, high = band_of_signs((below - 0.5)[:, None] / 400, np.array([0.5]), 1.0, clusters, 0.95, 0)
    >>> low.round(2), high.round(2)
    (array([0.46]), array([0.54]))
    """
    sums = np.stack([clusters.sums(column) for column in gaps.T], axis=1)
    signs = Signs(len(clusters)).sample(np.random.default_rng(seed), SIGNS_OF_BAND)
    largest = np.abs(signs @ sums / scale).max(axis=1)
    rank = min(int(np.ceil(level * (SIGNS_OF_BAND + 1) - 1e-9)), SIGNS_OF_BAND)
    half = float(np.sort(largest)[rank - 1]) * scale
    return np.clip(chance - half, 0.0, 1.0), np.clip(chance + half, 0.0, 1.0)


def known_clusters(asker: object, clusters: Clusters | None) -> Clusters | None:
    """Clusters that make a difference; too few are refused."""
    if clusters is None or clusters.are_single_rows:
        return None
    check_enough(type(asker).__name__, clusters)
    return clusters


@dataclass(frozen=True)
class PITCurve(Settings):
    """Share of PIT values up to each level: the diagonal where the forecast is calibrated.

    A table with columns ``level``, ``observed``, ``low`` and ``high`` at ``n_points - 1`` levels (no more than there are rows).
    *All* points of a calibrated forecast lie between ``low`` and ``high`` at once with at least the given probability, exactly
    for every n: one point outside is an error beyond chance. It needs no bins; what the histogram shows as height is slope here:
    an S lying on its side says too sure (steep at the ends) or too timid (steep in the middle), a bow to one side too
    high (above the diagonal) or too low. O(n log n). Säilynoja, Bürkner & Vehtari (2022).

    ``clusters`` has one label per row: rows with the same label may depend on each other in any way. The band is then of one
    width, from random signs of whole clusters, and holds for many clusters; fewer than 12 are refused.

    >>> from calibrant import Normal
    >>> from calibrant.inference import PITCurve
    >>> y_true = np.random.default_rng(0).normal(1.0, 1.0, 200)
    >>> curve = PITCurve(n_points=4)(y_true, Normal(np.zeros(200), 1.0))  # too low
    >>> curve["observed"], bool(np.all(curve["observed"] < curve["low"]))
    (array([0.04, 0.17, 0.35]), True)
    """

    n_points: int = 100
    level: float = 0.95
    prerank: Prerank | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_count(self.n_points, "n_points", least=2)
        check_fraction(self.level, "level")
        check_prerank(self.prerank, self.seed)

    def __call__(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
    ) -> Table:
        """The curve with its band.

        With weights the band is that of so many rows of equal weight as tell as much, and holds about so often.
        """
        targets, predictions, weights, given = as_clustered_problem(y_true, y_pred, sample_weight, clusters)
        together = known_clusters(self, given)
        pit = randomised(pit_of(predictions, self, self.prerank, self.seed)(to_numpy(targets)), self.seed)
        rows = equal_rows(weights, len(predictions))
        n_points = min(self.n_points, max(rows, 2))
        points = np.arange(1, n_points) / n_points
        order = np.argsort(pit, kind="stable")
        reached = np.searchsorted(pit[order], points, side="right")
        share = (
            reached / len(order)
            if weights is None
            else np.append(0, np.cumsum(weights[order]))[reached] / weights.sum()
        )
        if together is None:
            low, high = curve_band(rows, n_points, self.level)
        else:
            w = np.full(len(pit), 1 / len(pit)) if weights is None else weights / weights.sum()
            gaps = w[:, None] * ((pit[:, None] <= points) - points)
            low, high = band_of_signs(gaps, points, 1.0, together, self.level, self.seed)
        return Table(level=points, observed=share, low=low, high=high)


@dataclass(frozen=True)
class PITHistogram(Settings):
    """Histogram of the PIT values ``F_i(y_i)`` of targets, flat where the forecast is calibrated.

    A table with the share of rows in each of ``n_bins`` equal bins, and a band from ``low`` to ``high`` that holds *all* bins of a
    calibrated forecast at once with at least the given probability, exactly for every n. A U says too sure, a hump too
    timid, a slope too low (up) or too high (down). PIT values are those of :class:`~calibrant.estimators.PIT`. With
    ``randomise=False`` a value with a probability of its own counts for a part in every bin it touches: no randomness, and
    less of it than the band allows for. O(n). Gneiting, Balabdaoui & Raftery (2007); Czado, Gneiting & Held (2009).

    ``clusters`` are those of :class:`PITCurve`.

    >>> from calibrant import Normal
    >>> from calibrant.inference import PITHistogram
    >>> y_true = np.random.default_rng(0).normal(0.0, 2.0, 200)
    >>> PITHistogram(n_bins=4)(y_true, Normal(np.zeros(200), 1.0))  # half as wide as it should be
    lower  upper  observed    low   high
        0   0.25      0.35  0.175  0.325
     0.25    0.5      0.14  0.175  0.325
      0.5   0.75     0.115  0.175  0.325
     0.75      1     0.395  0.175  0.325
    """

    n_bins: int = 10
    level: float = 0.95
    randomise: bool = True
    prerank: Prerank | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_count(self.n_bins, "n_bins", least=2)
        check_fraction(self.level, "level")
        check_prerank(self.prerank, self.seed)

    def __call__(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
    ) -> Table:
        """The histogram with its band, as shares of the rows.

        With weights the band is that of so many rows of equal weight as tell as much, and holds about so often.
        """
        targets, predictions, weights, given = as_clustered_problem(y_true, y_pred, sample_weight, clusters)
        together = known_clusters(self, given)
        pit = pit_of(predictions, self, self.prerank, self.seed)(to_numpy(targets))
        if self.randomise:
            pit = (randomised(pit, self.seed),) * 2
        edges = np.arange(self.n_bins + 1) / self.n_bins
        upto = np.stack([share_upto(pit, edge) for edge in edges[1:-1]])
        shares = np.diff(np.average(upto, axis=1, weights=weights), prepend=0.0, append=1.0)
        table = histogram_table(shares, equal_rows(weights, len(predictions)), self.level)
        if together is None:
            return table
        w = np.full(upto.shape[1], 1 / upto.shape[1]) if weights is None else weights / weights.sum()
        chance = np.full(self.n_bins, 1 / self.n_bins)
        gaps = w[:, None] * (np.diff(upto.T, axis=1, prepend=0.0, append=1.0) - chance)
        low, high = band_of_signs(gaps, chance, 1.0, together, self.level, self.seed)
        return Table({**table, "low": low, "high": high})


def histogram_table(shares: np.ndarray, n: int, level: float) -> Table:
    """Shares of n rows in equal bins, with the band of uniform PIT values."""
    edges = np.arange(len(shares) + 1) / len(shares)
    low, high = histogram_band(n, len(shares), level)
    ends = {"low": np.full(len(shares), low / n), "high": np.full(len(shares), high / n)}
    return Table({"lower": edges[:-1], "upper": edges[1:], "observed": shares, **ends})
