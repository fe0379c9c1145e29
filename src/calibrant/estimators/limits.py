"""Confidence limits of errors that are norms of residuals.

What is covered is the error of the same bins (or curves) with the true frequencies of these predictions in the place of the
observed ones. It is at most the error of every single prediction, which no data shows.

An error is a norm: ``T = ||g||`` of observed gaps, ``theta = ||delta||`` of the true ones, and ``g = delta + noise``. Two facts
give limits that hold for calibrated models, for models far from it, and in between, without resampling:

* ``theta = <u, delta>`` for a weight u of size one, so that ``theta <= T - <u, noise>``. That is a mean over rows. Its spread
  is at most that of all residuals, whatever u is.
* ``T - theta <= ||noise||``, whose mean and spread are those of normal noise. Gaps that are far from zero keep their sign:
  their noise averages out, and only that of the others adds up.

The variance of the noise is taken from residuals or from the predictions, whichever is larger: where no event was seen the
residuals show none. An event that was not seen is allowed for as in Wilson's interval of a share.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaincinv, ndtri

from calibrant.estimators.binned.binning import Tally, lp_norm
from calibrant.estimators.mean_limits import skewed_quantile
from calibrant.results import Interval
from calibrant.results.text import ROUNDING

SURE = 4.0
"""Standard errors from zero at which the sign of a gap is taken as known."""

HALF_NORMAL = (np.sqrt(2 / np.pi), 1 - 2 / np.pi, np.sqrt(2 / np.pi) * (4 / np.pi - 1))
"""Mean, variance and third central moment of the size of standard normal noise."""

Slack = Callable[[float], tuple[float, float]]
"""The chance that each side may fail, to how far the truth may lie below the error and above."""


@dataclass(frozen=True)
class ErrorLimits:
    """Limits of an error, or of several in one norm: each adds its own uncertainty, as if all erred together."""

    value: float
    slacks: tuple[Slack, ...]
    norm: float = 1
    most: float = np.inf
    method: str = "normal noise"

    def __call__(self, level: float) -> Interval:
        """The interval of a confidence level."""
        sides = np.array([slack((1 - level) / 2) for slack in self.slacks]).T
        below, above_ = (float(lp_norm(np.maximum(side, 0.0), np.ones(len(side)), self.norm)) for side in sides)
        high = max(min(self.value + above_, self.most), 0.0)
        low = self.value - below
        return Interval(low if low > ROUNDING else 0.0, high, level, self.method)

    def if_calibrated(self, tail: float, share: float = 0.8) -> float:
        """The upper limit that this share of data sets keep to, were the noise all there is."""
        ends = np.array([slack(1 - share)[0] + slack(tail)[1] for slack in self.slacks])
        return float(lp_norm(ends, np.ones(len(ends)), self.norm))


@dataclass(frozen=True, eq=False)
class SumOfGaps:
    """How far the sum of sizes of gaps (norm 1) may lie from the truth; gaps and the variances of their noise, ``(bins,)``.

    Gaps are shares of all rows, ``w_b |f_b - y_b|``; one row changes their sum by at most ``step``. ``whole`` is the largest
    variance of a sum of the noise with signs: that of all bins where a row lies in one alone, more where gaps share rows.
    """

    gaps: np.ndarray
    variances: np.ndarray
    step: float
    whole: float | None = None

    def __call__(self, tail: float) -> tuple[float, float]:
        """Below and above."""
        spread = np.sqrt(self.variances)
        mean, variance, third = HALF_NORMAL
        is_sure = np.abs(self.gaps) > SURE * spread
        loose = np.where(is_sure, 0.0, spread)
        total = float((np.where(is_sure, spread, 0.0) ** 2).sum() + variance * (loose**2).sum())
        skewness = third * float((loose**3).sum()) / total**1.5 if total > 0 else 0.0
        if self.whole is not None:
            total, skewness = self.whole, 0.0
        below = mean * float(loose.sum()) + np.sqrt(total) * skewed_quantile(skewness, 1 - tail)
        whole = float(self.variances.sum()) if self.whole is None else self.whole
        return float(below), above(whole, self.step, tail, lean=None if self.whole is None else 1.0)


@dataclass(frozen=True, eq=False)
class Moved:
    """The slack of an error, for an estimate that lies ``less`` below it."""

    slack: Slack
    less: float

    def __call__(self, tail: float) -> tuple[float, float]:
        """Below and above."""
        below, over = self.slack(tail)
        return below - self.less, over + self.less


def above(variance: float, step: float, tail: float, lean: float | None = None) -> float:
    """How far a mean over rows may lie above what was seen, where one row adds at most ``step``.

    The limit of :class:`MeanLimits` for shares: with ``q (1 - q)`` the variance of a row, ``1 - 2q`` is how much more likely it is
    to go one way (the ``lean``, 1 where rows are one-sided), and one more row that does is added. Exact for rare events (Garwood).

    >>> round(1e5 * (3e-5 + above(3e-10, 1e-5, 0.025)), 2)  # three events among many rows; exact: 8.77
    8.77
    """
    if lean is None:
        lean = float(np.sqrt(max(1 - 4 * variance / step, 0.0)))  # step is 1 / n
    added = step * (1 + lean) / 2
    squares = variance + added**2
    cubes = variance * step * lean + added**3
    return float(added + np.sqrt(squares) * skewed_quantile(2 * cubes / squares**1.5, 1 - tail))


@dataclass(frozen=True, eq=False)
class RootOfSquares:
    """How far the root of the mean square gap (norm 2) may lie from the truth.

    With gaps times the roots of their shares, of variances ``v_b``, ``T^2 - sum v`` is ``theta^2`` on average, with the variance
    ``4 theta^2 max v + 2 sum v^2`` at most; the lower limit is the least theta for which T is not too large. ``steps`` are
    what one row adds to each gap at most, ``leans`` how much more likely a row is to go one way than the other.
    """

    gaps: np.ndarray
    variances: np.ndarray
    steps: np.ndarray
    leans: np.ndarray
    value: float

    def __call__(self, tail: float) -> tuple[float, float]:
        """Below and above."""
        root = float(np.sqrt((self.gaps**2).sum()))
        return self.value - self.low(root**2, tail), root + self._more(tail) - self.value

    def low(self, square: float, tail: float) -> float:
        """The lower limit, where the gaps have this sum of squares."""
        fourth = float((self.variances**2).sum())
        if fourth == 0:
            return float(np.sqrt(square))
        skewness = 8 * float((self.variances**3).sum()) / (2 * fourth) ** 1.5
        z = max(skewed_quantile(skewness, 1 - tail), -float(ndtri(tail)))
        least, _ = squares_within(square - float(self.variances.sum()), float(self.variances.max()), 2 * fourth, z)
        return float(np.sqrt(least))

    def _more(self, tail: float) -> float:
        found = zip(self.variances.tolist(), self.steps.tolist(), self.leans.tolist(), strict=True)
        return min(max(above(v, step, tail, lean) for v, step, lean in found), 1.0)


HALVINGS = 32
"""Steps of the search for an upper limit, to eight digits."""


@dataclass(frozen=True, eq=False)
class SquareWithoutBias:
    """How far the root of a mean square gap may lie from its estimate without bias, from pairs of rows.

    ``square`` is theta^2 on average, and a sum of squares of noise otherwise: were theta^2 in one cell, its variance would be
    ``2 sum v^2 + 4 theta^2 v`` and its third central moment ``8 sum v^3 + 24 theta^2 v^2``, with v the noise of that cell *at
    that theta*, which is what counts where few events are seen. The upper limit is the largest theta at whose quantile, of a
    Pearson III law, the square lies. It is smaller than ``T + noise`` where cells are many, as noise has been taken off.

    ``plain`` has the gaps and gives the lower limit; ``means`` are predicted frequencies, ``shares`` those of the rows, and
    ``units`` what the variance of one row adds to that of a gap. ``unseen`` is the mean square of gaps that were left out, at most.
    """

    plain: RootOfSquares
    square: float
    value: float
    means: np.ndarray
    shares: np.ndarray
    units: np.ndarray
    unseen: float = 0.0

    def __call__(self, tail: float) -> tuple[float, float]:
        """Below and above."""
        low = self.plain.low(float((self.plain.gaps**2).sum()), tail)
        return self.value - low, self.root(tail) - self.value

    def root(self, tail: float, halvings: int = HALVINGS) -> float:
        """The upper limit itself."""
        square, seen = max(self.square, 0.0), self.plain.variances + self.plain.steps**2
        most = float(seen.max())
        second, third = float((seen**2).sum()) - most**2, float((seen**3).sum()) - most**3
        spread = 1 / np.sqrt(self.shares)
        low, high = np.log(square + 1e-12), np.log(4.0)
        for _ in range(halvings):
            truth = float(np.exp((low + high) / 2))
            own = max(self._noise_at(truth**0.5 * spread), most)  # of the cell that has the whole error
            variance = 2 * (second + own**2) + 4 * truth * own
            skewness = (8 * (third + own**3) + 24 * truth * own**2) / variance**1.5
            is_below = truth + variance**0.5 * skewed_quantile(skewness, tail) <= square
            low, high = (np.log(truth), high) if is_below else (low, np.log(truth))
        return float(np.sqrt(np.exp(high) + self.unseen))

    def _noise_at(self, gap: np.ndarray) -> float:
        """The largest variance of a cell that were off by its gap, to either side."""
        above_, below = np.minimum(self.means + gap, 1.0), np.maximum(self.means - gap, 0.0)
        return float((np.maximum(above_ * (1 - above_), below * (1 - below)) * self.units).max())


def squares_within(square: float, variance: float, fourth: float, z: float) -> tuple[float, float]:
    """The least and the largest x with ``|square - x| <= z sqrt(4 x variance + fourth)``, and x >= 0."""
    middle = square + 2 * z * z * variance
    under = 4 * z * z * variance * square + 4 * (z * z * variance) ** 2 + z * z * fourth
    half = np.sqrt(max(under, 0.0))
    least = 0.0 if square <= z * np.sqrt(fourth) else max(middle - half, 0.0)
    return least, max(middle + half, 0.0)


@dataclass(frozen=True)
class WalkGap:
    """How far the range of a walk of residuals may lie from the truth: noise is a Brownian motion in the time of its variance.

    The chance that it strays by more than x from where it began is at most ``4 (1 - Phi(x))``, and that its range exceeds x at
    most ``8 (1 - Phi(x))``: ``ways`` is 4 or 8. Feller (1951).
    """

    variance: float
    step: float
    ways: int

    def __call__(self, tail: float) -> tuple[float, float]:
        """Below and above."""
        return -float(ndtri(tail / self.ways)) * self.variance**0.5, above(self.variance, self.step, tail)


@dataclass(frozen=True)
class SmoothedGap:
    """How far an integral of smoothed residuals may lie from the truth: ``expected`` is what noise alone adds at most."""

    expected: float
    variance: float
    step: float

    def __call__(self, tail: float) -> tuple[float, float]:
        """Below and above."""
        return self.expected - float(ndtri(tail)) * self.variance**0.5, above(self.variance, self.step, tail)


@dataclass(frozen=True, eq=False)
class LargestGap:
    """How far the largest gap may lie from the truth: from exact limits of every frequency (Clopper & Pearson 1934).

    The upper limit is the largest of those of single cells, each at the whole level: the truth is the gap of *one* cell, and only
    where the limit of that one fails can the largest of all lie below it. The lower limit holds for all cells at once.
    """

    predicted: np.ndarray
    observed: np.ndarray
    rows: np.ndarray

    def __call__(self, tail: float) -> tuple[float, float]:
        """Below and above."""
        value = float(np.abs(self.predicted - self.observed / self.rows).max())
        low, high = self._ends(tail / len(self.rows))
        least = np.maximum(np.maximum(low - self.predicted, self.predicted - high), 0.0)
        low, high = self._ends(tail)
        most = np.maximum(high - self.predicted, self.predicted - low)
        return value - float(least.max()), float(most.max()) - value

    def _ends(self, chance: float) -> tuple[np.ndarray, np.ndarray]:
        n, x = self.rows, self.observed
        low = np.where(x > 0, betaincinv(np.maximum(x, 0.5), n - x + 1, chance), 0.0)
        high = np.where(x < n, betaincinv(x + 1, np.maximum(n - x, 0.5), 1 - chance), 1.0)
        return low, high


@dataclass(frozen=True, eq=False)
class CurveGap:
    """How far the largest distance of a distribution function from the diagonal may lie from the truth.

    ``levels`` are PIT values. The upper limit is as for :class:`LargestGap`, at every level; the lower one has the
    band of Dvoretzky, Kiefer & Wolfowitz, with the constant of Massart (1990).
    """

    levels: np.ndarray
    value: float

    def __call__(self, tail: float) -> tuple[float, float]:
        """Below and above."""
        n, u = len(self.levels), np.sort(self.levels)  # in the order that limits need, when they are asked for
        over = _highest(np.append(0.0, u), n, tail)
        under = _highest(np.append(0.0, 1 - u[::-1]), n, tail)
        return float(np.sqrt(np.log(2 / tail) / (2 * n))), max(over, under) - self.value


@dataclass(frozen=True, eq=False)
class ArcGap:
    """How far the largest gap between the share of PIT values in an interval and its length may lie from the truth.

    That is the distance of Kuiper: intervals may begin and end anywhere. The truth is the gap of *one* interval, so the upper
    limit adds what the exact limit of one share may lie above it, at most. The lower one has the law of Kuiper's statistic,
    with the correction of Stephens (1970).
    """

    n: int

    def __call__(self, tail: float) -> tuple[float, float]:
        """Below and above."""
        counts = np.unique(np.linspace(0, self.n - 1, 500).astype(np.intp))  # the limits lie on a curve with a flat top
        over = betaincinv(counts + 1, self.n - counts, 1 - tail) - counts / self.n
        return kuiper_quantile(self.n, tail), float(over.max())


def kuiper_quantile(n: int, tail: float) -> float:
    """What the range of the distance of n even numbers from a uniform law exceeds with this chance.

    >>> round(1000**0.5 * kuiper_quantile(1000, 0.05), 2)  # Stephens: 1.747 for many
    1.74
    """
    root = np.sqrt(n)

    def beyond(x: float) -> float:
        squares = (x * np.arange(1, 101)) ** 2
        return float(2 * ((4 * squares - 1) * np.exp(-2 * squares)).sum()) - tail

    return float(brentq(beyond, 0.4, 8.0)) / float(root + 0.155 + 0.24 / root)


def _highest(levels: np.ndarray, n: int, tail: float) -> float:
    """The largest distance of Clopper and Pearson's upper limits of ``0, 1, ..., n`` of n rows from as many levels.

    The normal limit, which costs less, differs by less than ``(z^2 + 3) / n``: those that cannot be the largest are left out.
    """
    counts, z = np.arange(n + 1), -float(ndtri(tail))
    about = counts / n + z * np.sqrt(counts * (n - counts) / n) / n - levels
    near = np.flatnonzero(about >= about.max() - 2 * (z * z + 3) / n)
    k = counts[near]
    exact = np.where(k < n, betaincinv(k + 1, np.maximum(n - k, 1), 1 - tail), 1.0)
    return float((exact - levels[near]).max())


def noise_of(t: Tally) -> np.ndarray:
    """The variance of the sum of residuals of each bin: that of residuals or of predictions, whichever is larger.

    Squares of scores are not kept; within the edges a and b of a bin, ``f^2 <= (a + b) f - a b``.
    """
    lower, upper = t.bins.edges[:-1].astype(np.float64), t.bins.edges[1:].astype(np.float64)
    squares = np.clip((lower + upper) * t.predicted - lower * upper * t.weight, 0.0, t.predicted)
    residuals = squares - 2 * t.predicted_where_observed + t.observed
    mean = t.predicted / np.where(t.weight > 0, t.weight, 1)
    return np.maximum(residuals, t.predicted * (1 - mean))


def noise_of_rows(
    scores: np.ndarray, observed: np.ndarray, cell: np.ndarray, weights: np.ndarray | None, size: int
) -> np.ndarray:
    """The same from rows, each of which counts by the square of its weight."""
    square = np.ones(len(scores)) if weights is None else weights**2
    found = ((scores - observed) ** 2, scores * (1 - scores))
    return np.maximum(*(np.bincount(cell, weights=square * each, minlength=size) for each in found))


def binned_slack(t: Tally, variance: np.ndarray, step: float, norm: float) -> Slack:
    """The slack of the binned error of one event in the norm 1 or 2."""
    full = t.weight > 0
    weight, gap, noise = t.weight[full], t.gap[full], variance[full]
    total = float(weight.sum())
    if norm == 1:
        return SumOfGaps(gap * weight / total, noise / total**2, step)
    gaps, variances, steps, leans = scaled(weight, gap, noise, step)
    return RootOfSquares(gaps, variances, steps, leans, float(np.sqrt((gaps**2).sum())))


EXACT = "Clopper-Pearson"
"""How limits of the largest gap are found."""


def largest_gap(tallies: Sequence[Tally]) -> LargestGap:
    """The slack of the largest gap of all bins of some events, of rows without weights."""
    full = [t.weight > 0 for t in tallies]
    rows = np.concatenate([t.weight[f] for t, f in zip(tallies, full, strict=True)])
    predicted, observed = (
        np.concatenate([x[f] for x, f in zip(columns, full, strict=True)])
        for columns in ([t.predicted for t in tallies], [t.observed for t in tallies])
    )
    return LargestGap(predicted / rows, observed, rows)


def scaled(
    weight: np.ndarray, gap: np.ndarray, noise: np.ndarray, step: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Gaps times the roots of their shares, the variances of these, what one row adds to them, and how rows lean."""
    total = float(weight.sum())
    share = weight / total
    leans = np.sqrt(np.maximum(1 - 4 * noise / (weight * step * total), 0.0))
    return np.sqrt(share) * gap, noise / (weight * total), np.minimum(step / np.sqrt(share), np.sqrt(share)), leans


def noise_of_all(scores: np.ndarray, observed: np.ndarray, weights: np.ndarray | None) -> tuple[float, float]:
    """The variance of the mean residual of all rows, and what one row adds to the mean at most."""
    total = float(len(scores) if weights is None else weights.sum())
    everywhere = np.zeros(len(scores), dtype=np.intp)
    variance = float(noise_of_rows(scores, observed, everywhere, weights, 1)[0]) / total**2
    return variance, (1.0 if weights is None else float(weights.max())) / total
