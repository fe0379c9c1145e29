"""The error of every single prediction, which data bound where the calibration curve does not fall."""

from dataclasses import dataclass, replace

import numpy as np

from calibrant.distributions.base import Distribution
from calibrant.estimators.base import LensedEstimator
from calibrant.estimators.binned.binning import Bins, EqualMass, Tally, tally
from calibrant.estimators.binned.debiased import BinWeights, DebiasedECE
from calibrant.estimators.limits import ErrorLimits, RootOfSquares, Slack, SquareWithoutBias, SumOfGaps, scaled
from calibrant.lenses.class_lenses import Event, Lens
from calibrant.results import Estimate
from calibrant.typing import Array

MIN_ROWS = 10
"""Rows of a bin at least."""

NUMBERS_OF_BINS = (1, 2, 3, 5, 7, 10, 15, 22, 33, 50, 75, 110, 160, 240, 360, 540, 800, 1200, 1800, 2700, 4000)
"""Those among which the number of bins is chosen."""

TAIL = 0.05
"""At which the upper limits of different bins are compared."""

HALVINGS_TO_COMPARE = 12
"""Steps of their search: a hundredth of a limit is enough to choose between bins."""

WEIGHTED = "with sample_weight, none is known for single predictions; ECE(EqualMass(10)) has one for its bins"
"""Why there is no interval with weights."""


