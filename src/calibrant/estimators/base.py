"""What estimators share: the checked call, the statistic once the predictions are fixed, and the lens on yes-or-no events."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from calibrant._array import to_numpy
from calibrant._clusters import Clusters
from calibrant._compiled.choice import Account, accounted
from calibrant._spellings import Settings
from calibrant._tasks import mapping
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.empirical.quantiles import Quantiles
from calibrant.distributions.reading.conversion import Classes, as_clustered_problem
from calibrant.estimators.limits import ErrorLimits, Slack
from calibrant.estimators.signs import BY_BOOTSTRAP, WITHHELD, no_signs, without_limits
from calibrant.lenses.class_lenses import Event, Lens, PositiveClass, default_lens
from calibrant.results import Estimate, Interval, Table
from calibrant.typing import Array, ArrayLike, Engine

Statistic: TypeAlias = Callable[[np.ndarray], np.ndarray]
"""Targets of m resamples, ``(m, n, ...)``, to the m values of a statistic."""


SINGLE = "every row is a cluster of its own: rows are taken as independent"
"""What is said where clusters make no difference."""

DECISIONS = (
    "y_pred holds nothing but 0 and 1: decisions, not probabilities, so that nothing says how sure the model was"
)
"""What is said of predictions that take no risk."""

LINES = "rests on straight lines between the quantiles, which were not forecast"
"""What is said of numbers that need whole distributions, where quantiles alone were forecast."""


class BaseEstimator(Settings, ABC):
    """A frozen value with the settings of an estimator; calling it checks the input and does the work.

    Subclasses are frozen dataclasses that write :meth:`estimate`. Those that can reuse work between resamples of the
    targets also write :meth:`given`, which is all a test needs to be fast.
    """

    least: ClassVar[float] = -np.inf
    """The smallest value the estimator can take."""

    most: ClassVar[float] = np.inf
    """The largest."""

    rests_on_levels: ClassVar[bool] = False
    """Whether of quantile forecasts it uses nothing but between which of them a target lies, so that it can be tested."""

    reads_quantiles: ClassVar[bool] = False
    """Whether it uses quantiles at the levels that it is asked for, and nothing between them."""

    resampling: ClassVar[str | None] = (
        "resampled rows repeat, and an error that is no mean over rows takes the repetition for miscalibration"
    )
    """Why resampling of rows gives no interval that holds; ``None`` for smooth functions of means over rows, which it suits."""

    bias_cancels: ClassVar[bool] = False
    """Whether what bias it has is the same for two models alike, so that resamples show how far these lie apart."""

    def __call__(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        clusters: ArrayLike | None = None,
        engine: Engine | None = None,
    ) -> Estimate:
        """Estimate from targets and predictions, truth first; what costs more than reading the rows is done by the engine.

        ``clusters`` has one label per row: rows with the same label may depend on each other in any way.
        """
        if engine is not None:
            mapping(engine)  # refuses what is none, also where there is no use for one
        targets, predictions, weights, groups = as_clustered_problem(
            y_true, y_pred, sample_weight, clusters, Classes(labels, pos_label)
        )
        found = as_estimate(self, targets, predictions, weights, engine, groups)
        if isinstance(predictions, Categorical) and predictions.are_decisions:
            found = replace(found, notes=(*found.notes, DECISIONS))
        has_lines = isinstance(predictions, Quantiles) and not predictions.is_joined
        if not has_lines or self.rests_on_levels or self.reads_quantiles:
            return found
        return replace(found, notes=(*found.notes, LINES))

    def estimate_by(
        self, engine: Engine | None, targets: Array, predictions: Distribution, weights: np.ndarray | None
    ) -> Estimate:
        """The estimate of a checked problem by an engine, which those that look at all pairs of rows have use for."""
        return self.estimate(targets, predictions, weights)

    def of_clusters(
        self, targets: Array, predictions: Distribution, weights: np.ndarray | None, clusters: Clusters
    ) -> Estimate:
        """The estimate of a checked problem whose rows belong together; by default without standard error and interval."""
        found = self.estimate(targets, predictions, weights)
        return without_limits(found, WITHHELD if self.resampling is not None else BY_BOOTSTRAP)

    def affordable_with_signs(
        self, predictions: Distribution, n_resamples: int, budget: float, clusters: Clusters
    ) -> "BaseEstimator":
        """An estimator of the same quantity whose values under signs of clusters stay within so many multiplications."""
        return self

    def with_signs(
        self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None, clusters: Clusters
    ) -> Statistic:
        """The statistic as a function of signs of clusters ``(m, C)``; all ones are what was observed."""
        raise no_signs(self)

    @abstractmethod
    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The estimate of a checked problem."""

    def reduce(self, targets: Array, predictions: Distribution) -> tuple[Self, Array, Distribution]:
        """The same value from the smallest problem that determines it; resamples then cost less."""
        return self, targets, predictions

    def affordable(self, predictions: Distribution, n_resamples: int, budget: float) -> "BaseEstimator":
        """An estimator of the same quantity whose resamples stay within so many multiplications; this one where it does."""
        return self

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """The statistic as a function of the targets alone."""
        return EachDraw(self, predictions, weights)


