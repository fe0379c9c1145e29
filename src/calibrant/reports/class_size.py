"""Whether an error of class probabilities is too small to matter."""

import numpy as np

from calibrant.distributions.bernoulli import Bernoulli
from calibrant.estimators.scores import LogLoss
from calibrant.lenses import ClassWise, Lens
from calibrant.reports.class_problem import ClassProblem, event_claims
from calibrant.reports.class_sections import events_of
from calibrant.reports.evidence import Evidence
from calibrant.reports.model import KeyNumber
from calibrant.reports.verdict import DOUBT
from calibrant.reports.worst_tail import WorstTail

FEW_POINTS = 0.01
"""An average error up to this is small, if it is no more than"""

SMALL_SHARE = 0.05
"""this share of the average uncertainty, too: of a rare event even a tenth of a point may be much."""


def is_small(problem: ClassProblem, evidence: Evidence, main: KeyNumber) -> bool:
    """Whether the average error is below a point, and small beside the uncertainty that the predictions state.

    The upper end of the interval counts, so that few rows never show that an error is small. No single class and no slice may
    be much worse, nor the highest and the lowest claims, and nothing may have happened that was called impossible.
    """
    p, _ = event_claims(problem)
    ends = [part.high for part in (main.interval or main.null_band,) if part is not None]
    if max([main.value, *ends]) > min(FEW_POINTS, SMALL_SHARE * _uncertainty(problem, p)):
        return False
    if not np.isfinite(LogLoss().losses(problem.targets, problem.predictions)).all():
        return False
    return _are_classes_small(problem, evidence) and _are_slices_small(evidence) and _are_tails_small(problem, evidence)


def _are_tails_small(problem: ClassProblem, evidence: Evidence) -> bool:
    """Whether the tail that is furthest off is so by chance, or by little."""
    if isinstance(problem.predictions, Bernoulli):  # labels are tested one by one
        return True
    lenses: dict[str, Lens] = {"tails": problem.lens, "tails of classes": ClassWise()}
    found = [lens for key, lens in lenses.items() if key in evidence.single and evidence.pool.pvalue(key) <= DOUBT]
    tails = [WorstTail.of(problem, lens) for lens in found]
    return all(abs(tail.claimed - tail.happened) <= FEW_POINTS for tail in tails)


def _are_classes_small(problem: ClassProblem, evidence: Evidence) -> bool:
    for key in evidence.classes:
        for i, event in enumerate(events_of(problem)):
            uncertainty = _uncertainty(problem, event.probability[:, None])
            if evidence.pool.excess(key)[i] > min(FEW_POINTS, 2 * SMALL_SHARE * uncertainty):
                return False
    return True


def _are_slices_small(evidence: Evidence) -> bool:
    if not evidence.slicings:
        return True
    excess = np.concatenate([evidence.pool.excess(key) for key in evidence.slices])
    return bool((excess[evidence.pool.adjusted(evidence.slices) <= 0.05] <= FEW_POINTS).all())


def _uncertainty(problem: ClassProblem, p: np.ndarray) -> float:
    """How far claims are from certainty, on average."""
    return float(np.average(np.minimum(p, 1 - p).mean(axis=1), weights=problem.weights))
