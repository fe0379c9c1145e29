"""The expected calibration error over bins of the predicted probability."""

from dataclasses import dataclass
from numbers import Real

import numpy as np

from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.estimators.base import Statistic
from calibrant.estimators.binning import Binning, EqualWidth
from calibrant.estimators.counts import BinnedStatistic, ClassCounts, EventCounts, lp_norm
from calibrant.estimators.lensed import LensedEstimator
from calibrant.estimators.tallies import Tally, tally
from calibrant.lenses import ClassWise, Event, Lens
from calibrant.results import Estimate, Table
from calibrant.typing import Array


@dataclass(frozen=True)
class ECE(LensedEstimator):
    """Expected calibration error: the mean distance of predicted from observed frequency over bins.

    ``(sum_b w_b |fbar_b - ybar_b|^p)^(1/p)`` with ``w_b`` the share of rows in bin b, ``fbar_b`` their mean predicted
    probability, ``ybar_b`` how often the event happened, and ``p = norm`` (``inf``: the largest gap). With
    ``label_binned`` every row's own probability is compared with ``ybar_b``. Several events (``lens=ClassWise()``)
    are averaged in the same norm.

    Never negative, hence biased upwards: read it beside the null band of :class:`~calibrant.ExactTest`. O(n) time with
    equal widths, O(n log n) with equal mass. Naeini, Cooper & Hauskrecht (2015); Roelofs et al. (2022).

    >>> from calibrant import ECE, EqualWidth
    >>> ECE(bins=EqualWidth(10))([1, 0], [0.95, 1.0])
    ECE = 0.475
      reduction  positive class (1)
      n          2
      estimator  ECE(bins=EqualWidth(n_bins=10), lens=PositiveClass())
    """

    least = 0.0
    most = 1.0

    bins: Binning = EqualWidth(15)  # noqa: RUF009  # frozen
    norm: float = 1
    lens: Lens | None = None
    label_binned: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.bins, Binning):
            raise InputError(f"bins must be a binning such as EqualWidth(15) or EqualMass(15); got {self.bins!r}")
        if not isinstance(self.norm, Real) or not self.norm >= 1:
            raise InputError(f"norm must be a number of at least 1, or inf; got {self.norm!r}")
        super().__post_init__()

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The error with its bin table."""
        settled, events, reduction = self.look(predictions)
        tallies = [self._tally(e, e.happened(targets), weights) for e in events]
        names = [event.name for event in events]
        values = None
        if self.label_binned:
            values = [_label_binned(e, t, self.norm, weights) for e, t in zip(events, tallies, strict=True)]
        notes = self.bins.notes([t.bins for t in tallies])
        return binned_estimate(settled, len(predictions), reduction, names, tallies, values, notes)

    def _tally(self, event: Event, happened: np.ndarray, weights: np.ndarray | None) -> Tally:
        p = event.probability
        return tally(p, happened, self.bins.bins(p, weights, happened), weights)

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """Bins, and sums of the predictions in them, are found once; each redraw only counts what happened."""
        if self.label_binned:
            return super().given(predictions, weights)
        settled, events, _ = self.look(predictions)
        if self.bins.is_adaptive:
            return self.bins.statistic(events, weights, self.norm)
        bins = [self.bins.bins(e.probability, weights) for e in events]
        if isinstance(settled.lens, ClassWise):
            return BinnedStatistic(self.norm, (ClassCounts.of(events, bins, weights),))
        return BinnedStatistic(
            self.norm, tuple(EventCounts.of(e, b, weights) for e, b in zip(events, bins, strict=True))
        )


def _label_binned(event: Event, t: Tally, norm: float, weights: np.ndarray | None) -> np.ndarray:
    """Each row's probability against the frequency of its bin."""
    frequency = t.observed / np.where(t.weight > 0, t.weight, 1)
    gap = event.probability - frequency[t.bins.of_rows(event.probability, slice(None))]
    return lp_norm(gap, np.ones(len(gap)) if weights is None else weights, norm)


def binned_estimate(
    ece: ECE,
    n: int,
    reduction: str | None,
    names: list[str],
    tallies: list[Tally],
    errors: list[np.ndarray] | None = None,
    notes: tuple[str, ...] = (),
) -> Estimate:
    """The estimate from what fell into the bins of each event; errors of events where they are others."""
    values = [lp_norm(t.gap, t.weight, ece.norm) for t in tallies] if errors is None else errors
    value = lp_norm(np.array(values), np.ones(len(values)), ece.norm)
    return Estimate("ECE", float(value), n, ece, reduction, table=bin_table(names, tallies), notes=notes)


def bin_table(names: list[str], tallies: list[Tally]) -> Table:
    """One row a bin that is not empty, of each event in turn."""
    full = [t.weight > 0 for t in tallies]
    pairs = list(zip(tallies, full, strict=True))
    columns = {
        "lower": [t.bins.edges[:-1][f] for t, f in pairs],
        "upper": [t.bins.edges[1:][f] for t, f in pairs],
        "weight": [t.weight[f] for t, f in pairs],
        "predicted": [t.predicted[f] / t.weight[f] for t, f in pairs],
        "observed": [t.observed[f] / t.weight[f] for t, f in pairs],
        "gap": [t.gap[f] for t, f in pairs],
    }
    name = {} if len(names) == 1 else {"event": np.repeat(names, [f.sum() for f in full])}
    return Table({**name, **{key: np.concatenate(parts) for key, parts in columns.items()}})
