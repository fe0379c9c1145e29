"""What calls return: frozen values that turn into a number, a dictionary, or something worth reading."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from html import escape
from typing import Any

import numpy as np

SCHEMA = "calibrant/1"
"""Written into every ``to_dict()``; the number grows when a reader of the JSON would have to change."""


def number(x: float) -> str:
    """A number as people read it: four significant digits, thousands grouped."""
    x = float(x)
    if not math.isfinite(x):
        return {math.inf: "∞", -math.inf: "-∞"}.get(x, "NaN")
    if x.is_integer() and abs(x) < 1e15:
        return f"{int(x):,}"
    return f"{x:,.1f}" if abs(x) >= 1000 else f"{x:.4g}"


def percent(x: float) -> str:
    """A share in percent, with three significant digits where it is small.

    >>> percent(0.4567), percent(0.0414), percent(0.000523)
    ('45.7 %', '4.14 %', '0.0523 %')
    """
    return f"{100 * x:.1f} %" if not 0 < abs(x) < 0.0995 else f"{100 * x:.3g} %"


def brief(x: object) -> str:
    """Settings as people read them: what differs from the defaults, and a leading number; six digits of it.

    >>> from calibrant import ECE, EqualMass
    >>> brief(ECE(EqualMass(10)))
    'ECE(bins=EqualMass(n_bins=10))'
    """
    if is_dataclass(x) and not isinstance(x, type):
        values = [(f, getattr(x, f.name)) for f in fields(x)]
        said = [
            f"{f.name}={brief(value)}"
            for i, (f, value) in enumerate(values)
            if not _is_default(value, f.default) or (i == 0 and isinstance(value, int | float))
        ]
        return f"{type(x).__name__}({', '.join(said)})"
    if isinstance(x, tuple):
        return f"({', '.join(map(brief, x))}{',' if len(x) == 1 else ''})"
    return f"{x:.6g}" if isinstance(x, float) else repr(x)


def _is_default(value: object, default: object) -> bool:
    return type(value) is type(default) and bool(value == default)


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"the level must lie strictly between 0 and 1; got {level!r}")


def jsonable(x: object) -> Any:
    """``x`` in JSON's own types; numbers JSON lacks (NaN, infinity) become their names."""
    if isinstance(x, np.ndarray):
        return [jsonable(v) for v in x.tolist()]
    if isinstance(x, np.generic):
        return jsonable(x.item())
    if isinstance(x, float) and not math.isfinite(x):
        return str(x)
    if isinstance(x, Mapping):
        return {str(k): jsonable(v) for k, v in x.items()}
    if isinstance(x, list | tuple):
        return [jsonable(v) for v in x]
    if hasattr(x, "to_dict"):
        return jsonable(x.to_dict())
    return x if x is None or isinstance(x, str | int | float | bool) else repr(x)


class Result:
    """What all results share: JSON, and a display in notebooks made of their readable lines."""

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

    def _repr_html_(self) -> str:
        (title, headline), *rest = self._lines()
        rows = "".join(f"<tr><th style='text-align:left'>{escape(a)}</th><td>{escape(b)}</td></tr>" for a, b in rest)
        return f"<table><caption><b>{escape(title)} = {escape(headline)}</b></caption>{rows}</table>"


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

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"low": self.low, "high": self.high, "level": self.level, "method": self.method}


