"""Good enough: a certificate that the calibration error is below a margin."""

import math
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from calibrant._validate import InputError, check_fraction
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.reading.conversion import Classes, as_weighted_problem
from calibrant.estimators.base import as_estimate
from calibrant.estimators.binned.binning import EqualMass
from calibrant.estimators.binned.debiased import DebiasedECE
from calibrant.estimators.binned.ece import ECE
from calibrant.estimators.binned.monotone import MonotoneECE
from calibrant.estimators.forecast_errors.pit_error import PITError
from calibrant.inference.proportions import equal_rows
from calibrant.results import SCHEMA, Estimate, Result, brief, number
from calibrant.typing import ArrayLike

Certifiable: TypeAlias = ECE | DebiasedECE | MonotoneECE | PITError
"""Errors whose upper limits were tried in worlds with errors at the margin."""

INDEPENDENT = "rows are independent"
MONOTONE = "the calibration curve does not fall"
EVEN_CELLS = "true frequencies vary little within a cell"

SMALLEST_PVALUE = 1e-9
"""P-values are not told apart below."""

HALVINGS = 40
"""Steps of the search for a p-value."""


@dataclass(frozen=True, repr=False)
class Certificate(Result):
    """Whether an error is certified to be below a margin, with the limits of the error that say so.

    ``upper`` and ``lower`` are one-sided limits at ``confidence_level`` each, both of the interval of ``estimate``:
    ``certified`` means ``upper < margin``. ``what`` is the error that is meant, ``assumptions`` what the limits rest on. Where
    nothing is certified, ``rows`` are how many would suffice, were the error as it seems; ``None`` where it seems too large.
    """

    margin: float
    upper: float
    lower: float
    confidence_level: float
    n: int
    what: str
    assumptions: tuple[str, ...]
    rows: int | None
    estimate: Estimate

    @property
    def certified(self) -> bool:
        """Whether the error is below the margin, with the given confidence."""
        return self.upper < self.margin

    @property
    def pvalue(self) -> float:
        """Of the hypothesis that the error is at least the margin: small where it is smaller. At most one half is told."""
        low, high = math.log(SMALLEST_PVALUE), math.log(0.5)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            is_below = self.estimate.confidence_interval(1 - 2 * math.exp(middle)).high < self.margin
            low, high = (low, middle) if is_below else (middle, high)
        return math.exp(high)

    def to_row(self) -> dict[str, float]:
        """The numbers alone, as one row of a table of results."""
        return {
            "value": float(self.estimate),
            "low": self.lower,
            "high": self.upper,
            "certified": float(self.certified),
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "schema": SCHEMA,
            "kind": "certificate",
            "certified": self.certified,
            "margin": self.margin,
            "upper": self.upper,
            "lower": self.lower,
            "confidence_level": self.confidence_level,
            "n": self.n,
            "what": self.what,
            "assumptions": list(self.assumptions),
            "rows": self.rows,
            "estimate": self.estimate.to_dict(),
        }

    def _lines(self) -> list[tuple[str, str]]:
        confidence = f"with {100 * self.confidence_level:.4g} % confidence"
        said = f"the error is below {number(self.margin)}" if self.certified else "the error may be larger"
        return [
            (f"certified within {number(self.margin)}", f"{'yes' if self.certified else 'no'}: {said}"),
            ("at most", f"{number(self.upper)} {confidence}"),
            ("at least", f"{number(self.lower)} {confidence}"),
            ("error", self.what),
            ("assumed", "; ".join(self.assumptions)),
            *([] if self.certified else [("rows", self._more())]),
            *([("lens", self.estimate.lens)] if self.estimate.lens else []),
            ("n", f"{self.n:,}"),
            ("estimate", f"{self.estimate.name} = {number(float(self.estimate))}, {brief(self.estimate.estimator)}"),
        ]

    def _more(self) -> str:
        if self.rows is None:
            return f"more would hardly help: the error seems to be above {number(self.margin)}"
        return f"about {_rounded(self.rows - self.n):,} more would suffice, were the error as it seems"


