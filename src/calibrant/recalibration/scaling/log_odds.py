"""Two classes put right on the scale of log-odds: intercept, Platt, quadratic and beta calibration."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.recalibration.base import Found, Recalibrator, shares
from calibrant.recalibration.maps import ClassMap, check_least, least_probability, two_classes
from calibrant.recalibration.scaling.softmax_regression import Coefficients, fitted_log_odds
from calibrant.results import how_many, number

MIN_PROBABILITY = 2.0**-53
"""Probabilities below this count as this: no double lies between 1 and 1 minus this."""


class _Problem(NamedTuple):
    """Logarithms of both probabilities, ``(n,)`` each, none below that of ``least``; whether class 1 happened; weights."""

    log_p: np.ndarray
    log_not: np.ndarray
    observed: np.ndarray
    w: np.ndarray
    rows: float
    least: float
    notes: tuple[str, ...]

    @property
    def log_odds(self) -> np.ndarray:
        """``logit p``."""
        return self.log_p - self.log_not

    def fitted(
        self, *columns: np.ndarray, known: tuple[float, ...] = (), offset: np.ndarray | float = 0.0
    ) -> Coefficients:
        """Coefficients of a constant and of these columns, beside an offset."""
        design = np.stack([np.ones(len(self.log_p)), *columns], axis=1)
        return fitted_log_odds(design, np.array([0.0, *known]), self.observed, self.w, self.rows, offset)

    def found(self, map_: ClassMap, fit: Coefficients) -> Found:
        """The map with what is to be said of data and search."""
        return Found(map_, fit.search.is_converged, (*self.notes, *fit.search.notes))


def _problem(targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None, asker: str) -> _Problem:
    p = _normalised(to_numpy(two_classes(predictions, asker).matrix).astype(np.float64))
    w, rows = shares(weights, len(targets))
    least = max(least_probability(p, rows), MIN_PROBABILITY)
    log_p = np.log(np.maximum(p, least))
    wrong = int((p[np.arange(len(p)), targets] == 0).sum())
    notes = (
        (f"{how_many(wrong, 'row')} had probability 0 for what happened: 0 counts as {number(least)}",) if wrong else ()
    )
    return _Problem(log_p[:, 1], log_p[:, 0], targets == 1, w, rows, least, notes)


def _normalised(p: np.ndarray) -> np.ndarray:
    return p / p.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class Intercept(Recalibrator):
    """Recalibration in the large: ``sigmoid(a + z)`` with ``z = logit p``, by maximum likelihood.

    One number moves all log-odds up or down until as many events are expected as happened; the order and the spread of
    predictions stay. The first thing to try where a model meets a new place or time with fewer rows than
    :class:`Platt` needs. Two classes; probabilities of 0 and 1 as for :class:`Platt`. Where one class never happened the
    fit stops half a nat short of the limit. Cox (1958); Steyerberg et al. (2004).

    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(1, 9, 5_000)
    >>> y = (rng.random(5_000) < expit(0.5 + np.log(p / (1 - p)))) * 1
    >>> fitted = Intercept().fit(y, p)
    >>> round(fitted.map.intercept, 1), fitted.map.slope, round(float(fitted(p).sum())) == y.sum()
    (0.5, 1.0, np.True_)
    """

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """Logistic regression with the log-odds as offset."""
        problem = _problem(targets, predictions, weights, "Intercept")
        fit = problem.fitted(offset=problem.log_odds)
        return problem.found(AffineLogOdds(float(fit.values[0]), 1.0, problem.least), fit)


@dataclass(frozen=True)
class Platt(Recalibrator):
    """Affine log-odds: ``sigmoid(a + b z)`` with ``z = logit p``, by maximum likelihood.

    Two classes; b is below 1 where the model is too sure, a moves all probabilities up or down. Convex; Newton's method to
    a gradient of 1e-10, O(n) per step. A probability of 0 counts as half the smallest other one, in the fit and when the map
    is applied, so that 0 and 1 are put right too; where the fit has seen none, as 1/(4n) at most. Where one score separates
    the classes the best map is a step: the fit stops half a nat short of it. Platt (1999), on log-odds; Cox (1958).

    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(0.5, 0.5, 5_000)
    >>> y = (rng.random(5_000) < expit(0.3 + 0.4 * np.log(p / (1 - p)))) * 1
    >>> Platt().fit(y, p).map
    AffineLogOdds(intercept=0.30..., slope=0.42..., least=...)
    """

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """Logistic regression on the log-odds."""
        problem = _problem(targets, predictions, weights, "Platt")
        fit = problem.fitted(problem.log_odds, known=(1.0,))
        a, b = map(float, fit.values)
        return problem.found(AffineLogOdds(a, b, problem.least), fit)


@dataclass(frozen=True)
class Quadratic(Recalibrator):
    """Quadratic log-odds: ``sigmoid(a + b z + c z^2)`` with ``z = logit p``, by maximum likelihood.

    As :class:`Platt` with one more term, for models that are too sure of one class only. A parabola turns back: outside
    the log-odds seen in the fit the map goes on along its tangent, or stays level where that falls, so that more sure
    predictions are never mapped to the contrary. Berta et al. (2025).

    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(0, 2, 5_000)
    >>> y = (rng.random(5_000) < expit(0.5 * z + 0.1 * z**2)) * 1
    >>> Quadratic().fit(y, expit(z)).map.curvature
    0.09...
    """

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """Logistic regression on the log-odds and their squares."""
        problem = _problem(targets, predictions, weights, "Quadratic")
        z = problem.log_odds
        fit = problem.fitted(z, z**2, known=(1.0, 0.0))
        a, b, c = map(float, fit.values)
        return problem.found(QuadraticLogOdds(a, b, c, float(z.min()), float(z.max()), problem.least), fit)


@dataclass(frozen=True)
class BetaScaling(Recalibrator):
    """Beta calibration: ``sigmoid(c + a log p - b log(1 - p))``, by maximum likelihood.

    Exact where the probabilities given each class have beta distributions. ``monotone`` keeps a and b from being negative,
    as the authors do; the optimum under that constraint is found exactly, as the best of the fits with some of them 0.
    Else as :class:`Platt`, which is a = b. Kull, Silva Filho & Flach (2017).

    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=5_000)
    >>> p = np.where(y == 1, rng.beta(2, 1, 5_000), rng.beta(1, 3, 5_000))
    >>> BetaScaling().fit(y, p).map
    BetaLogOdds(intercept=-0.2..., low=1.0..., high=1.8..., least=...)
    """

    monotone: bool = True

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """Logistic regression on both logarithms, with one of them left out where its coefficient would be negative."""
        problem = _problem(targets, predictions, weights, "BetaScaling")
        z, log_p, minus_log_not = problem.log_odds, problem.log_p, -problem.log_not
        # symmetric under relabelling, also in what is left out when the data cannot tell
        fit = problem.fitted(z, problem.log_p + problem.log_not, known=(1.0, 0.0))
        c, slope, skew = fit.values
        best = fit._replace(values=np.array([c, slope + skew, slope - skew]))
        if self.monotone and best.values[1:].min() < 0:
            one, other = (problem.fitted(column, known=(1.0,)) for column in (log_p, minus_log_not))
            none = problem.fitted()
            faces = [
                none._replace(values=np.array([*none.values, 0.0, 0.0])),
                one._replace(values=np.array([*one.values, 0.0])),
                other._replace(values=np.array([other.values[0], 0.0, other.values[1]])),
            ]
            best = min((face for face in faces if face.values[1:].min() >= 0), key=lambda face: face.search.loss)
        c, low, high = map(float, best.values)
        return problem.found(BetaLogOdds(c, low, high, problem.least), best)


class _LogOddsMap(ClassMap):
    """New log-odds from old; probabilities below ``least`` count as that."""

    n_classes = 2
    least: float

    def probabilities(self, p: np.ndarray) -> np.ndarray:
        """Both columns from the new log-odds, so that no tail is lost in 1 - p."""
        with np.errstate(divide="ignore"):
            log_p = np.log(np.maximum(_normalised(p), self.least))
        new = self.log_odds(log_p[:, 1], log_p[:, 0])
        return np.stack([expit(-new), expit(new)], axis=1)

    @abstractmethod
    def log_odds(self, log_p: np.ndarray, log_not: np.ndarray) -> np.ndarray:
        """New log-odds from the logarithms of both probabilities, one of which may be ``-inf``."""

    def __post_init__(self) -> None:
        wrong = {name: value for name, value in vars(self).items() if not np.isfinite(value)}
        if wrong:
            raise InputError(f"{type(self).__name__} must be made of finite numbers; got {wrong}")
        check_least(self.least)


@dataclass(frozen=True)
class AffineLogOdds(_LogOddsMap):
    """``intercept + slope z``."""

    intercept: float
    slope: float
    least: float = 0.0

    def log_odds(self, log_p: np.ndarray, log_not: np.ndarray) -> np.ndarray:
        """A line."""
        return self.intercept + _times(self.slope, log_p - log_not)


@dataclass(frozen=True)
class QuadraticLogOdds(_LogOddsMap):
    """``intercept + slope z + curvature z^2`` for z from ``low`` to ``high``, beyond them a line that does not fall."""

    intercept: float
    slope: float
    curvature: float
    low: float
    high: float
    least: float = 0.0

    def log_odds(self, log_p: np.ndarray, log_not: np.ndarray) -> np.ndarray:
        """A parabola between two lines."""
        z = log_p - log_not
        inside = np.clip(z, self.low, self.high)
        parabola = self.intercept + inside * (self.slope + self.curvature * inside)
        left, right = (max(0.0, self.slope + 2 * self.curvature * end) for end in (self.low, self.high))
        return parabola + _times(left, np.minimum(z - self.low, 0)) + _times(right, np.maximum(z - self.high, 0))


@dataclass(frozen=True)
class BetaLogOdds(_LogOddsMap):
    """``intercept + low log p - high log(1 - p)``: slopes of the log-odds near p = 0 and near p = 1."""

    intercept: float
    low: float
    high: float
    least: float = 0.0

    def log_odds(self, log_p: np.ndarray, log_not: np.ndarray) -> np.ndarray:
        """Two logarithms."""
        return self.intercept + _times(self.low, log_p) - _times(self.high, log_not)


def _times(slope: float, x: np.ndarray) -> np.ndarray:
    """``slope x``, where nothing times infinity is nothing."""
    return slope * x if slope else np.zeros_like(x)
