"""An estimate: a number with what is needed to believe it, such as its interval."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from calibrant.results import markup
from calibrant.results.base import SCHEMA, Result
from calibrant.results.table import Table
from calibrant.results.words import brief, number


@dataclass(frozen=True)
class Interval:
    """A range with the confidence it holds and how it was found.

    >>> low, high = Interval(0.1, 0.2, 0.95, "bootstrap")
    >>> low, high
    (0.1, 0.2)
    """

    low: float
    high: float
    level: float
    method: str

    def __iter__(self) -> Iterator[float]:
        return iter((self.low, self.high))

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def __str__(self) -> str:
        return f"{number(self.low)} to {number(self.high)}"

    def _repr_html_(self) -> str:
        return markup.card(f"{100 * self.level:.4g} % interval", str(self), [("found by", self.method)])

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"low": self.low, "high": self.high, "level": self.level, "method": self.method}


def check_level(level: float) -> None:
    """A confidence level is a share between none and all."""
    if not 0 < level < 1:
        raise ValueError(f"the level must lie strictly between 0 and 1; got {level!r}")


USUAL_LEVEL = 0.95
"""The confidence level of intervals where none is asked for."""


@dataclass(frozen=True, repr=False)
class Estimate(Result):
    """A number with what is needed to believe it.

    ``value`` is the estimate, ``n`` the rows it came from, ``estimator`` the resolved settings (its ``repr`` makes it
    again), ``lens`` the question asked of multi-class predictions, ``table`` the bins or slices behind it, ``route``
    how expectations under the predictions were computed and by which loop over pairs of rows, ``notes`` what a reader must know.
    ``standard_error`` and ``interval`` are there when the estimator knows them and they hold; ``limits`` gives the interval
    at any level where it is more than the value and so many standard errors. ``withheld`` says why there is no interval where
    one might be expected. :class:`calibrant.Bootstrap` gives an interval to estimators that resampling of rows suits,
    :class:`calibrant.ExactTest` the band a calibrated model would show.
    """

    name: str
    value: Any
    n: int
    estimator: object
    lens: str | None = None
    standard_error: float | None = None
    interval: Interval | None = None
    table: Table | None = field(default=None, compare=False)
    route: str | None = field(default=None, compare=False)
    notes: tuple[str, ...] = ()
    withheld: str | None = None
    limits: Callable[[float], Interval] | None = field(default=None, compare=False)

    def __float__(self) -> float:
        value = self.value.detach() if hasattr(self.value, "detach") else self.value  # a tensor with its gradient
        return float(value)

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
            "lens": self.lens,
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
        if self.lens is not None:
            lines.append(("lens", self.lens))
        if self.route is not None:
            lines.append(("route", self.route))
        lines += [("note", note) for note in self.notes]
        return [*lines, ("n", f"{self.n:,}"), ("estimator", brief(self.estimator))]
