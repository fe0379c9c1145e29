"""The integrated calibration index and its relatives: distances of the scores from a fitted curve."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibrant._validate import InputError
from calibrant.estimators.events import EventEstimator, OfEvent
from calibrant.estimators.smooth.fitted_curves import Curve, KernelSmooth
from calibrant.lenses.class_lenses import Lens

NAMES = {"mean": "ICI", "median": "E50", "p90": "E90", "max": "Emax"}
"""What the literature calls each summary."""

SHARES = {"median": 0.5, "p90": 0.9, "max": 1.0}


@dataclass(frozen=True)
class ICI(EventEstimator):
    """Integrated calibration index: how far, over the rows, the scores lie from a curve fitted to the outcomes.

    ``|c(f_i) - f_i|`` with the curve c of one event, summarised by its weighted ``mean`` (ICI), ``median`` (E50), 90 %
    quantile ``p90`` (E90) or ``max`` (Emax). Several events are averaged. The curve is :class:`KernelSmooth` unless
    another is given; the bandwidth it chose is in the result's ``estimator``.

    Never negative, hence biased upwards, most with a curve that follows the noise: read it beside the null band of
    :class:`~calibrant.ExactTest`. O(n), and O(n log n) for the quantiles. Austin & Steyerberg (2019).

    >>> rng = np.random.default_rng(0)
    >>> y_pred = rng.random(2000)
    >>> y_true = (rng.random(2000) < 0.3 + 0.4 * y_pred) * 1    # the truth: |0.3 - 0.6 f|, 0.15 on average
    >>> round(ICI(KernelSmooth(0.1))(y_true, y_pred).value, 2)
    0.16
    >>> ICI(KernelSmooth(0.1), "max")(y_true, y_pred)
    Emax = 0.3356
      lens       positive class (1)
      n          2,000
      estimator  ICI(curve=KernelSmooth(bandwidth=0.1), summary='max', lens=PositiveClass())
    """

    least = 0.0
    most = 1.0
    resampling = "the bias of a fitted curve is not known"

    curve: Curve = KernelSmooth()  # noqa: RUF009  # frozen
    summary: Literal["mean", "median", "p90", "max"] = "mean"
    lens: Lens | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.curve, Curve):
            raise InputError(f"curve must be a curve such as KernelSmooth() or IsotonicCurve(); got {self.curve!r}")
        if self.summary not in NAMES:
            raise InputError(f"summary must be 'mean', 'median', 'p90' or 'max'; got {self.summary!r}")

    @property
    def name(self) -> str:
        """ICI, E50, E90 or Emax."""
        return NAMES[self.summary]

    def of_event(self, scores: np.ndarray, observed: np.ndarray, weights: np.ndarray | None) -> OfEvent:
        """The summary of the gaps, and the curve's own choices."""
        curve = self.curve.fit(scores, observed, weights)
        gaps = np.abs(curve(scores) - scores)
        if self.summary == "mean":
            value = np.average(gaps, weights=weights)
        else:
            value = quantiles(gaps, weights, np.array([SHARES[self.summary]]))[0]
        return OfEvent(float(value), settings={"curve": curve.rule})


def quantiles(values: np.ndarray, weights: np.ndarray | None, shares: np.ndarray) -> np.ndarray:
    """Quantiles of weighted values: the inverse of their distribution function, the middle of its flat places.

    A whole weight counts as so many values (Hyndman & Fan 1996, type 2: half of an even number is the usual median).

    >>> quantiles(np.array([3.0, 1.0, 2.0]), np.array([1, 1, 2]), np.array([0, 0.25, 0.5, 1]))
    array([1. , 1.5, 2. , 3. ])
    """
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(np.ones(len(values)) if weights is None else weights[order])
    wanted, slack = shares * reached[-1], 1e-12 * reached[-1]  # sums of weights are rounded
    lower = np.searchsorted(reached, wanted - slack, side="left")
    upper = np.searchsorted(reached, wanted + slack, side="right")
    last = len(values) - 1
    lower, upper = np.minimum(lower, last), np.minimum(upper, last)
    return (values[order[lower]] + values[order[upper]]) / 2