def _told(estimate: Estimate, account: Account) -> Estimate:
    """The estimate with more notes, each once, and by which loops it was computed."""
    more = tuple(note for note in account.notes if note not in estimate.notes)
    if not more and not account.loops:
        return estimate
    route = "; ".join([*([] if estimate.route is None else [estimate.route]), *account.loops])
    return replace(estimate, notes=(*estimate.notes, *more), route=route or None)


def as_estimate(
    estimator: Callable[..., Any],
    targets: Array,
    predictions: Distribution,
    weights: np.ndarray | None,
    engine: Engine | None = None,
    clusters: Clusters | None = None,
) -> Estimate:
    """The estimate of any callable; a bare number is wrapped."""
    if isinstance(estimator, BaseEstimator):
        with accounted() as account:
            if clusters is None or clusters.are_single_rows:
                estimate = estimator.estimate_by(engine, targets, predictions, weights)
            else:
                estimate = estimator.of_clusters(targets, predictions, weights, clusters)
        told = _told(estimate, account)
        return told if clusters is None or not clusters.are_single_rows else replace(told, notes=(*told.notes, SINGLE))
    value = estimator(targets, predictions, **({} if weights is None else {"sample_weight": weights}))
    if isinstance(value, Estimate):
        return value
    try:
        return Estimate(getattr(estimator, "__name__", "statistic"), float(value), len(predictions), estimator)
    except (TypeError, ValueError) as error:
        raise InputError(f"estimator must give a number; {estimator!r} gave a {type(value).__name__}") from error


@dataclass(frozen=True, eq=False)
class EachDraw:
    """The statistic of any estimator, one call a resample: always right, never fast."""

    estimator: Callable[..., Any]
    predictions: Distribution
    weights: np.ndarray | None

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """The statistic of each resample, ``(m,)``."""
        return np.array([float(as_estimate(self.estimator, y, self.predictions, self.weights)) for y in targets])


Answers: TypeAlias = Callable[[np.ndarray], np.ndarray]
"""Whether an event happened in m resamples of n rows, ``(m, n)``, to the m values of its error."""


@dataclass(frozen=True, eq=False)
class View:
    """What a lens shows of some predictions: the events, and the name of the lens."""

    lens: Lens
    events: tuple[Event, ...]

    @classmethod
    def of(cls, lens: Lens | None, predictions: Distribution) -> Self:
        """Through the lens, or the default one where there is only one choice."""
        lens = lens or default_lens(predictions)
        return cls(lens, lens.events(predictions))

    @property
    def name(self) -> str:
        """The lens in words, with the class it asks about."""
        name = self.lens.name
        return f"{name} ({self.events[0].name})" if isinstance(self.lens, PositiveClass) else name

    def only(self, asker: object) -> Event:
        """The one event there is; several are refused in the name of who asked."""
        if len(self.events) == 1:
            return self.events[0]
        raise InputError(
            f"{type(asker).__name__} tests one event and {self.lens!r} has {len(self.events)}: use lens=TopLabel() or "
            "lens=PositiveClass(label), give each label by itself, or use ExactTest(ECE()) for all at once"
        )


def check_lens(lens: Lens | None) -> None:
    """Refuse a setting that is not a lens."""
    if lens is not None and not isinstance(lens, Lens):
        raise InputError(f"lens must be a lens such as TopLabel(); got {lens!r}")


class LensedEstimator(BaseEstimator):
    """An estimator of events: those of its field ``lens``, or of the lens that needs no choice."""

    lens: Lens | None

    def __post_init__(self) -> None:
        check_lens(self.lens)

    def look(self, predictions: Distribution) -> tuple[Self, tuple[Event, ...], str]:
        """The estimator with its lens settled, the events, and the name of the lens."""
        view = View.of(self.lens, predictions)
        return replace(self, lens=view.lens), view.events, view.name  # type: ignore[type-var]

    def reduce(self, targets: Array, predictions: Distribution) -> tuple[Self, Array, Distribution]:
        """A single event leaves a binary problem, whatever the number of classes."""
        view = View.of(self.lens, predictions)
        if len(view.events) > 1:
            return self, targets, predictions
        return replace(self, lens=PositiveClass()), *view.events[0].problem(targets)  # type: ignore[type-var]


