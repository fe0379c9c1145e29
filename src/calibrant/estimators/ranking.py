"""How often answers are wrong where only the surest are given: what decides when a model should rather not answer."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from calibrant._validate import InputError
from calibrant.distributions.reading.conversion import Classes, as_weighted_problem
from calibrant.estimators.base import EventEstimator, OfEvent, View, check_lens
from calibrant.lenses.class_lenses import Lens
from calibrant.results import Table
from calibrant.typing import ArrayLike


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
    """The risk-coverage curve: a row per score, the surest first.

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
