"""Which way class probabilities err: too sure or too timid, too high or too low, for which class, and where."""

import numpy as np

from calibrant._array import to_numpy
from calibrant.distributions.categorical import Categorical
from calibrant.reports.claim_groups import STANDS_OUT, ClaimGroups, bound
from calibrant.reports.class_problem import ClassProblem, claims, event_claims
from calibrant.reports.leaning import Leaning, beyond
from calibrant.reports.local_faults import local_faults
from calibrant.reports.possible_fault import PossibleFault
from calibrant.reports.verdict import Fault
from calibrant.results import percent

TELLING = 2.0
"""Standard errors from which a mean that is off gives a fault its name."""

CLEAR = 4.0
"""Standard errors beyond the first fault from which a second one is named."""

EXPLAINED = 0.25
"""The least share of the squared errors of groups that means must account for to give a fault its name."""


def fault_of_classes(problem: ClassProblem, part: tuple[str, np.ndarray] | None = None) -> Fault:
    """The fault in words, by what speaks loudest for it; meant for problems that are wrong beyond chance.

    ``part`` is the slice with the clearest evidence, by its name and its rows.
    """
    groups = ClaimGroups.of(problem)
    means = [c for c in _means(problem) if abs(c.z) > TELLING]
    local = local_faults(problem, groups, part)
    loudest = max([*means, *local], key=lambda c: abs(c.z), default=None)
    if loudest is None or (loudest in means and not _explain(means, groups)):
        return _everywhere(problem, groups)
    if loudest in local:
        return Fault(loudest.finding, loudest.words, loudest.means)
    second = next((c for c in means if c is not loudest and _adds(problem, c, loudest)), None)
    if second is None:
        return Fault(loudest.finding, loudest.words, loudest.means, _where(groups))
    where = (f"{second.means}.", *_where(groups))
    return Fault(loudest.finding, f"{loudest.words}, and {second.words}", loudest.means, where)


def _means(problem: ClassProblem) -> list[PossibleFault]:
    """Means over all rows that may be off: the confidence, the rate of an event, the rates of classes."""
    confidence = Leaning.of(*claims(problem), problem.weights)
    side = "over" if confidence.is_high else "under"
    sure = PossibleFault(
        confidence.z, f"{side}-confident", f"the model is {side}-confident", _mean_confidence(confidence)
    )
    if isinstance(problem.predictions, Categorical) and problem.kind == "multi-class":
        return [sure, *_one_class(problem, problem.predictions)]
    rate = Leaning.of(*event_claims(problem), problem.weights)
    side = "high" if rate.is_high else "low"
    means = f"They average {percent(rate.claimed)}, and the event happened {percent(rate.happened)} of the time"
    # Where all predictions lie on one side of 1/2 the two differ by rounding only: then it is the rate.
    return [PossibleFault(1.001 * rate.z, f"too {side}", f"they are too {side}", means), sure]


def _one_class(problem: ClassProblem, predictions: Categorical) -> list[PossibleFault]:
    """The class whose mean probability is furthest off, unless by chance."""
    p, y = to_numpy(predictions.probs), to_numpy(problem.targets)
    leanings = [Leaning.of(p[:, k], y == k, problem.weights) for k in range(p.shape[1])]
    worst = int(np.argmax([abs(leaning.z) for leaning in leanings]))
    found, name = leanings[worst], predictions.class_names[worst]
    if abs(found.z) <= bound(len(leanings)):
        return []
    often = "often" if found.is_high else "seldom"
    means = (
        f"Class {name} is claimed {percent(found.claimed)} on average, and {percent(found.happened)} of rows are of it"
    )
    return [PossibleFault(found.z, "class", f"class {name} is claimed too {often}", means)]


def _explain(possible: list[PossibleFault], groups: ClaimGroups) -> bool:
    """Whether the means that are off account for a good part of the error of single groups of claims."""
    if any(fault.finding == "class" for fault in possible):
        return True
    total = float((groups.cells.z**2).sum()) - len(groups.cells.z)
    return sum(fault.z**2 for fault in possible) > EXPLAINED * total


def _adds(problem: ClassProblem, second: PossibleFault, first: PossibleFault) -> bool:
    """Whether the second fault is clear beyond what the first one explains."""
    if problem.kind == "multi-class":
        return abs(second.z) > max(CLEAR, abs(first.z) / 2)
    p, happened = event_claims(problem)
    weights = np.ones(len(p)) if problem.weights is None else problem.weights
    w = np.broadcast_to(weights[:, None], p.shape)
    contrast = {True: np.where(p > 0.5, 1.0, -1.0), False: np.ones(p.shape)}
    of, given = (contrast[c.finding.endswith("confident")] for c in (second, first))
    z = beyond(of, given, p.astype(np.float64), happened, w)
    return abs(z) > CLEAR and z * second.z > 0


def _everywhere(problem: ClassProblem, groups: ClaimGroups) -> Fault:
    """Errors that cancel in every mean."""
    means = _mean_confidence(Leaning.of(*claims(problem), problem.weights))
    if isinstance(problem.predictions, Categorical) and problem.kind == "multi-class":
        found = _some_claims_of_a_class(problem, problem.predictions)
        words = "the favoured class is right as often as claimed, but single classes are not"
        return found or Fault("mixed", words, means)
    cells = groups.cells
    words = "they are too high in places and too low in others"
    if cells.z.max() > STANDS_OUT and cells.z.min() < -STANDS_OUT:
        high, low = percent(cells.claimed[np.argmax(cells.z)]), percent(cells.claimed[np.argmin(cells.z)])
        words = f"they are too high in places (about {high}) and too low in others (about {low})"
    return Fault("mixed", words, means, _where(groups))


def _some_claims_of_a_class(problem: ClassProblem, predictions: Categorical) -> Fault | None:
    """The class, and the size of its claims, that are furthest off."""
    p, y, found = to_numpy(predictions.probs), to_numpy(problem.targets), []
    for k, name in enumerate(predictions.class_names):
        cells = ClaimGroups.along(p[:, k], y == k, problem.weights).cells
        i = int(np.argmax(np.abs(cells.z)))
        found.append((abs(cells.z[i]), name, cells.claimed[i], cells.happened[i]))
    z, name, claimed, happened = max(found)
    if z <= bound(15 * len(found)):
        return None
    often = "often" if claimed > happened else "seldom"
    words = f"class {name} is claimed too {often} where its claim is about {percent(claimed)}"
    means = f"Where class {name} is claimed at about {percent(claimed)}, {percent(happened)} of rows are of it"
    return Fault("class", words, means)


def _where(groups: ClaimGroups) -> tuple[str, ...]:
    """The widest gap that stands out, in words."""
    cells = groups.cells
    out = np.abs(cells.z) > STANDS_OUT
    if not out.any():
        return ()
    worst = int(np.argmax(np.where(out, np.abs(cells.claimed - cells.happened), -1)))
    claimed, seen = percent(cells.claimed[worst]), percent(cells.happened[worst])
    return (f"The gap is widest where the claim is about {claimed}: {seen} came true.",)


def _mean_confidence(confidence: Leaning) -> str:
    claimed, right = percent(confidence.claimed), percent(confidence.happened)
    return f"The model claims {claimed} on average and is right {right} of the time"
