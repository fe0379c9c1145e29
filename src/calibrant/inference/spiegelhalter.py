"""Spiegelhalter's test of calibration."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from calibrant.distributions.conversion import as_weighted_problem
from calibrant.estimators.lensed import View, check_lens
from calibrant.estimators.scores import Brier
from calibrant.lenses import Lens
from calibrant.results import TestResult
from calibrant.typing import ArrayLike, Engine, Seed

NOTE = (
    "blind to every error at scores of 1/2 and to errors that balance when weighted by 1 - 2f; ExactTest(ECE()) is not"
)

LEAST_VARIANCE = 5.0
"""The variance of the number of events below which no normal law is to be trusted."""

FEW = "few events are expected, so the p-value is unreliable and ExactTest(Brier()) is not; the variance of their number is"

IMPOSSIBLE = "something happened that had been given probability 0: no calibrated model does that"

FIXED = "scores of 0, 1/2 and 1 alone fix the Brier score whatever can happen: there is nothing to test"


@dataclass(frozen=True)
class Spiegelhalter:
    """Test that the Brier score of one event is what its scores promise, two-sided, as published.

    ``z = sum w (y - f)(1 - 2f) / sqrt(sum w^2 (1 - 2f)^2 f (1 - f))``: the Brier score less its mean, in standard deviations,
    both given the scores; ``p = 2 Phi(-|z|)``. Positive z: scores too extreme, negative: too timid. Valid for large n; the
    result says where few events are expected. Errors that do not change the Brier score on average, such as a shift of scores
    that lie evenly around 1/2, go unseen. O(n). Spiegelhalter (1986).

    >>> rng = np.random.default_rng(0)
    >>> y_pred = rng.random(1000)
    >>> Spiegelhalter()((rng.random(1000) < y_pred) * 1, y_pred).pvalue > 0.05
    True
    >>> Spiegelhalter()((rng.random(1000) < 0.3 + 0.4 * y_pred) * 1, y_pred).pvalue < 0.001
    True
    """

    lens: Lens | None = None

    def __post_init__(self) -> None:
        check_lens(self.lens)

    def __call__(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> TestResult:
        """z and its two tails; the estimate is the Brier score of the event."""
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight)
        view = View.of(self.lens, predictions)
        event = view.only(self)
        estimate = replace(Brier().estimate(*view.lens(targets, predictions), weights), reduction=view.reduction)
        f, y = event.probability.astype(np.float64), event.happened(targets)
        w = np.ones(len(f)) if weights is None else weights
        excess = float(np.sum(w * (y - f) * (1 - 2 * f)))
        variance = float(np.sum((w * (1 - 2 * f)) ** 2 * f * (1 - f)))
        notes: tuple[str, ...]
        if variance > 0:
            z, notes = excess / variance**0.5, (NOTE,)
            expected = float(np.sum(f * (1 - f)))
            notes = (f"{FEW} {expected:.2g}", *notes) if expected < LEAST_VARIANCE else notes
        else:
            z, notes = (np.inf, (IMPOSSIBLE,)) if excess > 0 else (0.0, (FIXED,))
        return TestResult(z, float(2 * ndtr(-abs(z))), len(predictions), self, estimate, notes=notes)
