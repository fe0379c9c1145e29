"""Good enough: a certificate that the calibration error is below a margin."""

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from calibrant._clusters import refuse_clusters
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
from calibrant.estimators.limits import ErrorLimits
from calibrant.inference.proportions import equal_rows
from calibrant.results import SCHEMA, Estimate, Interval, Result, brief, number, percent
from calibrant.typing import ArrayLike

Certifiable: TypeAlias = ECE | DebiasedECE | MonotoneECE | PITError
"""Errors whose upper limits were tried in worlds with errors at the margin."""

INDEPENDENT = "rows are independent"
MONOTONE = "the calibration curve does not fall"
EVEN_CELLS = "true frequencies vary little within a cell"

NO_LIMIT = "no upper limit is known to hold where rows depend on each other; take one row of each cluster"
"""The remedy where rows belong together."""

SMALLEST_PVALUE = 1e-9
"""P-values are not told apart below."""

HALVINGS = 40
"""Steps of the search for a p-value."""


DEPENDENT = "errors of rows are alike, and limits are for independent rows"
"""Why there are no limits where rows look dependent."""


@dataclass(frozen=True, repr=False)
class Certificate(Result):
    """Whether an error is certified to be below a margin, with the limits of the error that say so.

    ``upper`` and ``lower`` are one-sided limits at ``confidence_level`` each, both of the interval of ``estimate``:
    ``certified`` means ``upper < margin``. ``what`` is the error that is meant, ``assumptions`` what the limits rest on. Where
    nothing is certified, ``rows`` are how many would suffice in four of five data sets: if the model is calibrated, which is
    possible where ``lower`` is 0, else were the error as it seems; ``None`` where it seems too large. Fewer rows than
    ``fewest`` certify nothing, whatever they show, and neither do rows that ``look_dependent``: limits are of independent ones.
    """

    margin: float
    upper: float
    lower: float
    confidence_level: float
    n: int
    what: str
    assumptions: tuple[str, ...]
    rows: int | None
    fewest: int
    estimate: Estimate
    look_dependent: bool = False

    @property
    def certified(self) -> bool:
        """Whether the error is below the margin, with the given confidence."""
        return self.upper < self.margin and self.n >= self.fewest and not self.look_dependent

    @property
    def more_rows(self) -> int | None:
        """How many more would suffice, to two digits; none where it is certified, ``None`` where it seems too large."""
        return None if self.rows is None or self.look_dependent else _rounded(self.rows - self.n)

    @property
    def pvalue(self) -> float:
        """Of the hypothesis that the error is at least the margin: small where it is smaller. At most one half is told.

        Not a number where rows look dependent.
        """
        if self.look_dependent:
            return math.nan
        low, high = math.log(SMALLEST_PVALUE), math.log(0.5)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            is_below = self.estimate.confidence_interval(1 - 2 * math.exp(middle)).high < self.margin
            low, high = (low, middle) if is_below else (middle, high)
        return math.exp(high)

    def sentence(self, error: str = "the error") -> str:
        """What it says of an error of this name: whether, by which limit and, where not, how many more rows would suffice.

        >>> found = certify([0, 1] * 3000, [0.5] * 6000, 0.05)
        >>> found.sentence("the calibration error")
        'Certified to within 5 points: the calibration error is at most 1.51 % (upper end of its 90 % interval).'
        """
        margin, limit = points(self.margin), f"upper end of its {100 * (2 * self.confidence_level - 1):.4g} % interval"
        if self.certified:
            return f"Certified to within {margin}: {error} is at most {percent(self.upper)} ({limit})."
        if self.look_dependent:
            return f"Not certified to within {margin}: {DEPENDENT}."
        said = f"Not certified to within {margin}: {error} may be as large as {percent(self.upper)} ({limit})"
        if self.lower >= self.margin:
            return f"{said}, and it is at least {percent(self.lower)}."
        if self.more_rows is None:
            return f"{said}; more rows would hardly help, as it seems to be above {margin}."
        return f"{said}; about {self.more_rows:,} more rows would suffice {self._for_whom()}."

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
            "fewest": self.fewest,
            "look_dependent": self.look_dependent,
            "estimate": self.estimate.to_dict(),
        }

    def _lines(self) -> list[tuple[str, str]]:
        confidence = f"with {100 * self.confidence_level:.4g} % confidence"
        said = f"the error is below {number(self.margin)}" if self.certified else "the error may be larger"
        limits = [("at most", f"{number(self.upper)} {confidence}"), ("at least", f"{number(self.lower)} {confidence}")]
        more = [] if self.certified else [("rows", self._more())]
        return [
            (f"certified within {number(self.margin)}", f"{'yes' if self.certified else 'no'}: {said}"),
            *([("withheld", DEPENDENT)] if self.look_dependent else limits),
            ("error", self.what),
            ("assumed", "; ".join(self.assumptions)),
            *([] if self.look_dependent else more),
            *([("lens", self.estimate.lens)] if self.estimate.lens else []),
            ("n", f"{self.n:,}"),
            ("estimate", f"{self.estimate.name} = {number(float(self.estimate))}, {brief(self.estimate.estimator)}"),
        ]

    def _more(self) -> str:
        if self.more_rows is None:
            return f"more would hardly help: the error seems to be above {number(self.margin)}"
        return f"about {self.more_rows:,} more would suffice {self._for_whom()}"

    def _for_whom(self) -> str:
        return "for a calibrated model" if self.lower == 0 else "for an error as large as it seems"