@dataclass(frozen=True)
class MonotoneECE(LensedEstimator):
    """Mean calibration error of every single prediction, ``mean |c(p_i) - p_i|``, for calibration curves c that do not fall.

    No data bound this error without an assumption: c may go up and down within any bin. Where c does not fall, the means of bins
    leave little open. With gaps ``delta_b`` of bins, their shares ``w_b``, and the mean distance ``d_b`` of the predictions of a
    bin from their mean, ``mean |c - p| <= sum w_b |delta_b| + sum w_b d_b + max w_b / 2``: within a bin c strays from its mean by
    half of its rise at most, and all rises together are at most one.

    The value is that of ``DebiasedECE(norm=1)`` in bins of equal mass. How many is chosen by the predictions alone, so that the
    upper limit of a calibrated model is smallest. ``confidence_interval()`` covers the error of the single predictions where
    the curve does not fall; its lower end needs no assumption. Several events are averaged. O(n log n).

    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(20_000)
    >>> y = (rng.random(20_000) < p) * 1
    >>> print(MonotoneECE()(y, p).confidence_interval(0.9))
    0 to 0.02...
    """

    least = -1.0
    most = 1.0

    lens: Lens | None = None

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The error in bins that the predictions chose, with limits for single predictions."""
        settled, events, lens = self.look(predictions)
        parts = [_Part.of(event, event.observed(targets), weights) for event in events]
        values = [part.value for part in parts]
        value = float(np.mean(values))
        sizes = sorted({len(part.tally.bins) for part in parts})
        bins = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        return Estimate(
            name="monotone ECE",
            value=value,
            n=len(predictions),
            estimator=settled,
            lens=lens,
            notes=(f"assumes that the calibration curve does not fall; bins: {bins}",),
            limits=None if weights is not None else ErrorLimits(value, tuple(p.slack() for p in parts), most=self.most),
            withheld=None if weights is None else WEIGHTED,
        )


@dataclass(frozen=True, eq=False)
class _Part:
    """What fell into the bins of one event, and what the predictions of each bin leave open."""

    tally: Tally
    squares: np.ndarray
    weights: BinWeights
    spread: "_Spread"
    value: float

    @classmethod
    def of(cls, event: Event, observed: np.ndarray, weights: np.ndarray | None) -> "_Part":
        p = event.probability
        spread = chosen(p, weights)
        cell = spread.bins.of_rows(p, slice(None))
        found = tally(p, observed, spread.bins, weights, cell)
        residual = (p.astype(np.float64) - observed) * (1.0 if weights is None else weights)
        squares = np.bincount(cell, weights=residual**2, minlength=len(spread.bins))
        counted = BinWeights.of(cell, len(spread.bins), weights)
        debiased = DebiasedECE(norm=1).of_counts([event.name], [(found, squares, counted)], None, len(p))
        return cls(found, squares, counted, spread, float(debiased))

    def slack(self) -> Slack:
        """How far the error of the single predictions may lie from the value."""
        full = self.tally.weight > 0
        rows, gap = self.tally.weight[full], self.tally.gap[full]
        mean = self.tally.predicted[full] / rows
        noise = np.maximum(self.squares[full], rows * mean * (1 - mean))
        pairs = ((gap * rows) ** 2 - self.squares[full]) / np.maximum(rows * (rows - 1), 1)
        square = float((rows * pairs)[rows > 1].sum() / rows.sum())
        return replace(self.spread, rows=rows, mean=mean).slack(gap, noise, square, self.value)


@dataclass(frozen=True, eq=False)
class _Spread:
    """Bins with the predictions in them: rows, their mean, its distance from them (mean and mean square), and the noise expected.

    ``has_square`` says which of the two limits of the bins' error is taken, the smaller one for a calibrated model.
    """

    bins: Bins
    rows: np.ndarray
    mean: np.ndarray
    distance: np.ndarray
    square: np.ndarray
    noise: np.ndarray
    is_tied: np.ndarray
    has_square: bool = False

    @classmethod
    def of(cls, p: np.ndarray, bins: Bins) -> "_Spread":
        cell = bins.of_rows(p, slice(None))
        count = np.bincount(cell)
        full = count > 0
        mean = np.bincount(cell, weights=p) / np.where(full, count, 1)
        off = np.abs(p - mean[cell])
        sums = (np.bincount(cell, weights=x) / np.where(full, count, 1) for x in (off, off**2, p * (1 - p)))
        distance, square, noise = (each[full] for each in sums)
        low, high = np.full(len(count), np.inf), np.full(len(count), -np.inf)
        np.minimum.at(low, cell, p)
        np.maximum.at(high, cell, p)
        rows = count[full].astype(np.float64)
        return cls(bins, rows, mean[full], distance, square, noise * rows, (low == high)[full])

    @property
    def open(self) -> float:
        """How much larger the error of single predictions may be than that of bins."""
        share = self.rows / self.rows.sum()
        return float(share @ self.distance + np.max(share[~self.is_tied], initial=0.0) / 2)

    @property
    def unseen(self) -> float:
        """How far the unbiased square may lie below the mean square gap of bins: errors of single rows differ."""
        factor = self.rows / self.rows.sum() / np.maximum(self.rows - 1, 1)
        return float(factor @ self.square + np.max(factor[~self.is_tied], initial=0.0) / 4)

    def slack(self, gap: np.ndarray, noise: np.ndarray, square: float, value: float) -> "_SingleGap":
        """Of gaps and noise that were seen."""
        total, step = float(self.rows.sum()), 1 / float(self.rows.sum())
        plain = SumOfGaps(gap * self.rows / total, noise / total**2, step)
        if not self.has_square:
            return _SingleGap(plain, None, self.open, value)
        gaps, variances, steps, leans = scaled(self.rows, gap, noise, step)
        # a bin of one row is not in the unbiased square
        alone = float((np.maximum(self.mean, 1 - self.mean) ** 2)[self.rows == 1].sum() / total)
        units = np.full(len(gap), step)
        root = RootOfSquares(gaps, variances, steps, leans, float(np.sqrt((gaps**2).sum())))
        found = SquareWithoutBias(root, square, value, self.mean, self.rows / total, units, self.unseen + alone)
        return _SingleGap(plain, found, self.open, value)

    def expected(self, tail: float) -> float:
        """The upper limit that most calibrated models with these predictions keep to."""
        total = float(self.rows.sum())
        if not self.has_square:
            gaps = np.sqrt(2 / np.pi * self.noise) / self.rows
            return self.slack(gaps, self.noise, 0.0, 0.0)(tail)[1]
        variances = self.noise / (self.rows * total)
        square = float(1.2 * np.sqrt((variances**2).sum()))
        found = self.slack(np.zeros(len(self.rows)), self.noise, square, 0.0)
        assert found.square is not None
        return found.square.root(tail, HALVINGS_TO_COMPARE) + self.open


@dataclass(frozen=True, eq=False)
class _SingleGap:
    """How far the error of single predictions may lie from the value: that of bins, and what bins leave open."""

    plain: SumOfGaps
    square: SquareWithoutBias | None
    open: float
    value: float

    def __call__(self, tail: float) -> tuple[float, float]:
        """Below and above."""
        below, over = self.plain(tail)
        seen = float(np.abs(self.plain.gaps).sum())
        high = seen + over if self.square is None else self.square.root(tail)
        return self.value - (seen - below), high + self.open - self.value


def chosen(p: np.ndarray, weights: np.ndarray | None) -> _Spread:
    """The bins that give a calibrated model with these predictions the smallest upper limit."""
    scores = p.astype(np.float64)
    best, least = None, np.inf
    for number in NUMBERS_OF_BINS:
        if number > max(len(p) // MIN_ROWS, 1):
            break
        spread = _Spread.of(scores, EqualMass(number).bins(p, weights))
        for each in (spread, replace(spread, has_square=True)):
            expected = each.expected(TAIL)
            if best is None or expected < least:
                best, least = each, expected
    assert best is not None
    return best