def certify(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    margin: float = 0.02,
    *,
    error: Certifiable | None = None,
    confidence_level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> Certificate:
    """A test whose rejection says that the calibration error is *below* a margin.

    Other tests can only accuse: that they find nothing may be due to too few rows. A certificate is false, for a model whose
    error is the margin or more, in at most ``1 - confidence_level`` of data sets. It rests on the upper limit of the estimate:
    ``estimate.confidence_interval(2 * confidence_level - 1).high < margin``.

    ``error`` says which error is meant. Of classes and labels:

    * ``ECE(EqualMass(10))``, the default: the mean gap over tenths of the rows. Nothing is assumed of the calibration curve.
    * ``DebiasedECE(EqualMass(10))``: the root mean square gap, with a third fewer rows than ``ECE(EqualMass(10), norm=2)``.
    * ``ECE(EqualMass(10), norm=inf)``: the largest gap of any tenth, exactly.
    * ``MonotoneECE()``: the mean error of *every single prediction*, if the calibration curve does not fall.

    Of numbers ``PITError()``, the default: the largest gap between a level and the share of targets below that quantile, exactly.
    A ``lens`` of the error asks for confidences, one class, or all in turn.

    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(12_000)
    >>> y = (rng.random(12_000) < p) * 1
    >>> certify(y, p, 0.02).certified, certify(y, p, 0.01).certified
    (True, False)
    """
    check_fraction(margin, "margin")
    check_fraction(confidence_level, "confidence_level")
    if confidence_level <= 0.5:
        raise InputError(f"confidence_level must be above 0.5, such as 0.95; got {confidence_level!r}")
    targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight, Classes(labels, pos_label))
    settled = _usual(predictions) if error is None else _checked(error)
    _check_rows(equal_rows(weights, len(predictions)), margin, confidence_level)
    estimate = as_estimate(settled, targets, predictions, weights)
    if estimate.limits is None or estimate.withheld is not None:
        reason = (
            estimate.withheld or "none is known for this distance or with sample_weight; PITError() without has one"
        )
        raise InputError(f"error={brief(settled)} has no upper limit to certify: {reason}")
    return of_estimate(estimate, float(margin), float(confidence_level))


def of_estimate(estimate: Estimate, margin: float, confidence_level: float) -> Certificate:
    """The certificate that the interval of an estimate gives."""
    interval = estimate.confidence_interval(2 * confidence_level - 1)
    lower, upper = interval
    return Certificate(
        margin=margin,
        upper=upper,
        lower=lower,
        confidence_level=confidence_level,
        n=estimate.n,
        what=_what(estimate.estimator),
        assumptions=_assumptions(estimate.estimator),
        rows=estimate.n if upper < margin else _suffice(estimate, margin, upper),
        estimate=replace(estimate, interval=interval),  # which it then states, and no other
    )


def _usual(predictions: Distribution) -> Certifiable:
    """The error that is meant where nothing is said."""
    return ECE(EqualMass(10)) if isinstance(predictions, Bernoulli | Categorical) else PITError()


def _checked(error: object) -> Certifiable:
    if isinstance(error, Certifiable):
        return error
    raise InputError(
        f"error must be one whose upper limit was tried at the margin: ECE, DebiasedECE, MonotoneECE or PITError; got {error!r}"
    )


def _check_rows(n: int, margin: float, confidence_level: float) -> None:
    """Refuse rows of which none might be hit by an error of the size of the margin."""
    least = math.ceil(math.log(1 - confidence_level) / math.log1p(-margin) - 1e-9)
    if n < least:
        raise InputError(
            f"no data of {n:,} rows can certify margin={number(margin)}: an event of that chance may not happen once in "
            f"them; give at least {least:,} rows, and many more unless events are rare, or a larger margin"
        )


def _what(error: object) -> str:
    """The error that is certified, in words."""
    if isinstance(error, PITError):
        return "largest gap between a level and the share of targets below that quantile"
    if isinstance(error, MonotoneECE):
        return "mean gap of every single prediction"
    assert isinstance(error, ECE | DebiasedECE)
    size = {1: "mean gap", 2: "root mean square gap"}.get(
        int(error.norm) if np.isfinite(error.norm) else 0, "largest gap"
    )
    return f"{size} of the bins {brief(error.bins)}, each averaged over its rows"


def _assumptions(error: object) -> tuple[str, ...]:
    if isinstance(error, MonotoneECE):
        return INDEPENDENT, MONOTONE
    if isinstance(error, DebiasedECE) and error.norm == 2:
        return INDEPENDENT, EVEN_CELLS
    return (INDEPENDENT,)


def _suffice(estimate: Estimate, margin: float, upper: float) -> int | None:
    """How many rows would do, were the error that which is left of the estimate without noise."""
    seen = min(max(estimate.confidence_interval(1e-6).low, 0.0), upper)
    if seen >= margin:
        return None
    power = 2.5 if isinstance(estimate.estimator, MonotoneECE) else 2.0
    return _rounded(max(math.ceil(estimate.n * ((upper - seen) / (margin - seen)) ** power), estimate.n + 1))


def _rounded(n: int) -> int:
    """To two digits, upwards."""
    unit = 10 ** max(len(str(n)) - 2, 0)
    return -(-n // unit) * unit
