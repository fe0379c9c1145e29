"""A stream in windows of equally many rows: what was claimed in each, what happened, and how far apart they are."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution
from calibrant.distributions.bernoulli import Bernoulli
from calibrant.distributions.categorical import Categorical
from calibrant.distributions.conversion import as_problem
from calibrant.distributions.coordinates import dimensions
from calibrant.distributions.quantiles import Quantiles, fan_of
from calibrant.distributions.uniform import Uniform
from calibrant.estimators.base import BaseEstimator
from calibrant.estimators.binned import ECE
from calibrant.estimators.binning import EqualMass
from calibrant.estimators.levels_within import LevelsWithin
from calibrant.estimators.pit import PIT
from calibrant.estimators.pit_error import PITError
from calibrant.estimators.quantile_cells import ShareBetween
from calibrant.inference.exact import ExactTest
from calibrant.lenses import TopLabel
from calibrant.monitoring.levels import levels_by_row
from calibrant.typing import ArrayLike

CENTRAL = 0.9
"""Forecasts claim that so much of the outcomes lies in their central intervals of this level."""


@dataclass(frozen=True)
class Window:
    """Rows ``first`` to ``last`` of a stream, counted from 1: mean claim, mean outcome, the calibration error, what a
    calibrated model would show, and the p-value of the exact test in this window alone."""

    first: int
    last: int
    claimed: float
    happened: float
    error: float
    null_low: float
    null_high: float
    pvalue: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Windows:
    """Cuts a stream into windows of ``size`` rows, however rows come together.

    Of classes, the claim is the probability of the favoured class (of two, of the positive one); of forecasts, the
    share of outcomes in central 90 % intervals, or between the outer quantiles where nothing else was forecast. Each
    window is tested by itself, ``n_resamples`` redraws: of twenty windows of a calibrated model one has a p-value below
    5 %, so that alarms are left to :class:`Monitor`.

    >>> windows = Windows(size=3)
    >>> for y_true, y_pred in [([1, 0], [0.9, 0.2]), ([1, 1], [0.7, 0.6])]:
    ...     windows, done = windows.update(y_true, y_pred)
    >>> done[0].first, done[0].last, round(done[0].claimed, 3), round(done[0].happened, 3)
    (1, 3, 0.6, 0.667)
    """

    size: int = 1000
    n_resamples: int = 199
    seed: int = 0
    n: int = 0
    waiting: tuple[tuple[np.ndarray, np.ndarray], ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        check_count(self.size, "size")
        check_count(self.n_resamples, "n_resamples")

    def update(self, y_true: ArrayLike, y_pred: ArrayLike) -> tuple[Self, list[Window]]:
        """After these rows too, and the windows that they complete."""
        outcomes, claims = _seen(*as_problem(y_true, y_pred), self.n, self.seed)
        if self.waiting and self.waiting[0][1].shape[1:] != claims.shape[1:]:
            raise InputError("y_pred must be like the rows before")
        parts = [*self.waiting, (outcomes, claims)]
        outcomes, claims = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        done = list(self._cut(outcomes, claims))
        rest = slice(len(done) * self.size, None)
        n = self.n + len(parts[-1][0])
        return self._with(n, ((outcomes[rest], claims[rest]),)), done

    def finish(self) -> list[Window]:
        """The rows that are left, as a shorter window; none where none is left."""
        left = [part for part in self.waiting if len(part[0])]
        return [self._window(*part, self.n - len(part[0])) for part in left]

    def _with(self, n: int, waiting: tuple[tuple[np.ndarray, np.ndarray], ...]) -> Self:
        return type(self)(self.size, self.n_resamples, self.seed, n, waiting)

    def _cut(self, outcomes: np.ndarray, claims: np.ndarray) -> Iterator[Window]:
        before = self.n - sum(len(part[0]) for part in self.waiting)
        for start in range(0, len(outcomes) - self.size + 1, self.size):
            rows = slice(start, start + self.size)
            yield self._window(outcomes[rows], claims[rows], before + start)

    def _window(self, outcomes: np.ndarray, claims: np.ndarray, before: int) -> Window:
        predictions, error = _problem(outcomes, claims)
        result = ExactTest(error, self.n_resamples)(outcomes, predictions, rng=[self.seed, before])
        if isinstance(predictions, Quantiles):
            levels = predictions.levels
            claimed, happened = levels[-1] - levels[0], ShareBetween()(outcomes, predictions).value
        elif isinstance(predictions, Uniform):
            claimed, happened = CENTRAL, LevelsWithin(CENTRAL).losses(outcomes, predictions).mean()
        else:
            claimed, happened = claims.mean(), outcomes.mean()
        band = result.null_band()
        last = before + len(outcomes)
        means = float(claimed), float(happened)
        return Window(before + 1, last, *means, result.statistic, band.low, band.high, result.pvalue)


def _seen(targets: Any, predictions: Distribution, seen: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes and claims as plain columns: events and probabilities, labels of a row, or levels that claim nothing more.

    Of quantile forecasts claims are their levels, and outcomes lie between or on them, as they do among the quantiles.
    """
    y = to_numpy(targets)
    if isinstance(predictions, Bernoulli):
        return y, to_numpy(predictions.probs)
    if isinstance(predictions, Categorical):
        if predictions.n_classes == 2:
            return y, to_numpy(predictions.probability(1))
        event = TopLabel().events(predictions)[0]
        return event.happened(targets).astype(np.uint8), event.probability
    if dimensions(predictions):
        return PIT(prerank="average", seed=seed).of(y, predictions), np.zeros((len(predictions), 0))
    if (fan := fan_of(predictions)) is not None:
        first, last = fan.cells_around(y)
        ends = np.concatenate([[0.0], fan.levels, [1.0]])
        place = np.where(first == last, (ends[first] + ends[first + 1]) / 2, ends[(first + last + 1) // 2])
        return place, np.tile(fan.levels, (len(y), 1))
    return levels_by_row(y, predictions, seen, [seed]), np.zeros((len(predictions), 0))


def _problem(outcomes: np.ndarray, claims: np.ndarray) -> tuple[Distribution, BaseEstimator]:
    """The predictions of these claims, and the error that is looked at."""
    if claims.ndim == 1:
        return Categorical(claims), ECE(EqualMass(15))
    if claims.shape[1] and outcomes.ndim == 1:
        return Quantiles(claims, claims[0]), PITError("kuiper")
    if claims.shape[1]:
        return Bernoulli(claims), ECE(EqualMass(15))
    return Uniform(np.zeros(len(claims)), np.ones(len(claims))), PITError("kuiper")
