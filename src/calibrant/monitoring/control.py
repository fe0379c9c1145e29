"""Windows of a stream beside what a calibrated model would show, and where and when it goes wrong."""

import itertools
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import gammaincinv, ndtri

from calibrant._array import to_numpy
from calibrant._validate import InputError, check_count, check_fraction
from calibrant.distributions.base import Distribution
from calibrant.distributions.continuous.finite_interval import Uniform
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.empirical.quantiles import Quantiles, fan_of
from calibrant.distributions.multivariate import dimensions
from calibrant.distributions.reading.conversion import Classes, as_problem
from calibrant.estimators.base import BaseEstimator
from calibrant.estimators.binned.binning import EqualMass
from calibrant.estimators.binned.ece import ECE
from calibrant.estimators.forecast_errors.pit import PIT, usual_prerank
from calibrant.estimators.forecast_errors.pit_error import CentralCoverage, PITError
from calibrant.estimators.forecast_errors.quantile_cells import ShareBetween
from calibrant.inference.exact_tests.exact_test import ExactTest
from calibrant.inference.proportions import Band
from calibrant.inference.reliability_curve import outward, resampled_sums
from calibrant.lenses.class_lenses import PositiveClass, TopLabel
from calibrant.monitoring.bets import ClassBets
from calibrant.monitoring.history import CUTS, LEVELS, Cut, EventSums, EventTally, History, PITSums, PITTally
from calibrant.monitoring.monitor import Monitor
from calibrant.monitoring.pit_bets import pit_by_row
from calibrant.results import Table
from calibrant.typing import ArrayLike

CENTRAL = 0.9
"""Forecasts claim that so much of the outcomes lies in their central intervals of this level."""


@dataclass(frozen=True)
class Window:
    """Rows ``first`` to ``last`` of a stream, counted from 1: mean claim, mean outcome, the calibration error, what a
    calibrated model would show, and the p-value of the exact test in this window alone.

    >>> window = Window(1, 100, predicted=0.5, observed=0.45, error=0.05, null_low=0.0, null_high=0.1, pvalue=0.4)
    >>> window.last - window.first + 1, window.error < window.null_high
    (100, True)
    """

    first: int
    last: int
    predicted: float
    observed: float
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
    window is tested by itself, ``n_resamples`` resamples: of twenty windows of a calibrated model one has a p-value below
    5 %, so that alarms are left to :class:`Monitor`.

    >>> windows = Windows(size=3)
    >>> for y_true, y_pred in [([1, 0], [0.9, 0.2]), ([1, 1], [0.7, 0.6])]:
    ...     windows, done = windows.update(y_true, y_pred)
    >>> done[0].first, done[0].last, round(done[0].predicted, 3), round(done[0].observed, 3)
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

    def update(
        self, y_true: ArrayLike, y_pred: ArrayLike, *, labels: ArrayLike | None = None, pos_label: Any = None
    ) -> tuple[Self, list[Window]]:
        """After these rows too, and the windows that they complete."""
        outcomes, claims = _seen(
            *as_problem(y_true, y_pred, Classes(labels, pos_label), in_parts=True), self.n, self.seed
        )
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
            predicted, observed = levels[-1] - levels[0], ShareBetween()(outcomes, predictions).value
        elif isinstance(predictions, Uniform):
            predicted, observed = CENTRAL, CentralCoverage(CENTRAL).losses(outcomes, predictions).mean()
        else:
            predicted, observed = claims.mean(), outcomes.mean()
        band = result.null_band()
        last = before + len(outcomes)
        means = float(predicted), float(observed)
        return Window(before + 1, last, *means, result.statistic, band.low, band.high, result.pvalue)


