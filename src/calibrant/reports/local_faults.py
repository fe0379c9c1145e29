"""Faults of class probabilities that only some rows cause: a range or a tail of claims, a label, a favoured class."""

import numpy as np

from calibrant._array import to_numpy
from calibrant.distributions.bernoulli import Bernoulli
from calibrant.distributions.categorical import Categorical
from calibrant.reports.claim_groups import STANDS_OUT, ClaimGroups, bound
from calibrant.reports.class_problem import ClassProblem, claims, event_claims
from calibrant.reports.leaning import Cells, Leaning
from calibrant.reports.possible_fault import PossibleFault
from calibrant.reports.worst_tail import WorstTail
from calibrant.results import how_many, percent

LOCAL = 0.4
"""The largest share of rows that a local fault may concern."""

RIGHT = 2.0
"""Standard errors up to which the rest counts as right."""


def local_faults(
    problem: ClassProblem, groups: ClaimGroups, part: tuple[str, np.ndarray] | None
) -> list[PossibleFault]:
    """Those where the rest of the rows is right; ``part`` is the name of a slice and its rows."""
    found = [_some_claims(problem, groups), None if part is None else _one_slice(problem, *part)]
    if isinstance(problem.predictions, Bernoulli):
        found.append(_one_label(problem, problem.predictions))
    else:
        found.append(_one_tail(problem, groups))
        found.append(_one_favourite(problem, problem.predictions) if problem.kind == "multi-class" else None)
    return [fault for fault in found if fault is not None]


def _some_claims(problem: ClassProblem, groups: ClaimGroups) -> PossibleFault | None:
    """Claims within one range are wrong, all others right."""
    run, cells = groups.run(), groups.cells
    if run is None or cells.weight[run].sum() > LOCAL * cells.weight.sum():
        return None
    inside = (groups.group >= run.start) & (groups.group < run.stop)
    p, happened, weights = groups.probability, groups.happened, groups.weights
    if _leans(problem, p, happened, weights, ~inside):
        return None
    low, high = cells.low[run.start], cells.high[run.stop - 1]
    found = Leaning.of(p[inside], happened[inside], None if weights is None else weights[inside])
    side = "high" if found.is_high else "low"
    what = "confidence is" if problem.kind == "multi-class" else "they are"
    words = f"{what} too {side} where the claim lies between {percent(low)} and {percent(high)}, and right elsewhere"
    means = f"There {percent(found.claimed)} is claimed on average, and {percent(found.happened)} came true"
    return PossibleFault(found.z, "local", words, means)


def _one_tail(problem: ClassProblem, groups: ClaimGroups) -> PossibleFault | None:
    """The highest or the lowest claims, fewer than make a group, are wrong, all others right."""
    tail = WorstTail.of(problem, problem.lens)
    if abs(tail.z) <= STANDS_OUT or tail.share >= 1 / len(groups.cells.z):
        return None
    (p,), (happened,) = (x.T for x in event_claims(problem))
    inside = tail.holds(p)
    if _leans(problem, p, happened, problem.weights, ~inside):
        return None
    side, what = "high" if tail.z > 0 else "low", "confidence is" if problem.kind == "multi-class" else "they are"
    end = f"at least {percent(p[inside].min())}" if tail.is_upper else f"at most {percent(p[inside].max())}"
    claimed, seen = percent(tail.claimed), percent(tail.happened)
    means = f"In {how_many(int(inside.sum()), 'such row', 'such rows')} {claimed} is claimed on average, and {seen} came true"
    return PossibleFault(tail.z, "local", f"{what} too {side} where the claim is {end}, and right elsewhere", means)


def _leans(
    problem: ClassProblem, p: np.ndarray, happened: np.ndarray, weights: np.ndarray | None, rows: np.ndarray
) -> bool:
    """Whether these claims err on average, or are too sure or too timid."""
    if not rows.any():
        return False
    w = None if weights is None else weights[rows]
    p, happened = p[rows], happened[rows]
    means = [Leaning.of(p, happened, w)]
    if problem.kind != "multi-class":
        means.append(Leaning.of(np.maximum(p, 1 - p), (p > 0.5) == happened, w))
    return any(abs(leaning.z) > RIGHT for leaning in means)


def _one_slice(problem: ClassProblem, name: str, rows: np.ndarray) -> PossibleFault | None:
    """A slice is wrong, all other rows are right."""
    p, happened = event_claims(problem)
    inside = np.isin(np.arange(len(p)), rows)
    if _leans(problem, p, happened, problem.weights, ~inside):
        return None
    found = Leaning.of(p[inside], happened[inside], None if problem.weights is None else problem.weights[inside])
    if abs(found.z) <= STANDS_OUT:
        return None
    side = "high" if found.is_high else "low"
    what = "confidence is" if problem.kind == "multi-class" else "they are"
    means = f"There {percent(found.claimed)} is claimed on average, and {percent(found.happened)} came true"
    return PossibleFault(found.z, "slice", f"{what} too {side} where {name}, and right elsewhere", means)


def _one_label(problem: ClassProblem, predictions: Bernoulli) -> PossibleFault | None:
    """Few labels are wrong, all others right."""
    p, happened = event_claims(problem)
    leanings = [Leaning.of(p[:, k], happened[:, k], problem.weights) for k in range(p.shape[1])]
    z = np.array([leaning.z for leaning in leanings])
    out = np.abs(z) > max(STANDS_OUT, bound(len(z)))
    if not out.any() or out.sum() > max(1, LOCAL * len(z)) or len(z) == 1:
        return None
    if abs(Leaning.of(p[:, ~out], happened[:, ~out], problem.weights).z) > RIGHT:
        return None
    worst = int(np.argmax(np.abs(z)))
    name, found = predictions.label_names[worst], leanings[worst]
    side = "high" if found.is_high else "low"
    means = f"Label {name} is claimed {percent(found.claimed)} on average, and happened {percent(found.happened)} of the time"
    return PossibleFault(found.z, "label", f"label {name} is too {side}", means)


def _one_favourite(problem: ClassProblem, predictions: Categorical) -> PossibleFault | None:
    """The confidence is wrong where one class is favoured, and right where others are."""
    confidence, right = claims(problem)
    favoured = to_numpy(predictions.probs).argmax(axis=1)
    cells = Cells.of(confidence, right, problem.weights, favoured, predictions.n_classes)
    out = np.flatnonzero(np.abs(cells.z) > max(STANDS_OUT, bound(predictions.n_classes)))
    if len(out) != 1 or _leans(problem, confidence, right, problem.weights, favoured != out[0]):
        return None
    (i,) = out
    side, name = "over" if cells.z[i] > 0 else "under", predictions.class_names[i]
    claimed, happened = percent(cells.claimed[i]), percent(cells.happened[i])
    means = f"Where it favours class {name} it claims {claimed} on average, and is right {happened} of the time"
    return PossibleFault(cells.z[i], "class", f"the model is {side}-confident where it favours class {name}", means)
