"""Mean and weak calibration: observed over expected, and slope and intercept of the log-odds."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit

from calibrant._numerics.newton import Derivatives, newton
from calibrant._validate import InputError, check_fraction
from calibrant.estimators.base import EventEstimator, OfEvent
from calibrant.estimators.mean_limits import MeanLimits
from calibrant.lenses.class_lenses import Lens
from calibrant.results import Interval, how_many


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
      lens           positive class (1)
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

    def of_event(self, scores: np.ndarray, observed: np.ndarray, weights: np.ndarray | None) -> OfEvent:
        """The ratio with its interval."""
        w = np.ones(len(scores)) if weights is None else weights
        events, expected = float(w @ observed), float(w @ scores)
        ratio = events / expected if expected > MIN_EXPECTED * w.sum() else 0.0
        squares = float(w**2 @ (observed - ratio * scores) ** 2)
        counted = w[observed > 0] if events > 0 else w
        return self.of_sums(events, expected, squares, len(scores), float(counted @ counted / counted.sum()))

    def of_sums(self, observed: float, expected: float, squares: float, n: int, step: float) -> OfEvent:
        """The ratio from ``sum w y``, ``sum w f`` and ``sum w^2 (y - R f)^2`` of n rows; ``step`` is the weight of an event.

        That is ``sum w^2 y / sum w y``, and ``sum w^2 / sum w`` where nothing happened.
        Outcomes are 0 or 1, so that the third moment is the second times ``1 - 2q``, with q the share of events.
        """
        if expected <= MIN_EXPECTED * n * step:
            why = "every score is 0" if expected == 0 else f"all scores add up to {expected:g}"
            raise InputError(f"y_pred expects no event at all ({why}): the ratio needs a score above 0")
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


MIN_EXPECTED = 1e-75
"""Of fewer events per row the ratio, its square and its cube are no numbers."""

CLIP = 2.0**-24
"""How close scores may come to 0 and 1 (the closest float32 can come to 1): their log-odds are at most 16.6."""

STEPS = 200
"""Newton steps at most; ten do unless the likelihood is nearly flat."""


@dataclass(frozen=True)
class CalibrationSlope(EventEstimator):
    """Calibration slope: b in ``logit P(y = 1) = a + b logit f``, by maximum likelihood; 1 is calibrated.

    Below 1 the scores are too extreme (over-confident, as of an overfitted model), above 1 too timid. The standard error
    is the root of ``H^-1 (sum w^2 v x x') H^-1`` with the Fisher information H, ``x = (1, logit f)``, and ``v`` the variance of
    each outcome by the fitted curve or its squared residual, whichever gives more: the curve may not be the truth. A weight
    means importance, not repetition. Scores closer to 0 or 1 than 6e-8 are
    moved there, and a note says how many. Where scores separate the classes the slope is infinite; where only one class
    occurs the fitted curve is a constant and the slope 0. O(n) per step, about ten steps. Cox (1958).

    >>> rng = np.random.default_rng(0)
    >>> y_pred = rng.random(2000)
    >>> y_true = (rng.random(2000) < expit(0.5 * logit(y_pred))) * 1
    >>> slope = CalibrationSlope()(y_true, y_pred)
    >>> print(round(slope.value, 2), slope.confidence_interval())
    0.48 0.421 to 0.5455
    """

    signed = True
    resampling = None
    name = "slope"

    lens: Lens | None = None

    def of_event(self, scores: np.ndarray, observed: np.ndarray, weights: np.ndarray | None) -> OfEvent:
        """The slope, its standard error, and what is special about the data."""
        z, notes = _log_odds(scores)
        if np.ptp(z) == 0:
            raise InputError(
                f"y_pred has the one score {scores[0]:g} everywhere: a slope needs two; use CalibrationIntercept()"
            )
        if observed.min() == observed.max():
            return OfEvent(0.0, notes=(*notes, "only one class occurs: the fitted curve is constant, the slope 0"))
        if separated := _separation(z, observed):
            return OfEvent(separated, notes=(*notes, "scores separate the classes: the slope is the limit, infinite"))
        # Centred and scaled, the two coefficients hardly depend on each other, whatever the scores.
        centre, scale = z.mean(), z.std()
        design = np.stack([np.ones(len(z)), (z - centre) / scale], axis=1)
        fit = _maximised(design, np.zeros(len(z)), observed, weights)
        return OfEvent(float(fit.coefficients[1] / scale), float(fit.standard_errors[1] / scale), notes=notes)


@dataclass(frozen=True)
class CalibrationIntercept(EventEstimator):
    """Calibration-in-the-large: a in ``logit P(y = 1) = a + logit f``, by maximum likelihood; 0 is calibrated.

    The slope is held at 1, so this is how far all log-odds must move for the mean score to be the observed frequency:
    positive when events happen more often than predicted. That is what clinical studies report; the intercept fitted
    together with a free slope is another number, and hard to read. Standard error and scores near 0 or 1 as for
    :class:`CalibrationSlope`; ``confidence_interval()`` holds for rare events, too. Infinite where only one class occurs. O(n)
    a step. Cox (1958); Steyerberg (2019).

    >>> rng = np.random.default_rng(0)
    >>> y_pred = rng.random(2000)
    >>> y_true = (rng.random(2000) < expit(logit(y_pred) + 0.4)) * 1
    >>> CalibrationIntercept()(y_true, y_pred)
    intercept = 0.4601
      standard error  0.05585
      lens            positive class (1)
      n               2,000
      estimator       CalibrationIntercept(lens=PositiveClass())
    """

    signed = True
    resampling = None
    name = "intercept"

    lens: Lens | None = None

    def of_event(self, scores: np.ndarray, observed: np.ndarray, weights: np.ndarray | None) -> OfEvent:
        """The intercept and its standard error."""
        z, notes = _log_odds(scores)
        limits = _InterceptLimits(z, observed, weights)
        if observed.min() == observed.max():
            limit = np.inf if observed[0] else -np.inf
            notes = (*notes, "only one class occurs: the intercept is the limit, infinite")
            return OfEvent(limit, notes=notes, limits=limits)
        fit = _maximised(np.ones((len(z), 1)), z, observed, weights)
        return OfEvent(float(fit.coefficients[0]), float(fit.standard_errors[0]), notes=notes, limits=limits)


@dataclass(frozen=True, eq=False)
class _InterceptLimits:
    """Limits of the intercept: where the mean of the moved scores equals the limits of the mean outcome.

    The intercept grows with the mean outcome alone, so that limits hold where events are rare, or have not been seen.
    """

    log_odds: np.ndarray
    observed: np.ndarray
    weights: np.ndarray | None

    def __call__(self, level: float) -> Interval:
        """The interval of a confidence level; without an end where outcomes of one kind may never happen."""
        w = np.ones(len(self.observed)) if self.weights is None else self.weights
        share = w / w.sum()
        observed = float(share @ self.observed)
        residual = self.observed - expit(self.log_odds + self._moved_to(observed, share))
        mean = float(share @ residual)
        limits = MeanLimits.of(residual, w, lowest=mean - observed, highest=mean + 1 - observed)(level)
        low, high = (self._moved_to(observed + end - mean, share) for end in limits)
        return Interval(low, high, level, "skewness-corrected")

    def _moved_to(self, target: float, share: np.ndarray) -> float:
        """The intercept at which the mean score is this."""
        if not 0 < target < 1:
            return float(np.copysign(np.inf, target - 0.5))
        base = float(logit(target))
        ends = base - float(self.log_odds.max()) - 1, base - float(self.log_odds.min()) + 1
        return float(brentq(lambda a: share @ expit(self.log_odds + a) - target, *ends, xtol=1e-10))


class _LogisticFit(NamedTuple):
    """Coefficients of greatest likelihood, with standard errors."""

    coefficients: np.ndarray
    standard_errors: np.ndarray


def _log_odds(scores: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """Log-odds of the scores, and a note where some had to be moved."""
    moved = int(np.sum((scores < CLIP) | (scores > 1 - CLIP)))
    count = how_many(moved, "score was", "scores were")
    note = (f"{count} closer to 0 or 1 than {CLIP:.1g}, and moved there",) if moved else ()
    return logit(np.clip(scores, CLIP, 1 - CLIP)), note


def _separation(z: np.ndarray, observed: np.ndarray) -> float:
    """The infinite slope of scores that separate the classes, up to ties at one score; else 0."""
    yes, no = z[observed == 1], z[observed == 0]
    if no.max() <= yes.min():
        return np.inf
    return -np.inf if yes.max() <= no.min() else 0.0


def _maximised(
    design: np.ndarray, offset: np.ndarray, observed: np.ndarray, weights: np.ndarray | None
) -> _LogisticFit:
    """Newton's method from 0; the likelihood must have a maximum."""
    w = np.ones(len(offset)) if weights is None else weights / weights.mean()

    def derivatives(x: np.ndarray) -> Derivatives:
        chance = expit(offset + design @ x)
        return Derivatives(design.T @ (w * (chance - observed)), (design.T * (w * chance * (1 - chance))) @ design)

    start = np.zeros(design.shape[1])
    fit = newton(lambda x: _loss(offset + design @ x, observed, w), derivatives, start, max_steps=STEPS)
    chance, inverse = expit(offset + design @ fit.x), np.linalg.inv(fit.here.hessian)
    # what the curve says of the spread, and what the rows say, which is right for truths of another form too
    squares = (w**2 * chance * (1 - chance), w**2 * (observed - chance) ** 2)
    found = [np.diag(inverse @ ((design.T * square) @ design) @ inverse) for square in squares]
    return _LogisticFit(fit.x, np.sqrt(np.maximum(*found)))


def _loss(log_odds: np.ndarray, observed: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Negative log likelihood."""
    return np.asarray(w @ np.logaddexp(0, np.where(observed == 1, -log_odds, log_odds)))