def _seen(targets: Any, predictions: Distribution, seen: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes and claims as plain columns: events and probabilities, labels of a row, or PIT values that claim nothing more.

    Of quantile forecasts claims are their levels, and outcomes lie between or on them, as they do among the quantiles.
    """
    y = to_numpy(targets)
    if isinstance(predictions, Bernoulli):
        return y, to_numpy(predictions.probs)
    if isinstance(predictions, Categorical):
        if predictions.n_classes == 2:
            event = PositiveClass().events(predictions)[0]
            return event.observed(y).astype(np.uint8), event.probability
        event = TopLabel().events(predictions)[0]
        return event.observed(targets).astype(np.uint8), event.probability
    if dimensions(predictions):
        return PIT(prerank=usual_prerank(predictions), seed=seed).of(y, predictions), np.zeros((len(predictions), 0))
    if (fan := fan_of(predictions)) is not None:
        first, last = fan.cells_around(y)
        ends = np.concatenate([[0.0], fan.levels, [1.0]])
        place = np.where(first == last, (ends[first] + ends[first + 1]) / 2, ends[(first + last + 1) // 2])
        return place, np.tile(fan.levels, (len(y), 1))
    return pit_by_row(y, predictions, seen, [seed]), np.zeros((len(predictions), 0))


def _problem(outcomes: np.ndarray, claims: np.ndarray) -> tuple[Distribution, BaseEstimator]:
    """The predictions of these claims, and the error that is looked at."""
    if claims.ndim == 1:
        return Categorical(claims), ECE(EqualMass(15))
    if claims.shape[1] and outcomes.ndim == 1:
        return Quantiles(claims, claims[0]), PITError("kuiper")
    if claims.shape[1]:
        return Bernoulli(claims), ECE(EqualMass(15))
    return Uniform(np.zeros(len(claims)), np.ones(len(claims))), PITError("kuiper")


WORK = 8_000_000
"""Resampled sums that far limits may cost beyond what was asked for."""

SLACK = 1e-9
"""What rounding may do."""


@dataclass(frozen=True)
class Limits:
    """Limits of windows: ``low`` to ``high`` hold a calibrated model in each window by itself with chance ``level``, ``lowest``
    to ``highest`` in all windows at once, and in both measures of a chart.

    Of events, both come from ``n_resamples`` resamples of the outcomes, given the claims, by the sums that are kept of them
    (:func:`~calibrant.inference.reliability_curve.resampled_sums`); the wider ones are those of the largest standardised value of
    all windows, what may leave them being shared evenly by all measures and groups that can be shown. Of PIT values they are exact:
    normal scores have normal means and chi-square variances.
    None of these raises an alarm: that is left to :class:`~calibrant.Monitor`.
    """

    level: float = 0.95
    n_resamples: int = 999
    seed: int = 0

    def __post_init__(self) -> None:
        check_fraction(self.level, "level")
        check_count(self.n_resamples, "n_resamples", least=99)

    def tables(self, history: History, group: int = 0, single: int | None = None) -> dict[str, Table]:
        """Of events ``gap`` and ``error``, of forecasts ``bias`` and ``spread``: a row per window.

        They are those of one label or coordinate, where there are several; of several classes, the ``gap`` may be that of a
        ``single`` one. The wider limits hold whichever was chosen, and however.
        """
        cut, tally = history.windows, history.tally
        if isinstance(tally, PITTally):
            sums = PITSums(*(part[:, group] for part in tally.by_group(cut.values)))
            return self.of_pit(sums, cut, len(tally.groups))
        assert isinstance(tally, EventTally)
        parts = tally.by_part(cut.values).at((slice(None), group))
        one = parts if single is None else tally.by_class(cut.values).at((slice(None), slice(single, single + 1)))
        choices = len(tally.groups) + len(tally.classes)
        return {"gap": self._gap(cut, one, choices), "error": self._error(cut, parts, len(tally.groups))}

    def _gap(self, cut: Cut, parts: EventSums, choices: int) -> Table:
        """The mean claim less the mean outcome, from sums ``(windows, parts)``."""
        sums = parts.over(1)
        drawn = self.resample(parts, 2 * choices).sum(axis=2) / sums.rows
        table = _table(cut, sums.gap / sums.rows, *self.bands(drawn, choices=2 * choices))
        return Table({**table, "claimed": sums.predicted / sums.rows, "happened": sums.observed / sums.rows})

    def _error(self, cut: Cut, parts: EventSums, choices: int) -> Table:
        """The mean over parts of the distance of claims and outcomes."""
        rows = parts.rows.sum(axis=1)
        drawn = np.abs(self.resample(parts, 2 * choices)).sum(axis=2) / rows
        value = np.abs(parts.gap).sum(axis=1) / rows
        return _table(cut, value, *self.bands(drawn, is_error=True, choices=2 * choices))

    def resample(self, sums: EventSums, choices: int = 1) -> np.ndarray:
        """Claims less outcomes that are drawn anew, ``(n_resamples, ...)``; more often where many choices ask for far limits."""
        rng, wanted = np.random.default_rng([self.seed, 1]), round(choices / (1 - self.level))
        draws = max(self.n_resamples, min(wanted, WORK // max(sums.rows.size, 1)))
        return sums.predicted - resampled_sums(sums.predicted, sums.noise, sums.skew, draws, rng)

    def bands(self, drawn: np.ndarray, *, is_error: bool = False, choices: int = 1) -> tuple[Band, Band]:
        """What resamples ``(n_resamples, m)`` hold, each by itself and all at once; errors are not less than zero.

        Of several ``choices``, measures that are looked at or groups that may be, each may leave the wider ones with its part of
        the chance.
        """
        inner = outward(drawn, (1 - self.level) / 2)
        middle = drawn.mean(axis=0) if is_error else np.zeros(drawn.shape[1])
        scale = np.sqrt(np.mean((drawn - middle) ** 2, axis=0))
        standard = (drawn - middle) / np.where(scale > 0, scale, 1.0)
        largest = (standard if is_error else np.abs(standard)).max(axis=1, initial=0.0)
        far = float(np.quantile(largest, 1 - (1 - self.level) / choices, method="higher"))
        least = np.zeros_like(middle) if is_error else middle - far * scale
        return inner, (np.minimum(least, inner[0]), np.maximum(middle + far * scale, inner[1]))

    def of_pit(self, sums: PITSums, cut: Cut | None = None, choices: int = 1) -> dict[str, Table]:
        """The mean of the normal scores, and their standard deviation, of one row nothing: by window, or by whatever else."""
        rows, windows = sums.rows, max(len(sums.rows), 1)
        mean = sums.scores / rows
        free = np.where(rows > 1, rows - 1, np.nan)
        spread = np.sqrt(np.maximum(sums.squares - rows * mean**2, 0) / free)
        tails = [(1 - level) / 2 for level in (self.level, self.level ** (0.5 / windows / choices))]
        far = [-ndtri(tail) / np.sqrt(rows) for tail in tails]
        bias = _table(cut, mean, *((-end, end) for end in far))
        ends = [tuple(np.sqrt(2 * gammaincinv(free / 2, t) / free) for t in (tail, 1 - tail)) for tail in tails]
        return {"bias": bias, "spread": _table(cut, spread, *ends)}


def _table(cut: Cut | None, value: np.ndarray, inner: Band, outer: Band) -> Table:
    beyond = (value < outer[0] - SLACK) | (value > outer[1] + SLACK)
    rows = {} if cut is None else {"first": cut.first, "last": cut.last}
    return Table(
        rows,
        value=value,
        low=inner[0],
        high=inner[1],
        lowest=outer[0],
        highest=outer[1],
        beyond=beyond,
    )


def strongest_class(monitor: Monitor) -> int | None:
    """The class that the alarm is about, ``None`` where it is about no single one."""
    if monitor.alarm is None or not isinstance(monitor.bets, ClassBets):
        return None
    return monitor.alarm.defect.member


def strongest_group(monitor: Monitor) -> int:
    """Which label or coordinate the alarm is about, or without one the strongest bet; 0 where all is one."""
    found = monitor.alarm or monitor.leaning
    if found is None or isinstance(monitor.bets, ClassBets):
        return 0
    return found.defect.member or 0


COLUMNS = 34
"""Windows side by side at most; more are put together."""

PLACES = 20
"""Places that are shown at most, those that stand out most."""

DRIFT_WORK = 4_000_000
"""Resampled sums that marks may cost before they make do with fewer resamples."""


class DriftPlaces(NamedTuple):
    """What is looked at by itself: names, and sums of rows, claims less outcomes and their variance, ``(windows, places)``, with
    resamples of the claims less outcomes, ``(resamples, windows, places)``."""

    names: tuple[str, ...]
    rows: np.ndarray
    gap: np.ndarray
    noise: np.ndarray
    drawn: np.ndarray


def drift(history: History, limits: Limits, group: int = 0) -> Table:
    """Claims less outcomes in every place and window: a row per cell, place by place.

    ``score`` is the gap in units of its spread if calibrated, one row's worth added, so that single surprises where nothing was
    expected do not drown the rest. ``beyond`` marks those larger than the largest of all cells is in ``level`` of resamples: a
    calibrated stream has no mark with that chance. Places are parts of the range of probabilities; classes or labels, where there
    are several; of forecasts tenths of the PIT values.
    """
    cut = history.windows
    starts = np.arange(0, len(cut.last), max(1, -(-len(cut.last) // COLUMNS)))
    values = np.add.reduceat(cut.values, starts)
    last = cut.last[np.append(starts[1:] - 1, len(cut.last) - 1)]
    if isinstance(history.tally, PITTally):
        places = _pit_tenths(history.tally, values, limits, group)
    else:
        assert isinstance(history.tally, EventTally)
        places = _events(history.tally, values, limits)
    spread = np.sqrt(places.noise + 1)
    score = places.gap / spread
    largest = np.abs(places.drawn / spread).max(axis=(1, 2))
    choices = len(history.tally.groups) if isinstance(history.tally, PITTally) else 1
    far = float(np.quantile(largest, 1 - (1 - limits.level) / choices, method="higher"))
    order = _shown(score)
    return Table(
        place=np.repeat(np.array(places.names, dtype=object)[order], len(starts)),
        first=np.tile(cut.first[starts], len(order)),
        last=np.tile(last, len(order)),
        rows=places.rows.T[order].ravel(),
        gap=(places.gap / np.where(places.rows > 0, places.rows, np.nan)).T[order].ravel(),
        score=np.where(places.rows > 0, score, np.nan).T[order].ravel(),
        beyond=(np.abs(score) > far + SLACK).T[order].ravel(),
    )


def noun_of(history: History) -> str:
    """What places are called."""
    if isinstance(history.tally, PITTally):
        return "level"
    assert isinstance(history.tally, EventTally)
    return "class" if history.tally.classes else "label" if len(history.tally.groups) > 1 else "claim"


def _events(tally: EventTally, values: np.ndarray, limits: Limits) -> DriftPlaces:
    """Of classes or labels, else of parts that have rows, the highest first."""
    parts = tally.by_part(values)
    names: tuple[str, ...]
    if tally.classes:
        sums, names = tally.by_class(values), tally.classes
    elif len(tally.groups) > 1:
        sums, names = parts.over(-1), tally.groups
    else:
        held = np.flatnonzero(parts.rows[:, 0].sum(axis=0))[::-1]
        ends = [*itertools.pairwise((0.0, *CUTS, 1.0))]
        sums = EventSums(*(part[:, 0][:, held] for part in parts))
        names = tuple(f"{100 * ends[i][0]:g} to {100 * ends[i][1]:g} %" for i in held)
    return DriftPlaces(names, sums.rows, sums.gap, sums.noise, _fewer(limits, sums.rows.size).resample(sums))


def _pit_tenths(tally: PITTally, values: np.ndarray, limits: Limits, group: int) -> DriftPlaces:
    """Tenths of the PIT values, the highest first; outcomes that are there too often were claimed too little."""
    counts = tally.by_group(values).counts[:, group].reshape(len(values), LEVELS // 2, 2).sum(axis=2)[:, ::-1]
    rows, share = counts.sum(axis=1, keepdims=True), 2 / LEVELS
    rng, draws = np.random.default_rng([limits.seed, 2]), _fewer(limits, counts.size).n_resamples
    even = np.full(LEVELS // 2, share)
    drawn = rng.multinomial(rows[:, 0].astype(np.int64), even, (draws, len(rows)))
    names = tuple(f"{100 * i * share:.0f} to {100 * (i + 1) * share:.0f} %" for i in range(LEVELS // 2))[::-1]
    noise = np.broadcast_to(rows * share * (1 - share), counts.shape)
    return DriftPlaces(names, np.broadcast_to(rows, counts.shape), share * rows - counts, noise, share * rows - drawn)


def _fewer(limits: Limits, cells: int) -> Limits:
    """Resamples that so many cells can afford."""
    return Limits(limits.level, max(99, min(limits.n_resamples, DRIFT_WORK // max(cells, 1))), limits.seed)


def _shown(score: np.ndarray) -> np.ndarray:
    """All places in their order, or those with the largest scores."""
    largest = np.abs(score).max(axis=0)
    return np.sort(np.argsort(-largest, kind="stable")[:PLACES])
