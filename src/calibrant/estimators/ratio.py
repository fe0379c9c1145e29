"""The ratio of what happened to what was expected."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from calibrant._validate import InputError, check_fraction
from calibrant.estimators.events import EventEstimator, OfEvent
from calibrant.lenses import Lens
from calibrant.results import Interval


@dataclass(frozen=True)
class CalibrationRatio(EventEstimator):
    """Observed over expected: ``R = sum w y / sum w f``; 1 is calibrated on the whole, above 1 too few were expected.

    The observed count ``O = sum w y`` has the variance ``V = n / (n - 1) sum w^2 (y - R f)^2``, which for a calibrated model
    is ``sum f (1 - f)`` on average, and stays right for others. The interval is ``R exp(+- z sqrt(V) / O)``, the delta method
    on the log scale, at ``confidence_level``; the standard error is ``R sqrt(V) / O``. Where nothing happened, or all rows
    agree, there is neither. Blind to errors that balance over the rows. O(n). Debray et al. (2017).

    >>> CalibrationRatio()([1, 0, 1, 1, 0], [0.6, 0.2, 0.7, 0.3, 0.2])
    O/E = 1.5
      0.95 interval  0.8972 to 2.508 (log scale)
      reduction      positive class (1)
      n              5
      estimator      CalibrationRatio(lens=PositiveClass())
    """

    signed = True
    resampling = None
    least = 0.0
    name = "O/E"

    lens: Lens | None = None
    confidence_level: float = 0.95

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fraction(self.confidence_level, "confidence_level")

    def of_event(self, scores: np.ndarray, happened: np.ndarray, weights: np.ndarray | None) -> OfEvent:
        """The ratio with its interval."""
        w = np.ones(len(scores)) if weights is None else weights
        observed, expected = float(w @ happened), float(w @ scores)
        ratio = observed / expected if expected > 0 else 0.0
        return self.of_sums(observed, expected, float(w**2 @ (happened - ratio * scores) ** 2), len(scores))

    def of_sums(self, observed: float, expected: float, squares: float, n: int) -> OfEvent:
        """The ratio from ``sum w y``, ``sum w f`` and ``sum w^2 (y - R f)^2`` of n rows."""
        if expected == 0:
            raise InputError("y_pred expects no event at all (every score is 0): the ratio needs a score above 0")
        ratio, variance = observed / expected, squares * n / max(n - 1, 1)
        if observed == 0:
            return OfEvent(0.0, notes=("nothing happened: there is no interval on the log scale",))
        if variance <= 1e-24 * observed**2:
            return OfEvent(ratio, notes=("all rows have the same ratio: their spread says nothing",))
        error = np.sqrt(variance) / observed
        factor = np.exp(ndtri((1 + self.confidence_level) / 2) * error)
        interval = Interval(float(ratio / factor), float(ratio * factor), self.confidence_level, "log scale")
        return OfEvent(ratio, float(ratio * error), interval)
