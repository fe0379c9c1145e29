"""An estimate: a number with what is needed to believe it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from calibrant.results.base import Result
from calibrant.results.interval import Interval, check_level
from calibrant.results.plain import SCHEMA
from calibrant.results.table import Table
from calibrant.results.words import brief, number

USUAL_LEVEL = 0.95
"""The confidence level of intervals where none is asked for."""


@dataclass(frozen=True, repr=False)
class Estimate(Result):
    """A number with what is needed to believe it.

    ``value`` is the estimate, ``n`` the rows it came from, ``estimator`` the resolved settings (its ``repr`` makes it
    again), ``reduction`` the question asked of multi-class predictions, ``table`` the bins or slices behind it, ``route``
    how expectations under the predictions were computed, ``notes`` what a reader must know.
    ``standard_error`` and ``interval`` are there when the estimator knows them and they hold; ``limits`` gives the interval
    at any level where it is more than the value and so many standard errors. ``withheld`` says why there is no interval where
    one might be expected. :class:`calibrant.Bootstrap` gives an interval to estimators that resampling of rows suits,
    :class:`calibrant.ExactTest` the band a calibrated model would show.
    """

    name: str
    value: Any
    n: int
    estimator: object
    reduction: str | None = None
    standard_error: float | None = None
    interval: Interval | None = None
    table: Table | None = field(default=None, compare=False)
    route: str | None = None
    notes: tuple[str, ...] = ()
    withheld: str | None = None
    limits: Callable[[float], Interval] | None = field(default=None, compare=False)

    def __float__(self) -> float:
        return float(self.value)

    @property
    def has_interval(self) -> bool:
        """Whether :meth:`confidence_interval` gives one at 95 %."""
        if self.interval is not None and self.interval.level == USUAL_LEVEL:
            return True
        return self.withheld is None and not (self.limits is None and self.standard_error is None)

    def confidence_interval(self, confidence_level: float = USUAL_LEVEL) -> Interval:
        """The interval at this level: the one found, the one its limits give, or the normal one from the standard error."""
        check_level(confidence_level)
        if self.interval is not None and self.interval.level == confidence_level:
            return self.interval
        if self.withheld is not None:
            raise ValueError(f"this {self.name} has no interval: {self.withheld}")
        if self.limits is not None:
            return self.limits(confidence_level)
        if self.standard_error is None and (reason := getattr(self.estimator, "resampling", None)) is not None:
            raise ValueError(
                f"this {self.name} has no interval: none is known, and the bootstrap does not suit it: {reason}"
            )
        if self.standard_error is None:
            raise ValueError(
                f"this {self.name} carries no standard error: Bootstrap({self.estimator!r}, "
                f"confidence_level={confidence_level})(y_true, y_pred) gives it an interval"
            )
        from scipy.special import ndtri

        half = float(ndtri((1 + confidence_level) / 2)) * self.standard_error
        return Interval(float(self) - half, float(self) + half, confidence_level, "normal")

    def to_row(self) -> dict[str, float]:
        """The numbers alone, as one row of a table of results."""
        limits = {} if self.interval is None else {"low": self.interval.low, "high": self.interval.high}
        return {"value": float(self), **limits}

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        found = self.interval
        if found is None and self.limits is not None and self.withheld is None:
            found = self.limits(USUAL_LEVEL)
        return {
            "schema": SCHEMA,
            "kind": "estimate",
            "name": self.name,
            "value": float(self),
            "n": self.n,
            "estimator": repr(self.estimator),
            "reduction": self.reduction,
            "standard_error": self.standard_error,
            "interval": None if found is None else found.to_dict(),
            "table": None if self.table is None else self.table.to_dict(),
            "route": self.route,
            "notes": list(self.notes),
            "withheld": self.withheld,
        }

    def _lines(self) -> list[tuple[str, str]]:
        lines = [(self.name, number(float(self)))]
        if self.interval is not None:
            lines.append((f"{self.interval.level:.4g} interval", f"{self.interval} ({self.interval.method})"))
        elif self.standard_error is not None:
            lines.append(("standard error", number(self.standard_error)))
        if self.withheld is not None:
            lines.append(("interval", f"none: {self.withheld}"))
        if self.reduction is not None:
            lines.append(("reduction", self.reduction))
        if self.route is not None:
            lines.append(("route", self.route))
        lines += [("note", note) for note in self.notes]
        return [*lines, ("n", f"{self.n:,}"), ("estimator", brief(self.estimator))]
