"""How well scores tell rows apart: what calibration does not see, and what decides when a model should rather not answer."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtri

from calibrant._validate import InputError
from calibrant.distributions.reading.conversion import Classes, as_weighted_problem
from calibrant.estimators.base import EventEstimator, OfEvent, View, check_lens
from calibrant.lenses.class_lenses import Lens
from calibrant.results import Interval, Table
from calibrant.typing import ArrayLike

MIN_OF_EACH = 20
"""Rows with the event, and without, below which the area has no interval."""


class Answered(NamedTuple):
    """The surest rows in the lead: after each group of equal scores, the share of rows and the share of rows that are wrong.

    Both begin at 0. In between they lie on straight lines: of rows in random order within a score, these are the means.
    """

    coverage: np.ndarray
    wrong: np.ndarray
    scores: np.ndarray
    rates: np.ndarray

    @classmethod
    def of(cls, scores: np.ndarray, observed: np.ndarray, weights: np.ndarray | None) -> Self:
        """From scores and zeros and ones, ``(n,)``."""
        values, place = np.unique(-scores, return_inverse=True)
        w = np.ones(len(scores)) if weights is None else weights / weights.max()
        rows, wrong = (np.bincount(place, v, len(values)) for v in (w, w * (1 - observed)))
        rows, wrong, values = (v[rows > 0] for v in (rows, wrong, values))
        coverage, total = (np.concatenate(([0.0], np.cumsum(v))) for v in (rows, wrong))
        return cls(coverage / coverage[-1], total / coverage[-1], -values, wrong / rows)

    def risk(self, coverage: float) -> float:
        """How often the surest rows are wrong."""
        return float(np.interp(coverage, self.coverage, self.wrong) / coverage)

    def area(self) -> float:
        """The mean risk over all coverages: on a piece ``wrong = a + b c``, the integral of ``a / c + b``."""
        offsets = self.wrong[2:] - self.rates[1:] * self.coverage[2:]
        ratios = np.log(self.coverage[2:] / self.coverage[1:-1])
        return float(self.rates @ np.diff(self.coverage) + offsets @ ratios)


@dataclass(frozen=True)
class AUROC(EventEstimator):
    """Area under the ROC curve: how often a row with the event scores higher than one without, ties counting half.

    ``sum w_i w_j (1[s_i > s_j] + 1[s_i = s_j] / 2) / sum w_i w_j`` over i with the event and j without; 0.5 is chance. With
    ``lens=TopLabel()`` it says whether the confidence tells right answers from wrong ones. The interval is the
    wider of DeLong's (1988) and Newcombe's (2006); it needs twenty rows of either kind, and no weights. The area says nothing of
    calibration. O(n log n).

    >>> AUROC()([1, 0, 1, 1, 0], [0.9, 0.2, 0.6, 0.8, 0.6]).value
    0.9166666666666666
    """

    least, most = 0.0, 1.0
    name = "AUROC"

    lens: Lens | None = None

    def of_event(self, scores: np.ndarray, observed: np.ndarray, weights: np.ndarray | None) -> OfEvent:
        """The area, and how far shares of rows beaten spread."""
        w = np.ones(len(scores)) if weights is None else weights / weights.max()
        parts = [(scores[observed == side], w[observed == side]) for side in (1, 0)]
        (above, mine), (below, others) = parts
        if not (mine.sum() > 0 and others.sum() > 0):
            return OfEvent(np.nan, notes=("only one outcome occurs: there is no pair to rank",))
        won, lost = _beaten(above, below, others), 1 - _beaten(below, above, mine)
        area = float(won @ mine / mine.sum())
        if weights is not None or min(len(mine), len(others)) < MIN_OF_EACH:
            return OfEvent(area)
        error = float(np.sqrt(won.var(ddof=1) / len(won) + lost.var(ddof=1) / len(lost)))
        return OfEvent(area, error, limits=AreaLimits(area, error, len(mine), len(others)))


@dataclass(frozen=True)
class AreaLimits:
    """The interval of an area: the wider one at either end of DeLong's, symmetric on the log-odds, and Newcombe's.

    The first knows how scores lie, and the second, ``|A - a|`` of at most z standard errors at a by Hanley & McNeil (1982) with
    groups of average size, does not need rows that rank wrongly. Newcombe (2006), method 5.
    """

    area: float
    error: float
    events: int
    others: int

    def __call__(self, confidence_level: float) -> Interval:
        """At a level."""
        z = float(ndtri((1 + confidence_level) / 2))
        ends = [self._end(z, 0.0), self._end(z, 1.0)]
        if 0 < self.area < 1:
            half = z * self.error / (self.area * (1 - self.area))
            low, high = expit(logit(self.area) + np.array([-half, half]))
            ends = [min(ends[0], float(low)), max(ends[1], float(high))]
        return Interval(ends[0], ends[1], confidence_level, "DeLong and Newcombe, the wider")

    def _end(self, z: float, most: float) -> float:
        """Where the distance to the area is z standard errors, between it and 0 or 1."""

        def excess(a: float) -> float:
            spread = 1 + ((self.events + self.others) / 2 - 1) * ((1 - a) / (2 - a) + a / (1 + a))
            return (self.area - a) ** 2 - z**2 * a * (1 - a) * spread / (self.events * self.others)

        start = self.area + (1e-12 if most > self.area else -1e-12)  # at 0 and 1 there is no spread
        return most if self.area == most else float(brentq(excess, start, most))


def _beaten(scores: np.ndarray, others: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The share of the others that each score beats, ties counting half."""
    order = np.argsort(others)
    total = np.concatenate(([0.0], np.cumsum(weights[order])))
    sides = [total[np.searchsorted(others[order], scores, side)] for side in ("left", "right")]
    share: np.ndarray = (sides[0] + sides[1]) / (2 * total[-1])
    return share


