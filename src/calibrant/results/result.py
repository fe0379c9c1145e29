"""What calls return: estimates with their intervals, outcomes of tests, and findings."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from numbers import Real
from operator import ge, gt, le, lt
from typing import Any

import numpy as np

from calibrant.results import text as markup
from calibrant.results.table import Table
from calibrant.results.text import brief, number


class Finding(StrEnum):
    """What is wrong with predictions, or that nothing is: the one word of a verdict, for programs.

    Members are texts, too, so that they compare with plain ones and go into JSON as they are.

    >>> Finding.TOO_HIGH == "too high", f"they are {Finding.TOO_HIGH}", Finding("local")
    (True, 'they are too high', 'local')
    """

    NONE = "none"
    TOO_FEW_ROWS = "too few rows"
    OVER_CONFIDENT = "over-confident"
    UNDER_CONFIDENT = "under-confident"
    TOO_HIGH = "too high"
    TOO_LOW = "too low"
    TOO_NARROW = "too narrow"
    TOO_WIDE = "too wide"
    CLASS = "class"
    LABEL = "label"
    LOCAL = "local"
    SLICE = "slice"
    MIXED = "mixed"

    def __repr__(self) -> str:
        return repr(self.value)

    @property
    def is_alarm(self) -> bool:
        """Whether something is wrong."""
        return self not in (Finding.NONE, Finding.TOO_FEW_ROWS)

    @property
    def is_of_confidence(self) -> bool:
        """Whether predictions are too sure or too timid."""
        return self in (Finding.OVER_CONFIDENT, Finding.UNDER_CONFIDENT)

    @property
    def is_of_height(self) -> bool:
        """Whether predictions are too high or too low."""
        return self in (Finding.TOO_HIGH, Finding.TOO_LOW)


SCHEMA = "calibrant/1"
"""Written into every ``to_dict()``; the number grows when a reader of the JSON would have to change."""


def jsonable(x: object) -> Any:
    """``x`` in JSON's own types; numbers JSON lacks (NaN, infinity) become their names.

    >>> import math
    >>> jsonable({"a": math.nan, "b": (1, 2)})
    {'a': 'nan', 'b': [1, 2]}
    """
    if isinstance(x, np.ndarray):
        return [jsonable(v) for v in x.tolist()]
    if isinstance(x, np.generic):
        plain = x.item()
        return repr(plain) if isinstance(plain, np.generic) else jsonable(plain)
    if isinstance(x, float) and not math.isfinite(x):
        return str(x)
    if isinstance(x, Mapping):
        return {str(k): jsonable(v) for k, v in x.items()}
    if isinstance(x, list | tuple):
        return [jsonable(v) for v in x]
    if hasattr(x, "to_dict"):
        return jsonable(x.to_dict())
    return x if x is None or isinstance(x, str | int | float | bool) else repr(x)


def plain_data(x: Any, *names: str) -> dict[str, Any]:
    """Fields of a dataclass, or those named, in that order: values by their own ``to_dict``, tuples as lists.

    >>> plain_data(Interval(0.1, 0.2, 0.95, "bootstrap"), "low", "high")
    {'low': 0.1, 'high': 0.2}
    """
    return {name: _plain(getattr(x, name)) for name in names or [f.name for f in fields(x)]}


def _plain(value: Any) -> Any:
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


class Result:
    """What all results share: JSON, and displays in notebooks and comments made of their readable lines."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        raise NotImplementedError

    def to_json(self, *, indent: int | None = 2) -> str:
        """The dictionary as JSON text."""
        return json.dumps(jsonable(self.to_dict()), indent=indent, ensure_ascii=False, allow_nan=False)

    def _lines(self) -> list[tuple[str, str]]:
        raise NotImplementedError

    def __repr__(self) -> str:
        (title, headline), *rest = self._lines()
        width = max((len(label) for label, _ in rest), default=0)
        return "\n".join([f"{title} = {headline}", *(f"  {label:<{width}}  {text}" for label, text in rest)])

    def to_markdown(self) -> str:
        """The lines in GitHub's Markdown, for a comment on a pull request."""
        (title, headline), *rest = self._lines()
        cells = [[markup.escaped(label), markup.escaped(text, longest=400)] for label, text in rest]
        head = f"**{markup.escaped(title)} = {markup.escaped(headline, longest=400)}**"
        return f"{head}\n\n{markup.table(['', ''], cells, [False, False])}" if cells else head

    def _repr_html_(self) -> str:
        (title, headline), *rest = self._lines()
        return markup.card(title, headline, rest)


class Measured(Result):
    """A result that stands for one number, ``float(result)``: it is formatted, rounded and compared as that number is.

    >>> from calibrant import Brier
    >>> result = Brier()([1, 0], [0.5, 0.7])
    >>> f"{result:.3f}, {result:.1%}", round(result, 2), result > 0.3
    ('0.370, 37.0%', 0.37, True)
    >>> np.mean([result, 0.63])
    np.float64(0.5)
    """

    def __float__(self) -> float:
        raise NotImplementedError

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else str(self)

    def __round__(self, digits: int | None = None) -> float:
        return round(float(self), digits)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(float(self), dtype=dtype)

    def _against(self, other: object, compare: Callable[[float, float], bool]) -> bool:
        if isinstance(other, Real) or type(other) is type(self):
            return compare(float(self), float(other))
        return NotImplemented

    def __lt__(self, other: object) -> bool:
        return self._against(other, lt)

    def __le__(self, other: object) -> bool:
        return self._against(other, le)

    def __gt__(self, other: object) -> bool:
        return self._against(other, gt)

    def __ge__(self, other: object) -> bool:
        return self._against(other, ge)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Real):
            return float(self) == float(other)
        if type(other) is not type(self):
            return NotImplemented
        compared = [f.name for f in fields(self) if f.compare]  # type: ignore[arg-type]  # subclasses are dataclasses
        return tuple(getattr(self, name) for name in compared) == tuple(getattr(other, name) for name in compared)

    def __hash__(self) -> int:
        return hash(float(self))


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
        return plain_data(self)


