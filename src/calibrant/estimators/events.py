"""Estimators that look at yes-or-no events one by one, and how they find them."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from calibrant.distributions.base import Distribution
from calibrant.estimators.lensed import LensedEstimator, View
from calibrant.lenses import Lens
from calibrant.results import Estimate, Interval, Table
from calibrant.typing import Array


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
    def of_event(self, scores: np.ndarray, happened: np.ndarray, weights: np.ndarray | None) -> OfEvent:
        """The number of one event: scores, zeros and ones in double precision, ``(n,)``."""

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The number of the event, or the mean over events."""
        view = View.of(self.lens, predictions)
        found = [
            self.of_event(e.probability.astype(np.float64), e.happened(targets).astype(np.float64), weights)
            for e in view.events
        ]
        return self.assembled(found, [e.name for e in view.events], view.lens, view.reduction, len(predictions))

    def assembled(
        self, found: list[OfEvent], names: list[str], lens: Lens | None, reduction: str | None, n: int
    ) -> Estimate:
        """The estimate from those of the events."""
        resolved: Any = replace(self, lens=lens)  # type: ignore[type-var]
        if len(found) > 1:
            return self._averaged(found, names, resolved, reduction, n)
        (one,) = found
        return Estimate(
            name=self.name,
            value=one.value,
            n=n,
            estimator=replace(resolved, **one.settings),
            reduction=reduction,
            standard_error=one.standard_error,
            interval=one.interval,
            notes=one.notes,
            limits=one.limits,
        )

    def _averaged(
        self, found: list[OfEvent], names: list[str], resolved: object, reduction: str | None, n: int
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
        return Estimate(self.name, mean, n, resolved, reduction, table=Table(columns), notes=notes)
