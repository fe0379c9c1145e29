"""The Brier score taken apart by kernels: whole prediction vectors, with little bias."""

from dataclasses import replace
from typing import Literal

import numpy as np

from calibrant._array import to_numpy
from calibrant.distributions.conversion import as_weighted_problem
from calibrant.estimators.decomposition import Decomposition, Parts
from calibrant.estimators.questions import Question, questions
from calibrant.estimators.tangent import TangentKDE
from calibrant.lenses import Lens
from calibrant.results import Table
from calibrant.typing import ArrayLike


def decompose_by_kernel(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    bandwidth: float | Literal["cv"] = "cv",
    lens: Lens | None = None,
    sample_weight: ArrayLike | None = None,
) -> Decomposition:
    """Miscalibration, discrimination and uncertainty of the Brier score, by kernel regression on the simplex.

    Miscalibration is the squared error ``E ||E[y | f] - f||^2`` of :class:`TangentKDE`, discrimination the variance
    ``E ||E[y | f] - E y||^2``, found in the same way, uncertainty the variance of y. Unlike
    :func:`~calibrant.estimators.decomposition.decompose` it takes whole vectors, assumes no order, and does not profit
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
      reduction         canonical
      n                 1,000
    """
    targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight)
    asked, reduction = questions(lens, predictions)
    tangent = TangentKDE(2, bandwidth, root=False)
    hosted = [replace(question, points=to_numpy(question.points)) for question in asked]
    parts = [_parts(tangent, question, to_numpy(targets), weights) for question in hosted]
    columns = dict(zip(Parts._fields, np.array(parts).T, strict=True))
    means = {name: float(column.mean()) for name, column in columns.items()}
    table = None if len(parts) == 1 else Table({"event": [question.name for question in asked], **columns})
    return Decomposition("Brier", **means, n=len(predictions), reduction=reduction, table=table, notes=())


def _parts(tangent: TangentKDE, question: Question, targets: np.ndarray, weights: np.ndarray | None) -> Parts:
    outcomes = question.outcomes(targets)
    happened = question.happened(outcomes)
    rates = np.average(happened, axis=0, weights=weights)
    score, uncertainty = (
        float(np.average(((happened - reference) ** 2).sum(axis=1), weights=weights))
        for reference in (question.predicted, rates)
    )
    constant = replace(question, reference=np.broadcast_to(rates, happened.shape))
    error, variance = (float(tangent.around(q, outcomes, weights).mean) for q in (question, constant))
    # Residuals from their own mean lean against each other, by the variance over the number of rows.
    w = np.ones(len(happened)) if weights is None else weights
    share = (w**2).sum() / w.sum() ** 2
    return Parts(score, error, variance + uncertainty * share / (1 - share), uncertainty)
