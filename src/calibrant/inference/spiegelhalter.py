"""Spiegelhalter's test of calibration."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from calibrant._validate import InputError
from calibrant.distributions.conversion import as_weighted_problem
from calibrant.estimators.lensed import View, check_lens
from calibrant.estimators.scores import Brier
from calibrant.lenses import Lens
from calibrant.results import TestResult
from calibrant.typing import ArrayLike, Engine, Seed

NOTE = (
    "blind to every error at scores of 1/2 and to errors that balance when weighted by 1 - 2f; ExactTest(ECE()) is not"
)

LEAST_COUNT, SURE_COUNT = 2.0, 10.0
"""Effective numbers of events: below the first the normal law fails, below the second it is rough.

With ``c = w (1 - 2f)`` it is ``(sum c^2 f (1 - f))^2 / sum c^4 f (1 - f)``: the number of events, where they are rare. At 5 %, in
600 cells of rare and common events, at most 7 % of calibrated data sets were rejected above it, and up to 20 % below.
"""

IMPOSSIBLE = "something happened that had been given probability 0: no calibrated model does that"

FIXED = "scores of 0, 1/2 and 1 alone fix the Brier score whatever can happen: there is nothing to test"


@dataclass(frozen=True)
class Spiegelhalter:
    """Test that the Brier score of one event is what its scores promise, two-sided, as published.

    ``z = sum w (y - f)(1 - 2f) / sqrt(sum w^2 (1 - 2f)^2 f (1 - f))``: the Brier score less its mean, in standard deviations,
    both given the scores; ``p = 2 Phi(-|z|)``. Positive z: scores too extreme, negative: too timid. Valid for large n: the
    result says where few events are expected, and it is refused where they are too few. Errors that do not change the Brier
    score on average, such as a shift of scores that lie evenly around 1/2, go unseen. O(n). Spiegelhalter (1986).

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
        if variance > 0:
            z, notes = excess / variance**0.5, (*self._doubts(f, w), NOTE)
        else:
            z, notes = (np.inf, (IMPOSSIBLE,)) if excess > 0 else (0.0, (FIXED,))
        return TestResult(z, float(2 * ndtr(-abs(z))), len(predictions), self, estimate, notes=notes)

    def _doubts(self, f: np.ndarray, w: np.ndarray) -> tuple[str, ...]:
        """A note where few events decide; a refusal where they are too few for a normal law."""
        c = w * (1 - 2 * f)
        squares = c**2 / np.max(c**2)
        count = float(np.sum(squares * f * (1 - f)) ** 2 / np.sum(squares**2 * f * (1 - f)))
        if count < LEAST_COUNT:
            raise InputError(
                f"Spiegelhalter has no level here, as its law is for large n: by y_pred {count:.2g} events decide it, and at "
                f"least {LEAST_COUNT:g} must: use {self._exact}, which is exact"
            )
        rough = f"few events decide the p-value ({count:.2g}), so it is rough; {self._exact} is exact"
        return (rough,) if count < SURE_COUNT else ()

    @property
    def _exact(self) -> str:
        """What to use instead."""
        if self.lens is None:
            return "ExactTest(Brier(), alternative='two-sided')"
        return f"ExactTest(ECE(lens={self.lens!r}))"
