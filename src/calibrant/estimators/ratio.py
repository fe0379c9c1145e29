"""The ratio of what happened to what was expected."""

from dataclasses import dataclass

import numpy as np

from calibrant._validate import InputError, check_fraction
from calibrant.estimators.events import EventEstimator, OfEvent
from calibrant.estimators.mean_limits import MeanLimits
from calibrant.lenses import Lens


@dataclass(frozen=True)
class CalibrationRatio(EventEstimator):
    """Observed over expected: ``R = sum w y / sum w f``; 1 is calibrated on the whole, above 1 too few were expected.

    The observed count ``O = sum w y`` has the variance ``V = n / (n - 1) sum w^2 (y - R f)^2``, which for a calibrated model
    is ``sum f (1 - f)`` on average, and stays right for others; the standard error is ``sqrt(V) / sum w f``. The interval, at
    ``confidence_level``, is that of :class:`MeanLimits`: where events are rare, or nearly everything happens, it is the exact one
    of a count. Blind to errors that balance over the rows. O(n). Debray et al. (2017).

    >>> CalibrationRatio()([1, 0, 1, 1, 0], [0.6, 0.2, 0.7, 0.3, 0.2])
    O/E = 1.5
      0.95 interval  0 to 2.788 (skewness-corrected)
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
        squares = float(w**2 @ (happened - ratio * scores) ** 2)
        counted = w[happened > 0] if observed > 0 else w
        return self.of_sums(observed, expected, squares, len(scores), float(counted @ counted / counted.sum()))

    def of_sums(self, observed: float, expected: float, squares: float, n: int, step: float) -> OfEvent:
        """The ratio from ``sum w y``, ``sum w f`` and ``sum w^2 (y - R f)^2`` of n rows; ``step`` is the weight of an event.

        That is ``sum w^2 y / sum w y``, and ``sum w^2 / sum w`` where nothing happened.
        Outcomes are 0 or 1, so that the third moment is the second times ``1 - 2q``, with q the share of events.
        """
        if expected == 0:
            raise InputError("y_pred expects no event at all (every score is 0): the ratio needs a score above 0")
        ratio = observed / expected
        if n < 2:
            return OfEvent(ratio, notes=("one row says nothing of others: there is no interval",))
        total = n * step
        share = min(observed / total, 1.0)
        limits = MeanLimits(
            mean=ratio,
            n=n,
            squares=squares / expected**2,
            cubes=squares * (1 - 2 * share) * step / expected**3,
            share=step / expected,
            lowest=ratio - share,
            highest=ratio + 1 - share,
            least=0.0,
        )
        error = float(np.sqrt(squares * n / (n - 1))) / expected
        return OfEvent(ratio, error, limits(self.confidence_level), limits=limits)