class Table(Mapping[str, np.ndarray]):
    """Named columns of equal length; ``pandas.DataFrame(dict(table))`` and the like take it from there.

    >>> Table(group=["a", "b"], n=[10, 12])
    group   n
    a      10
    b      12
    """

    __hash__ = None  # type: ignore[assignment]  # columns are arrays

    def __init__(self, columns: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        self._columns = {k: np.asarray(v) for k, v in {**(columns or {}), **more}.items()}
        lengths = {len(v) for v in self._columns.values()}
        if len(lengths) > 1:
            raise ValueError(f"columns have different lengths: {sorted(lengths)}")
        self._length = lengths.pop() if lengths else 0

    def __getitem__(self, name: str) -> np.ndarray:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def n_rows(self) -> int:
        """How many rows there are (``len`` counts columns, as of any mapping)."""
        return self._length

    def rows(self) -> Iterator[dict[str, Any]]:
        """Each row as a dictionary."""
        names = list(self)
        return (dict(zip(names, row, strict=True)) for row in zip(*self._columns.values(), strict=True))

    def to_dict(self) -> dict[str, list[Any]]:
        """Plain lists, one a column."""
        return {name: column.tolist() for name, column in self._columns.items()}

    def __repr__(self) -> str:
        cells = [[name, *map(_cell, column)] for name, column in self._columns.items()]
        widths = [max(map(len, column)) for column in cells]
        left = [column.dtype.kind not in "fiu" for column in self._columns.values()]
        return "\n".join(
            "  ".join(
                t.ljust(w) if is_left else t.rjust(w) for t, w, is_left in zip(row, widths, left, strict=True)
            ).rstrip()
            for row in zip(*cells, strict=True)
        )


def _cell(value: object) -> str:
    return number(float(value)) if isinstance(value, np.integer | np.floating) else str(value)


@dataclass(frozen=True, repr=False)
class Estimate(Result):
    """A number with what is needed to believe it.

    ``value`` is the estimate, ``n`` the rows it came from, ``estimator`` the resolved settings (its ``repr`` makes it
    again), ``reduction`` the question asked of multi-class predictions, ``table`` the bins or slices behind it, ``route``
    how expectations under the predictions were computed, ``notes`` what a reader must know.
    ``standard_error`` and ``interval`` are there when the estimator knows them; :class:`calibrant.Bootstrap` gives an
    interval to any estimator, :class:`calibrant.ExactTest` the band a calibrated model would show.
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

    def __float__(self) -> float:
        return float(self.value)

    def confidence_interval(self, confidence_level: float = 0.95) -> Interval:
        """The interval at this level: the one found, or the normal one from the standard error."""
        _check_level(confidence_level)
        if self.interval is not None and self.interval.level == confidence_level:
            return self.interval
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
        return {
            "schema": SCHEMA,
            "kind": "estimate",
            "name": self.name,
            "value": float(self),
            "n": self.n,
            "estimator": repr(self.estimator),
            "reduction": self.reduction,
            "standard_error": self.standard_error,
            "interval": None if self.interval is None else self.interval.to_dict(),
            "table": None if self.table is None else self.table.to_dict(),
            "route": self.route,
            "notes": list(self.notes),
        }

    def _lines(self) -> list[tuple[str, str]]:
        lines = [(self.name, number(float(self)))]
        if self.interval is not None:
            lines.append((f"{self.interval.level:.4g} interval", f"{self.interval} ({self.interval.method})"))
        elif self.standard_error is not None:
            lines.append(("standard error", number(self.standard_error)))
        if self.reduction is not None:
            lines.append(("reduction", self.reduction))
        if self.route is not None:
            lines.append(("route", self.route))
        lines += [("note", note) for note in self.notes]
        return [*lines, ("n", f"{self.n:,}"), ("estimator", brief(self.estimator))]


@dataclass(frozen=True, repr=False)
class TestResult(Result):
    """The outcome of a test that the predictions are calibrated.

    ``pvalue`` is small when they are not. ``null_distribution`` holds the statistic under calibrated redraws, so
    ``null_band()`` says what an honest model with these very predictions would show; tests that redraw nothing have none.
    ``notes`` say what a reader must know.
    """

    __test__ = False  # not a test case, whatever the name says to pytest

    statistic: float
    pvalue: float
    n: int
    test: object
    estimate: Estimate
    null_distribution: np.ndarray | None = field(default=None, compare=False)
    notes: tuple[str, ...] = ()

    def __float__(self) -> float:
        return self.pvalue

    def null_band(self, level: float = 0.95) -> Interval:
        """The central range of the statistic were the model calibrated."""
        _check_level(level)
        if self.null_distribution is None:
            raise ValueError(f"{self.test!r} redraws no targets, so there is no band: ExactTest has one")
        tail = (1 - level) / 2
        low, high = np.quantile(self.null_distribution, [tail, 1 - tail], method="inverted_cdf")
        return Interval(float(low), float(high), level, "calibrated redraws")

    def _statistic_lines(self) -> list[tuple[str, str]]:
        """The estimate, and the statistic where it is another number."""
        estimate = float(self.estimate)
        if self.statistic == estimate:
            return [("statistic", f"{self.estimate.name} = {number(estimate)}")]
        return [("statistic", number(self.statistic)), ("estimate", f"{self.estimate.name} = {number(estimate)}")]

    def to_row(self) -> dict[str, float]:
        """The numbers alone, as one row of a table of results."""
        low, high = (np.nan, np.nan) if self.null_distribution is None else self.null_band()
        return {"value": self.statistic, "null_low": low, "null_high": high, "pvalue": self.pvalue}

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON; the draws are summarised by their band."""
        return {
            "schema": SCHEMA,
            "kind": "test",
            "statistic": self.statistic,
            "pvalue": self.pvalue,
            "n": self.n,
            "test": repr(self.test),
            "estimate": self.estimate.to_dict(),
            "null_band": None if self.null_distribution is None else self.null_band().to_dict(),
            "n_resamples": None if self.null_distribution is None else len(self.null_distribution),
            "notes": list(self.notes),
        }

    def _lines(self) -> list[tuple[str, str]]:
        null = self.null_distribution
        return [
            ("p-value", number(self.pvalue)),
            *self._statistic_lines(),
            *([] if null is None else [("if calibrated", f"{self.null_band()} (95 % of {len(null):,} redraws)")]),
            *([("reduction", self.estimate.reduction)] if self.estimate.reduction else []),
            *(("note", note) for note in self.notes),
            ("n", f"{self.n:,}"),
            ("test", brief(self.test)),
        ]