class MeanOverEvents(LensedEstimator):
    """An estimator whose value is the mean of one number per event; subclasses write :meth:`errors`."""

    name: str

    @abstractmethod
    def errors(self, scores: np.ndarray, weights: np.ndarray | None) -> Answers:
        """The error of an event as a function of what happened; what depends on scores alone is done once."""

    def slack(self, scores: np.ndarray, observed: np.ndarray, weights: np.ndarray | None, value: float) -> Slack | None:
        """How far the error of an event may lie from the truth; ``None`` where that is not known."""
        return None

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The mean over events, with its limits."""
        view = View.of(self.lens, predictions)
        values, slacks = [], []
        for event in view.events:
            scores, observed = event.probability.astype(np.float64), event.observed(to_numpy(targets)[None])
            values.append(self.errors(scores, weights)(observed))
            slacks.append(self.slack(scores, observed[0].astype(np.float64), weights, float(values[-1][0])))
        value = float(np.mean(values, axis=0)[0])
        settled: object = replace(self, lens=view.lens)  # type: ignore[type-var]
        known = tuple(slack for slack in slacks if slack is not None)
        limits = ErrorLimits(value, known, most=self.most) if len(known) == len(slacks) else None
        return Estimate(self.name, value, len(predictions), settled, view.name, limits=limits)

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """Scores are sorted, cut or transformed once for all resamples."""
        _, events, _ = self.look(predictions)
        return _MeanError(tuple((e, self.errors(e.probability.astype(np.float64), weights)) for e in events))


@dataclass(frozen=True, eq=False)
class _MeanError:
    events: tuple[tuple[Event, Answers], ...]

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        return np.mean([errors(event.observed(targets)) for event, errors in self.events], axis=0)


@dataclass(frozen=True, eq=False)
class OfEvent:
    """The estimate from one event; ``settings`` are those that the data resolved."""

    value: float
    standard_error: float | None = None
    interval: Interval | None = None
    notes: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    limits: Callable[[float], Interval] | None = None
    withheld: str | None = None


class EventEstimator(LensedEstimator):
    """An estimator of one number per event; several events are averaged, and the table has each.

    Subclasses are frozen dataclasses with a field ``lens`` that write :meth:`of_event`.
    """

    signed: ClassVar[bool] = False
    """Whether values of several events can make up for each other."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What results call the number."""

    @abstractmethod
    def of_event(self, scores: np.ndarray, observed: np.ndarray, weights: np.ndarray | None) -> OfEvent:
        """The number of one event: scores, zeros and ones in double precision, ``(n,)``."""

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The number of the event, or the mean over events."""
        view = View.of(self.lens, predictions)
        found = [
            self.of_event(e.probability.astype(np.float64), e.observed(targets).astype(np.float64), weights)
            for e in view.events
        ]
        return self.assembled(found, [e.name for e in view.events], view.lens, view.name, len(predictions))

    def assembled(
        self, found: list[OfEvent], names: list[str], lens: Lens | None, lens_name: str | None, n: int
    ) -> Estimate:
        """The estimate from those of the events."""
        resolved: Any = replace(self, lens=lens)  # type: ignore[type-var]
        if len(found) > 1:
            return self._averaged(found, names, resolved, lens_name, n)
        (one,) = found
        return Estimate(
            name=self.name,
            value=one.value,
            n=n,
            estimator=replace(resolved, **one.settings),
            lens=lens_name,
            standard_error=one.standard_error,
            interval=one.interval,
            notes=one.notes,
            limits=one.limits,
            withheld=one.withheld,
        )

    def _averaged(
        self, found: list[OfEvent], names: list[str], resolved: object, lens_name: str | None, n: int
    ) -> Estimate:
        values = np.array([one.value for one in found])
        errors = [one.standard_error for one in found]
        with np.errstate(invalid="ignore"):  # infinities of both signs have no mean
            mean = float(values.mean())
        columns: dict[str, Any] = {"event": names, "value": values}
        if any(error is not None for error in errors):
            columns["standard_error"] = [np.nan if error is None else error for error in errors]
        notes = tuple(dict.fromkeys(note for one in found for note in one.notes))
        if self.signed:
            notes = (f"mean over {len(found)} events, whose errors may cancel: the table has each", *notes)
        return Estimate(self.name, mean, n, resolved, lens_name, table=Table(columns), notes=notes)