def points(margin: float) -> str:
    """A margin in percentage points.

    >>> points(0.02), points(0.01), points(0.0025)
    ('2 points', '1 point', '0.25 points')
    """
    text = f"{100 * margin:.4g}"
    return f"{text} point" if text == "1" else f"{text} points"


def certify(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    margin: float = 0.02,
    *,
    error: Certifiable | None = None,
    confidence_level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
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

    Of numbers ``PITError()``, the default: the largest gap between a level and the share of targets below that quantile, exactly;
    or ``PITError("kuiper")``: that between what any prediction interval promises and the share of targets in it.
    A ``lens`` of the error asks for confidences, one class, or all in turn.

    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(12_000)
    >>> y = (rng.random(12_000) < p) * 1
    >>> certify(y, p, 0.02).certified, certify(y, p, 0.01).certified
    (True, False)
    """
    refuse_clusters(certify, clusters, NO_LIMIT)
    check_margin(margin, "margin")
    check_fraction(confidence_level, "confidence_level")
    if confidence_level <= 0.5:
        raise InputError(f"confidence_level must be above 0.5, such as 0.95; got {confidence_level!r}")
    targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight, Classes(labels, pos_label))
    settled = _usual(predictions) if error is None else _checked(error)
    _check_rows(equal_rows(weights, len(predictions)), margin, confidence_level)
    estimate = as_estimate(settled, targets, predictions, weights)
    return of_estimate(estimate, float(margin), float(confidence_level), weights)


AS_SHOWN = 0.975
"""The confidence of the upper end of a 95 % interval: what shows that interval certifies by it, and states no second limit."""


def of_estimate(
    estimate: Estimate, margin: float, confidence_level: float = AS_SHOWN, weights: np.ndarray | None = None
) -> Certificate:
    """The certificate that the interval of an estimate gives; of too few rows, one that certifies nothing.

    >>> estimate = ECE(EqualMass(15))([0, 1] * 500, [0.5] * 1000)
    >>> found = of_estimate(estimate, 0.05)
    >>> found.certified, found.upper == estimate.confidence_interval(0.95).high
    (True, True)
    """
    if estimate.limits is None or estimate.withheld is not None:
        reason = (
            estimate.withheld or "none is known for this distance or with sample_weight; PITError() without has one"
        )
        raise InputError(f"error={brief(estimate.estimator)} has no upper limit to certify: {reason}")
    interval = estimate.confidence_interval(2 * confidence_level - 1)
    lower, upper = interval
    fewest = _fewest(margin, confidence_level)
    if weights is not None:  # rows of different weights tell as much as fewer
        fewest = math.ceil(fewest * estimate.n / equal_rows(weights, estimate.n))
    is_certified = upper < margin and estimate.n >= fewest
    return Certificate(
        margin=margin,
        upper=upper,
        lower=lower,
        confidence_level=confidence_level,
        n=estimate.n,
        what=_what(estimate.estimator),
        assumptions=_assumptions(estimate.estimator),
        rows=estimate.n if is_certified else _suffice(estimate, margin, interval, fewest),
        fewest=fewest,
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


MIN_MARGIN = 1e-9
"""Margins below this take more rows than there are."""


def check_margin(margin: float, name: str) -> None:
    """Refuse a margin that is no share, such as one in points."""
    if not isinstance(margin, Real) or not 0 < margin < 1:
        raise InputError(f"{name} must lie strictly between 0 and 1, such as 0.02 for 2 points; got {margin!r}")
    if margin < MIN_MARGIN:
        raise InputError(f"{name} must be at least {MIN_MARGIN:g}, as no data certify less; got {margin!r}")


def _check_rows(n: int, margin: float, confidence_level: float) -> None:
    """Refuse rows of which none might be hit by an error of the size of the margin."""
    least = _fewest(margin, confidence_level)
    if n < least:
        raise InputError(
            f"no data of {n:,} rows can certify margin={number(margin)}: an event of that chance may not happen once in "
            f"them; give at least {least:,} rows, and many more unless events are rare, or a larger margin"
        )


def _fewest(margin: float, confidence_level: float) -> int:
    """Rows below which an event of the chance of the margin may not happen once."""
    return math.ceil(math.log(1 - confidence_level) / math.log1p(-margin) - 1e-9)


def _what(error: object) -> str:
    """The error that is certified, in words."""
    if isinstance(error, PITError) and error.distance == "kuiper":
        return "largest gap between what a prediction interval promises and the share of targets in it"
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


FOUR_OF_FIVE = 1.4
"""Times as many rows certify four of five calibrated data sets as one of two, by limits that do not tell the noise of the error."""


def _suffice(estimate: Estimate, margin: float, interval: Interval, fewest: int) -> int | None:
    """How many rows certify four of five data sets, were there no error, or that which is left of the estimate without noise."""
    seen = max(estimate.confidence_interval(1e-6).low, 0.0)
    for error in (0.0, seen) if interval.low == 0 else (seen,):
        if error >= margin:
            return None
        rows = rows_needed(estimate, margin - error, interval)
        if rows > estimate.n:
            return max(rows, fewest)
    return max(_rounded(estimate.n + 1), fewest)


def rows_needed(estimate: Estimate, margin: float, interval: Interval) -> int:
    """How many rows like these certify the margin for four of five data sets of a calibrated model: noise falls as ``1/sqrt(n)``.

    ``interval`` is that of the estimate whose upper end certifies.
    """
    assert isinstance(estimate.limits, ErrorLimits)
    error, tail = estimate.estimator, (1 - interval.level) / 2
    power = 2.5 if isinstance(error, MonotoneECE) else 2.0
    is_told = isinstance(error, PITError | MonotoneECE) or (isinstance(error, ECE) and error.norm == 1)
    noise = estimate.limits.if_calibrated(tail)
    return _rounded(math.ceil((1.0 if is_told else FOUR_OF_FIVE) * estimate.n * (noise / margin) ** power))


def _rounded(n: int) -> int:
    """To two digits, upwards."""
    unit = 10 ** max(len(str(n)) - 2, 0)
    return -(-n // unit) * unit
