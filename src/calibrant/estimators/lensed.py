"""Estimators that look at predictions through a lens."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self, TypeAlias

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.estimators.base import BaseEstimator, Statistic
from calibrant.estimators.error_limits import ErrorLimits, Slack
from calibrant.lenses import Event, Lens, PositiveClass, default_lens
from calibrant.results import Estimate
from calibrant.typing import Array

Answers: TypeAlias = Callable[[np.ndarray], np.ndarray]
"""Whether an event happened in m redraws of n rows, ``(m, n)``, to the m values of its error."""


@dataclass(frozen=True, eq=False)
class View:
    """What a lens shows of some predictions: the events, and what results call the reduction."""

    lens: Lens
    events: tuple[Event, ...]

    @classmethod
    def of(cls, lens: Lens | None, predictions: Distribution) -> Self:
        """Through the lens, or the default one where there is only one choice."""
        lens = lens or default_lens(predictions)
        return cls(lens, lens.events(predictions))

    @property
    def reduction(self) -> str:
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
        """The estimator with its lens settled, the events, and what results call this reduction."""
        view = View.of(self.lens, predictions)
        return replace(self, lens=view.lens), view.events, view.reduction  # type: ignore[type-var]

    def reduce(self, targets: Array, predictions: Distribution) -> tuple[Self, Array, Distribution]:
        """A single event leaves a binary problem, whatever the number of classes."""
        view = View.of(self.lens, predictions)
        if len(view.events) > 1:
            return self, targets, predictions
        return replace(self, lens=PositiveClass()), *view.lens(targets, predictions)  # type: ignore[type-var]


class MeanOverEvents(LensedEstimator):
    """An estimator whose value is the mean of one number an event; subclasses write :meth:`errors`."""

    name: str

    @abstractmethod
    def errors(self, scores: np.ndarray, weights: np.ndarray | None) -> Answers:
        """The error of an event as a function of what happened; what depends on scores alone is done once."""

    def slack(self, scores: np.ndarray, happened: np.ndarray, weights: np.ndarray | None, value: float) -> Slack | None:
        """How far the error of an event may lie from the truth; ``None`` where that is not known."""
        return None

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The mean over events, with its limits."""
        view = View.of(self.lens, predictions)
        values, slacks = [], []
        for event in view.events:
            scores, happened = event.probability.astype(np.float64), event.happened(to_numpy(targets)[None])
            values.append(self.errors(scores, weights)(happened))
            slacks.append(self.slack(scores, happened[0].astype(np.float64), weights, float(values[-1][0])))
        value = float(np.mean(values, axis=0)[0])
        settled: object = replace(self, lens=view.lens)  # type: ignore[type-var]
        known = tuple(slack for slack in slacks if slack is not None)
        limits = ErrorLimits(value, known, most=self.most) if len(known) == len(slacks) else None
        return Estimate(self.name, value, len(predictions), settled, view.reduction, limits=limits)

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """Scores are sorted, cut or transformed once for all redraws."""
        _, events, _ = self.look(predictions)
        return _MeanError(tuple((e, self.errors(e.probability.astype(np.float64), weights)) for e in events))


@dataclass(frozen=True, eq=False)
class _MeanError:
    events: tuple[tuple[Event, Answers], ...]

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        return np.mean([errors(event.happened(targets)) for event, errors in self.events], axis=0)
