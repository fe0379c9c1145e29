"""How well scores tell events from the rest, which is not calibration: the area under the ROC curve."""

from dataclasses import dataclass

import numpy as np

from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.estimators.base import EventEstimator, OfEvent, Statistic
from calibrant.estimators.mean_limits import MeanLimits
from calibrant.lenses.class_lenses import Event, Lens


@dataclass(frozen=True)
class AUC(EventEstimator):
    """Area under the ROC curve: ``P(f > f') + P(f = f') / 2`` of an event's score f and that of a row without it, f'.

    1 ranks every event above every other row, 1/2 is chance. It does not change when all scores are squared or halved, and so
    says nothing of calibration: read it beside the slope. With weights, pairs count by the product of theirs. Several
    events are averaged; ``lens=TopLabel()`` asks how well the confidence tells right answers from wrong ones.

    The variance is that of DeLong, DeLong & Clarke-Pearson (1988), ``sum s^2 (V - AUC)^2`` over rows, with V the share of the
    rows of the other kind that a row is ranked rightly against, and s the row's share of its own kind. The interval is that of
    :class:`MeanLimits` with the skewness of both samples and one more row ranked wrongly: it holds where events are few, and
    has a lower end where nothing has been ranked wrongly yet. Withheld below five rows of either kind. O(n log n).

    >>> y_true = [0, 0, 0, 0, 1, 0, 0, 1, 1, 0, 1, 1]
    >>> result = AUC()(y_true, [0.1, 0.1, 0.2, 0.2, 0.2, 0.3, 0.4, 0.4, 0.5, 0.6, 0.7, 0.9])
    >>> result
    AUC = 0.8143
      standard error  0.1378
      lens            positive class (1)
      n               12
      estimator       AUC(lens=PositiveClass())
    >>> print(result.confidence_interval())
    0.09018 to 1
    """

    least = 0.0
    most = 1.0
    resampling = "resamples of few events do not show how far their ranks go"
    name = "AUC"

    lens: Lens | None = None

    def of_event(self, scores: np.ndarray, observed: np.ndarray, weights: np.ndarray | None) -> OfEvent:
        """The area with its standard error and limits."""
        w = np.ones(len(scores)) if weights is None else weights / weights.max()
        is_event, counts = observed == 1, w > 0
        if is_event[counts].min() == is_event[counts].max():
            kind = "an event" if is_event[counts][0] else "without the event"
            raise InputError(f"every row of y_true is {kind}: AUC ranks events above the others, and needs both")
        if np.ptp(scores) == 0:
            return OfEvent(0.5, withheld=f"every score is {scores[0]:g}, which ranks nothing")
        ranked, shares = _ranked_rightly(scores, is_event, w)
        area = float(shares[is_event] @ ranked[is_event])
        n = int(counts[is_event].sum()), int(counts[~is_event].sum())
        if min(n) < MIN_ROWS_PER_CLASS:
            return OfEvent(
                area, withheld=f"of {n[0]} events and {n[1]} other rows; {MIN_ROWS_PER_CLASS} of each have an interval"
            )
        # Its error is the sum of those of both samples. As one sample of half the weight each, values lie twice as far from it.
        spread = np.where(is_event, *(2 * np.sqrt(k / (k - 1)) for k in n))
        values = area + spread * (ranked - area)
        limits = MeanLimits.of(values, shares, lowest=-area, highest=2 - area, least=0.0, most=1.0)
        return OfEvent(area, float(np.sqrt(limits.squares * limits.n / (limits.n - 1))), limits=limits)

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """Scores are sorted once. A resample of one kind of rows has nothing to rank, and counts as chance."""
        _, events, _ = self.look(predictions)
        w = np.ones(len(predictions)) if weights is None else weights / weights.max()
        return _Areas(tuple((event, np.argsort(event.probability, kind="stable")) for event in events), w)


MIN_ROWS_PER_CLASS = 5
"""Rows of either kind below which their spread is not known."""


def _ranked_rightly(scores: np.ndarray, is_event: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The share of the rows of the other kind that each row is ranked rightly against, ties counting half; its share of its own."""
    _, which = np.unique(scores, return_inverse=True)
    yes, no = (np.bincount(which, weights=np.where(rows, w, 0.0)) for rows in (is_event, ~is_event))
    below, above = np.cumsum(no) - no / 2, np.cumsum(yes[::-1])[::-1] - yes / 2
    totals = yes.sum(), no.sum()
    return np.where(is_event, below[which] / totals[1], above[which] / totals[0]), w / np.where(is_event, *totals)


@dataclass(frozen=True, eq=False)
class _Areas:
    """The areas of resampled targets: a sum over distinct scores, which are sorted."""

    events: tuple[tuple[Event, np.ndarray], ...]
    weights: np.ndarray

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """The area of each resample, ``(m,)``; several events are averaged."""
        return np.mean([self._of(event, order, targets) for event, order in self.events], axis=0)

    def _of(self, event: Event, order: np.ndarray, targets: np.ndarray) -> np.ndarray:
        scores, w = event.probability[order], self.weights[order]
        starts = np.flatnonzero(np.concatenate([[True], scores[1:] != scores[:-1]]))
        is_event = event.observed(targets)[:, order] == 1
        yes, no = (np.add.reduceat(w * rows, starts, axis=1) for rows in (is_event, ~is_event))
        right = (yes * (np.cumsum(no, axis=1) - no / 2)).sum(axis=1)
        pairs = yes.sum(axis=1) * no.sum(axis=1)
        return np.divide(right, pairs, out=np.full(len(pairs), 0.5), where=pairs > 0)
