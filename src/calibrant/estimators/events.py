"""Estimators of yes-or-no events, which look at predictions through a lens."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.estimators.base import BaseEstimator, Statistic
from calibrant.estimators.limits import ErrorLimits, Slack
from calibrant.lenses.class_lenses import Event, Lens, PositiveClass, default_lens
from calibrant.results import Estimate, Interval, Table
from calibrant.typing import Array

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
    """An estimator whose value is the mean of one number an event; subclasses write :meth:`errors`."""

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


class EventEstimator(LensedEstimator):
    """An estimator of one number an event; several events are averaged, and the table has each.

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
