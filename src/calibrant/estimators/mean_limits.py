"""Confidence limits of means whose values may be skewed or rare, of independent rows or of clusters."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.special import gammaincinv, ndtri, stdtrit

from calibrant._clusters import Clusters
from calibrant.results import Interval

SYMMETRIC = 1e-3
"""Skewness below which quantiles are those of the normal law, with their first correction."""


@dataclass(frozen=True)
class MeanLimits:
    """Confidence limits of a weighted mean of n values, from its first three moments.

    The mean of skewed values is skewed, and its estimated variance goes up and down with it. Together they make the distance of
    the mean from the truth, in estimated standard errors, twice as skewed as the mean, the other way round. So limits are
    quantiles of a Pearson III law (a shifted gamma) with the mean, the variance and twice the skewness g of the mean:
    ``mean + se (t / z) Q_2g(tail)``. One more value is added first, the ``highest`` likely one for the upper limit and the
    ``lowest`` for the lower, so that limits hold where something rare has not been seen yet. For counts of rare events this
    is Garwood's exact interval (1936); for weighted counts, that of Fay & Feuer (1997).

    ``squares`` and ``cubes`` are ``sum (share (value - mean))^2`` and ``^3``, shares adding up to one; ``share`` is the largest.

    >>> few = MeanLimits.of(np.repeat([1.0, 0.0], [3, 99_997]), lowest=0.0, highest=1.0)
    >>> [round(1e5 * end, 2) for end in few(0.95)]                # three events; exact: 0.62 to 8.77
    [0.62, 8.77]
    """

    mean: float
    n: int
    squares: float
    cubes: float
    share: float
    lowest: float
    highest: float
    least: float = -np.inf
    most: float = np.inf

    @classmethod
    def of(
        cls,
        values: np.ndarray,
        weights: np.ndarray | None = None,
        *,
        lowest: float | None = None,
        highest: float | None = None,
        least: float = -np.inf,
        most: float = np.inf,
    ) -> Self:
        """Of values ``(n,)``; the lowest and highest likely ones are those seen unless they are known."""
        x = np.asarray(values, dtype=np.float64)
        share = 1 / len(x)
        if weights is not None:
            x, w = (np.asarray(part, dtype=np.float64)[np.asarray(weights) > 0] for part in (values, weights))
            share = w / w.sum()
        mean = float(x.mean() if weights is None else share @ x)
        off = share * (x - mean)
        square = off * off
        return cls(
            mean=mean,
            n=len(x),
            squares=float(square.sum()),
            cubes=float(square @ off),
            share=float(np.max(share)),
            lowest=float(x.min()) if lowest is None else lowest,
            highest=float(x.max()) if highest is None else highest,
            least=least,
            most=most,
        )

    @classmethod
    def of_clusters(
        cls,
        values: np.ndarray,
        weights: np.ndarray | None,
        clusters: Clusters,
        *,
        are_of_one_fate: bool = False,
        least: float = -np.inf,
        most: float = np.inf,
    ) -> Self:
        """Of values that depend on each other within clusters: moments are those of the sums over clusters.

        ``n`` is the number of clusters that count, Satterthwaite's for sums with variances ``sum w^2 + r ((sum w)^2 - sum w^2)``, r
        being how alike values of a cluster are; the sums of large clusters are nearer to their mean, as they move it, which is
        made good. What is added to the values seen is a clump of as many rows as are alike, or, ``are_of_one_fate``, the largest
        cluster. Cameron & Miller (2015).

        >>> MeanLimits.of_clusters(np.repeat([0.0, 1.0], 10), None, Clusters(np.arange(20) // 2, 10)).n
        10
        """
        x = np.asarray(values, dtype=np.float64)
        w = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=np.float64)
        share = w / w.sum()
        mean = float(x.mean() if weights is None else share @ x)
        off = share * (x - mean)
        sums, whole, squares = clusters.sums(off), clusters.sums(share), clusters.sums(share**2)
        total, alone = float(sums @ sums), float(off @ off)
        more = float((whole**2 - squares).sum()) * alone / float(squares.sum())
        alike = float(np.clip((total - alone) / more, 0.0, 1.0)) if more > 0 else 0.0
        variance = squares + alike * (whole**2 - squares)
        n = max(2, int(variance.sum() ** 2 / (variance @ variance) + 1e-9))
        seen = float((variance * (1 - 2 * whole)).sum() + (whole @ whole) * variance.sum()) / float(variance.sum())
        clump = float(whole.max())
        if alone > 0 and not are_of_one_fate:
            clump = min(max(total / alone, 1.0) * float(share.max()), clump)
        return cls(
            mean=mean,
            n=n,
            squares=total / max(seen, 0.1) * (n - 1) / n,
            cubes=float(sums**2 @ sums),
            share=clump,
            lowest=float(x.min()),
            highest=float(x.max()),
            least=least,
            most=most,
        )

    def __call__(self, level: float) -> Interval:
        """The interval of a confidence level."""
        tail = (1 - level) / 2
        low, high = self._end(min(self.lowest, self.mean), tail), self._end(max(self.highest, self.mean), 1 - tail)
        low, high = min(low, self.mean), max(high, self.mean)
        return Interval(max(low, self.least), min(high, self.most), level, "skewness-corrected")

    def _end(self, added: float, chance: float) -> float:
        """The quantile of one end, with a value added to those seen."""
        step = self.share * (added - self.mean)
        n = max(self.n, 2)
        squares = self.squares * n / (n - 1) + step**2
        if squares <= 0:
            return self.mean
        cubes = self.cubes + step**3 - 3 * step * self.squares / n
        heavier = stdtrit(n - 1, chance) / ndtri(chance)
        return float(self.mean + step + np.sqrt(squares) * heavier * skewed_quantile(2 * cubes / squares**1.5, chance))


@dataclass(frozen=True, eq=False)
class ReckonedLimits:
    """Limits that reckon with losses which were not seen; those are found when an interval is asked for.

    ``likely`` gives the lowest and the highest of them from those that were seen.
    """

    seen: MeanLimits
    likely: Callable[[np.ndarray], tuple[float, float]]

    def __call__(self, level: float) -> Interval:
        """The interval of a confidence level."""
        lowest, highest = self.likely(np.array([self.seen.lowest, self.seen.highest]))
        return replace(self.seen, lowest=lowest, highest=highest)(level)


def skewed_quantile(skewness: float, chance: float) -> float:
    """The quantile of the Pearson III law with mean 0 and variance 1.

    >>> skewed_quantile(0.0, 0.975), skewed_quantile(2.0, 0.975)   # normal; exponential less its mean
    (1.959..., 2.688...)
    """
    z = float(ndtri(chance))
    if abs(skewness) < SYMMETRIC:
        return z + (z * z - 1) * skewness / 6
    shape = 4 / skewness**2
    found = gammaincinv(shape, chance if skewness > 0 else 1 - chance)
    return float((found - shape) / np.sqrt(shape) * np.sign(skewness))