@dataclass(frozen=True)
class AURC(EventEstimator):
    """Area under the risk-coverage curve: how often answers are wrong, on average over how many of them are given.

    ``int_0^1 r(c) dc``, where ``r(c)`` is the share of wrong answers among the surest part ``c`` of the rows. Rows of equal
    confidence are in random order, and the value is the mean over orders. It is small where the model is good and knows
    when it is not. The sum over ranks that papers print tends to it; it counts repeated rows otherwise. O(n log n).
    Geifman & El-Yaniv (2017).

    >>> from calibrant import TopLabel
    >>> AURC(TopLabel())([0, 1, 0], [[0.9, 0.1], [0.6, 0.4], [0.8, 0.2]]).value
    0.06302...
    """

    least, most = 0.0, 1.0
    name = "AURC"

    lens: Lens | None = None

    def of_event(self, scores: np.ndarray, observed: np.ndarray, weights: np.ndarray | None) -> OfEvent:
        """The area."""
        return OfEvent(Answered.of(scores, observed, weights).area())


@dataclass(frozen=True)
class SelectiveAccuracy(EventEstimator):
    """How often answers are right where only the surest ``coverage`` of the rows are answered.

    Rows of equal confidence are in random order, and the value is the mean over orders. O(n log n).

    >>> from calibrant import TopLabel
    >>> SelectiveAccuracy(2 / 3, TopLabel())([0, 1, 0], [[0.9, 0.1], [0.6, 0.4], [0.8, 0.2]]).value
    1.0
    """

    least, most = 0.0, 1.0
    name = "selective accuracy"

    coverage: float = 0.8
    lens: Lens | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.coverage <= 1:
            raise InputError(f"coverage must be a share of the rows, above 0 and at most 1; got {self.coverage!r}")

    def of_event(self, scores: np.ndarray, observed: np.ndarray, weights: np.ndarray | None) -> OfEvent:
        """One less the risk."""
        return OfEvent(1.0 - Answered.of(scores, observed, weights).risk(self.coverage))


def risk_coverage(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    lens: Lens | None = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: object = None,
) -> Table:
    """The risk-coverage curve: a row a score, the surest first.

    Beside the share of rows that score as high, ``risk`` is how often they are wrong, and ``claimed`` what their
    scores say of it.

    >>> from calibrant import TopLabel
    >>> risk_coverage([0, 1, 0], [[0.9, 0.1], [0.6, 0.4], [0.8, 0.2]], lens=TopLabel())
    threshold  coverage    risk  claimed
          0.9    0.3333       0      0.1
          0.8    0.6667       0     0.15
          0.6         1  0.3333   0.2333
    """
    check_lens(lens)
    targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight, Classes(labels, pos_label))
    event = View.of(lens, predictions).only(AURC())
    found = Answered.of(event.probability.astype(np.float64), event.observed(targets).astype(np.float64), weights)
    coverage, claimed = found.coverage[1:], np.cumsum((1 - found.scores) * np.diff(found.coverage))
    return Table(threshold=found.scores, coverage=coverage, risk=found.wrong[1:] / coverage, claimed=claimed / coverage)
