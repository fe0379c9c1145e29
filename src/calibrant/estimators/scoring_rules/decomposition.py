"""A score taken apart: how much of it is miscalibration, how much the forecasts tell, how much was there to tell."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import xlog1py, xlogy

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.reading.conversion import Classes, as_weighted_problem
from calibrant.estimators.base import View, check_lens
from calibrant.estimators.simplex.kde import TangentKDE
from calibrant.estimators.simplex.local import Question, questions
from calibrant.estimators.smooth.fitted_curves import IsotonicCurve
from calibrant.lenses.class_lenses import Lens
from calibrant.results import Table, how_many, number
from calibrant.results.result import SCHEMA, Result, plain_data
from calibrant.typing import ArrayLike


@dataclass(frozen=True, repr=False)
class Decomposition(Result):
    """A mean score S as ``miscalibration - discrimination + uncertainty``.

    ``name`` says which score and ``lens`` of what; ``table`` has the parts of each event where there are several,
    ``notes`` what a reader must know.

    >>> from calibrant.estimators import decompose
    >>> parts = decompose([0, 1, 1, 0] * 10, [0.2, 0.7, 0.7, 0.2] * 10)
    >>> abs(parts.score - (parts.miscalibration - parts.discrimination + parts.uncertainty)) < 1e-12
    True
    """

    name: str
    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    n: int
    lens: str
    table: Table | None = field(default=None, compare=False)
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {"schema": SCHEMA, "kind": "decomposition", **plain_data(self)}

    def _lines(self) -> list[tuple[str, str]]:
        return [
            (self.name, number(self.score)),
            ("miscalibration", number(self.miscalibration)),
            ("- discrimination", number(self.discrimination)),
            ("+ uncertainty", number(self.uncertainty)),
            ("lens", self.lens),
            *(("note", note) for note in self.notes),
            ("n", f"{self.n:,}"),
        ]


def decompose(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    score: Literal["brier", "log"] = "brier",
    lens: Lens | None = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> Decomposition:
    """Miscalibration, discrimination and uncertainty of the Brier score or the log loss of an event.

    With the scores recalibrated in hindsight (:class:`IsotonicCurve`, c) and the base rate ``b = mean y``, means over rows of the
    loss give ``miscalibration = S(f) - S(c)``, ``discrimination = S(b) - S(c)`` and ``uncertainty = S(b)``, none of them
    negative: no non-decreasing function of the scores does better than c. Hindsight makes the first two too large, for the
    Brier score of evenly spread scores by about ``n^(-2/3) / 2`` (0.024 of 100 rows, 0.0016 of 6,400). Several events are
    averaged. The log loss of the impossible is infinite, and so is its miscalibration; a note says how many rows are the
    cause. O(n log n).
    CORP: Dimitriadis, Gneiting & Jordan (2021).

    >>> decompose([0, 1, 0, 1], [0.1, 0.3, 0.5, 0.9])
    Brier = 0.19
      miscalibration    0.065
      - discrimination  0.125
      + uncertainty     0.25
      lens              positive class (1)
      n                 4
    """
    if score not in LOSSES:
        raise InputError(f"score must be 'brier' or 'log'; got {score!r}")
    check_lens(lens)
    targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight, Classes(labels, pos_label))
    view = View.of(lens, predictions)
    events = [(e.probability.astype(np.float64), e.observed(targets).astype(np.float64)) for e in view.events]
    parts = [_parts_by_curve(LOSSES[score], *event, weights) for event in events]
    columns = dict(zip(_Parts._fields, np.array(parts).T, strict=True))
    means = {name: float(column.mean()) for name, column in columns.items()}
    table = None if len(parts) == 1 else Table({"event": [e.name for e in view.events], **columns})
    counted = True if weights is None else weights > 0
    lost = int(np.any([np.isinf(LOSSES[score](*event)) & counted for event in events], axis=0).sum())
    return Decomposition(
        {"brier": "Brier", "log": "LogLoss"}[score],
        **means,
        n=len(predictions),
        lens=view.name,
        table=table,
        notes=(_impossible(lost),) if lost else (),
    )


def _impossible(rows: int) -> str:
    """Why a log loss is infinite."""
    what = how_many(rows, "row was", "rows were")
    return f"{what} predicted to be impossible, and happened: the log loss is infinite. score='brier' is finite"


class _Parts(NamedTuple):
    """The score of one event and what it is made of."""

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float


def _parts_by_curve(
    loss: Callable[[np.ndarray, np.ndarray], np.ndarray],
    scores: np.ndarray,
    observed: np.ndarray,
    weights: np.ndarray | None,
) -> _Parts:
    w = np.full(len(scores), 1 / len(scores)) if weights is None else weights / weights.sum()
    recalibrated = IsotonicCurve().fit(scores, observed, weights)(scores)
    rate = np.full(len(scores), np.clip(w @ observed, 0, 1))
    own, best, base = (float(w @ loss(p, observed)) for p in (scores, recalibrated, rate))
    # Never negative but for the rounding of the sums.
    return _Parts(own, max(own - best, 0.0), max(base - best, 0.0), base)


def _squared(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (y - p) ** 2


def _logarithmic(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    """``-y log p - (1 - y) log(1 - p)`` with ``0 log 0 = 0``."""
    return -xlogy(y, p) - xlog1py(1 - y, -p)


LOSSES = {"brier": _squared, "log": _logarithmic}


def decompose_by_kernel(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    bandwidth: float | Literal["cv"] = "cv",
    lens: Lens | None = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> Decomposition:
    """Miscalibration, discrimination and uncertainty of the Brier score, by kernel regression on the simplex.

    Miscalibration is the squared error ``E ||E[y | f] - f||^2`` of :class:`TangentKDE`, discrimination the variance
    ``E ||E[y | f] - E y||^2``, found in the same way, uncertainty the variance of y. Unlike
    :func:`~calibrant.estimators.decompose` it takes whole vectors, assumes no order, and does not profit
    from hindsight: where there is nothing to be found the first two are zero on average, and may be negative. Each is
    estimated by itself, so that they add up to the score only up to noise. Of two classes the positive one is looked at;
    several events are averaged. O(n^2 K).

    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(3), 1_000)
    >>> y = [rng.choice(3, p=row) for row in p]
    >>> decompose_by_kernel(y, p, bandwidth=0.05)
    Brier = 0.4878
      miscalibration    0.0003742
      - discrimination  0.1796
      + uncertainty     0.6662
      lens         canonical
      n                 1,000
    """
    targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight, Classes(labels, pos_label))
    asked, lens_name = questions(lens, predictions)
    tangent = TangentKDE(2, bandwidth, root=False)
    hosted = [replace(question, points=to_numpy(question.points)) for question in asked]
    parts = [_parts_by_kernel(tangent, question, to_numpy(targets), weights) for question in hosted]
    columns = dict(zip(_Parts._fields, np.array(parts).T, strict=True))
    means = {name: float(column.mean()) for name, column in columns.items()}
    table = None if len(parts) == 1 else Table({"event": [question.name for question in asked], **columns})
    return Decomposition("Brier", **means, n=len(predictions), lens=lens_name, table=table, notes=())


def _parts_by_kernel(
    tangent: TangentKDE, question: Question, targets: np.ndarray, weights: np.ndarray | None
) -> _Parts:
    outcomes = question.outcomes(targets)
    observed = question.observed(outcomes)
    rates = np.average(observed, axis=0, weights=weights)
    score, uncertainty = (
        float(np.average(((observed - reference) ** 2).sum(axis=1), weights=weights))
        for reference in (question.predicted, rates)
    )
    constant = replace(question, reference=np.broadcast_to(rates, observed.shape))
    error, variance = (float(tangent.around(q, outcomes, weights).mean) for q in (question, constant))
    # Residuals from their own mean lean against each other, by the variance over the number of rows.
    w = np.ones(len(observed)) if weights is None else weights
    share = (w**2).sum() / w.sum() ** 2
    return _Parts(score, error, variance + uncertainty * share / (1 - share), uncertainty)