def check_level(level: float) -> None:
    """A confidence level is a share between none and all."""
    if not isinstance(level, Real) or not 0 < level < 1:
        raise ValueError(f"the level must lie strictly between 0 and 1; got {level!r}")


USUAL_LEVEL = 0.95
"""The confidence level of intervals where none is asked for."""


@dataclass(frozen=True, repr=False, eq=False)
class Estimate(Measured):
    """A number with what is needed to believe it.

    ``value`` is the estimate, ``n`` the rows it came from, ``estimator`` the resolved settings (its ``repr`` makes it
    again), ``lens`` the question asked of multi-class predictions, ``table`` the bins or slices behind it, ``route``
    how expectations under the predictions were computed and by which loop over pairs of rows, ``notes`` what a reader must know.
    ``standard_error`` and ``interval`` are there when the estimator knows them and they hold; ``limits`` gives the interval
    at any level where it is more than the value and so many standard errors. ``withheld`` says why there is no interval where
    one might be expected. :class:`calibrant.Bootstrap` gives an interval to estimators that resampling of rows suits,
    :class:`calibrant.ExactTest` the band a calibrated model would show.

    >>> from calibrant import Brier
    >>> estimate = Brier()([0, 1, 1], [0.2, 0.7, 0.9])
    >>> round(estimate.value, 4), estimate.n
    (0.0467, 3)
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
            **plain_data(self, "lens", "standard_error", "interval", "table", "route", "notes", "withheld"),
            "interval": None if found is None else found.to_dict(),
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


@dataclass(frozen=True, repr=False, eq=False)
class TestResult(Measured):
    """The outcome of a test that the predictions are calibrated.

    ``pvalue`` is small when they are not. ``null_distribution`` holds the statistic under calibrated resamples, so
    ``null_band()`` says what an honest model with these very predictions would show; tests whose law is for large n have none.
    ``notes`` say what a reader must know. As a number it is its p-value: ``result < 0.05``.

    >>> from calibrant import ECE, ExactTest
    >>> result = ExactTest(ECE())([0, 1] * 50, [0.1, 0.9] * 50)
    >>> result.statistic == result.estimate.value, result.pvalue < 0.05
    (True, True)
    """

    __test__ = False  # not a test case, whatever the name says to pytest

    statistic: float
    pvalue: float
    n: int
    test: object
    estimate: Estimate
    null_distribution: np.ndarray | None = field(default=None, compare=False)
    notes: tuple[str, ...] = ()
    has_band: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        if self.null_distribution is None:
            object.__setattr__(self, "has_band", False)

    def __float__(self) -> float:
        return self.pvalue

    def null_band(self, level: float = 0.95) -> Interval:
        """The central range of the statistic were the model calibrated."""
        check_level(level)
        if self.null_distribution is None or not self.has_band:
            raise ValueError(f"{self.test!r} has no band of one statistic: ExactTest has one")
        return central_band(self.null_distribution, level)

    def _statistic_lines(self) -> list[tuple[str, str]]:
        """The estimate, and the statistic where it is another number."""
        estimate = float(self.estimate)
        if self.statistic == estimate:
            return [("statistic", f"{self.estimate.name} = {number(estimate)}")]
        return [("statistic", number(self.statistic)), ("estimate", f"{self.estimate.name} = {number(estimate)}")]

    def to_row(self) -> dict[str, float]:
        """The numbers alone, as one row of a table of results."""
        low, high = self.null_band() if self.has_band else (np.nan, np.nan)
        return {"value": self.statistic, "null_low": low, "null_high": high, "pvalue": self.pvalue}

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON; the draws are summarised by their band."""
        return {
            "schema": SCHEMA,
            "kind": "test",
            **plain_data(self, "statistic", "pvalue", "n"),
            "test": repr(self.test),
            "estimate": self.estimate.to_dict(),
            "null_band": self.null_band().to_dict() if self.has_band else None,
            "n_resamples": None if self.null_distribution is None else len(self.null_distribution),
            "notes": list(self.notes),
        }

    def _lines(self) -> list[tuple[str, str]]:
        drawn = () if self.null_distribution is None else self.null_distribution
        return [
            ("p-value", number(self.pvalue)),
            *self._statistic_lines(),
            *([("if calibrated", f"{self.null_band()} (95 % of {len(drawn):,} resamples)")] if self.has_band else []),
            *([("lens", self.estimate.lens)] if self.estimate.lens else []),
            *(("note", note) for note in self.notes),
            ("n", f"{self.n:,}"),
            ("test", brief(self.test)),
        ]


def central_band(resampled: np.ndarray, level: float) -> Interval:
    """The central range of resampled statistics that one more draw lies in with at least this probability.

    Of M resamples it ends at the ``floor((M + 1) tail)``-th from either end, as the new one is as likely in every gap.

    >>> list(central_band(np.arange(1.0, 100.0), 0.95))
    [2.0, 98.0]
    """
    ordered = np.sort(resampled)
    k = max(1, math.floor((len(ordered) + 1) * (1 - level) / 2 + 1e-9))
    return Interval(float(ordered[k - 1]), float(ordered[-k]), level, "calibrated resamples")
