"""Which way class probabilities err: too sure or too timid, too high or too low, for which class, and where."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from calibrant._array import to_numpy
from calibrant.distributions.bernoulli import Bernoulli
from calibrant.distributions.categorical import Categorical
from calibrant.estimators.binning import EqualMass
from calibrant.reports.class_problem import ClassProblem, claims, event_claims
from calibrant.reports.leaning import Cells, Leaning, beyond
from calibrant.reports.verdict import Fault
from calibrant.results import percent

TELLING = 2.0
"""Standard errors from which a mean that is off gives a fault its name."""

CLEAR = 4.0
"""Standard errors beyond the first fault from which a second one is named."""

STANDS_OUT = 3.0
"""Standard errors from which a group of claims stands out: one of fifteen would by chance in 4 % of cases."""

EXPLAINED = 0.25
"""The least share of the squared errors of groups that a mean must account for to give a fault its name."""

NEIGHBOUR = 1.5
"""Standard errors from which a group beside one that stands out belongs to it."""

LOCAL = 0.4
"""The largest share of rows that a local fault may concern."""


@dataclass(frozen=True)
class Candidate:
    """A way to err with its standard errors, its one word, its words, and the two means that show it."""

    z: float
    finding: str
    words: str
    means: str


def fault_of_classes(problem: ClassProblem) -> Fault:
    """The fault in words; meant for problems that are wrong beyond chance."""
    local = _local(problem)
    if local is not None:
        return local
    candidates = sorted(_candidates(problem), key=lambda c: -abs(c.z))
    telling = [c for c in candidates if abs(c.z) > TELLING]
    if not telling or not _explains(problem, telling):
        return _everywhere(problem)
    first, *rest = telling
    second = next((c for c in rest if _adds(problem, c, first)), None)
    if second is None:
        return Fault(first.finding, first.words, first.means, _where(problem))
    where = (f"{second.means}.", *_where(problem))
    return Fault(first.finding, f"{first.words}, and {second.words}", first.means, where)


def _explains(problem: ClassProblem, candidates: list[Candidate]) -> bool:
    """Whether the means that are off account for a good part of the error of single groups of claims."""
    if any(c.finding == "class" for c in candidates):
        return True
    _, _, _, _, cells = _groups(problem)
    total = float((cells.z**2).sum()) - len(cells.z)
    return sum(c.z**2 for c in candidates) > EXPLAINED * total


def _candidates(problem: ClassProblem) -> list[Candidate]:
    confidence = Leaning.of(*claims(problem), problem.weights)
    side = "over" if confidence.is_high else "under"
    sure = Candidate(confidence.z, f"{side}-confident", f"the model is {side}-confident", _mean_confidence(confidence))
    if problem.kind == "multi-class":
        return [sure, *_one_class(problem)]
    rate = Leaning.of(*event_claims(problem), problem.weights)
    side = "high" if rate.is_high else "low"
    means = f"They average {percent(rate.claimed)}, and the event happened {percent(rate.happened)} of the time"
    # Where all predictions lie on one side of 1/2 the two differ by rounding only: then it is the rate.
    return [Candidate(1.001 * rate.z, f"too {side}", f"they are too {side}", means), sure]


def _one_class(problem: ClassProblem) -> list[Candidate]:
    """The class whose mean probability is furthest off, if none is by chance."""
    predictions = problem.predictions
    assert isinstance(predictions, Categorical)
    p, y = to_numpy(predictions.probs), to_numpy(problem.targets)
    leanings = [Leaning.of(p[:, k], y == k, problem.weights) for k in range(p.shape[1])]
    worst = int(np.argmax([abs(leaning.z) for leaning in leanings]))
    found, name = leanings[worst], predictions.class_names[worst]
    if abs(found.z) <= _bound(len(leanings)):
        return []
    often = "often" if found.is_high else "seldom"
    means = (
        f"Class {name} is claimed {percent(found.claimed)} on average, and {percent(found.happened)} of rows are of it"
    )
    return [Candidate(found.z, "class", f"class {name} is claimed too {often}", means)]


def _adds(problem: ClassProblem, second: Candidate, first: Candidate) -> bool:
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


def _local(problem: ClassProblem) -> Fault | None:
    """A fault that only some claims, or one label, or one favoured class, are responsible for."""
    if isinstance(problem.predictions, Bernoulli):
        return _one_label(problem) or _some_claims(problem)
    if problem.kind == "multi-class":
        return _some_claims(problem) or _one_favourite(problem)
    return _some_claims(problem)


def _some_claims(problem: ClassProblem) -> Fault | None:
    """Claims within one range are wrong, all others right."""
    p, happened, weights, cell, cells = _groups(problem)
    run = _run(cells.z)
    if run is None or cells.weight[run].sum() > LOCAL * cells.weight.sum():
        return None
    inside = (cell >= run.start) & (cell < run.stop)
    if _leans(problem, p, happened, weights, ~inside):
        return None
    low, high = cells.low[run.start], cells.high[run.stop - 1]
    w = None if weights is None else weights[inside]
    found = Leaning.of(p[inside], happened[inside], w)
    side = "high" if found.is_high else "low"
    what = "confidence is" if problem.kind == "multi-class" else "they are"
    words = f"{what} too {side} where the claim lies between {percent(low)} and {percent(high)}, and right elsewhere"
    means = f"There {percent(found.claimed)} is claimed on average, and {percent(found.happened)} came true"
    return Fault("local", words, means)


def _run(z: np.ndarray) -> slice | None:
    """The one run of groups that stand out on the same side, with their neighbours that lean to it."""
    out = np.flatnonzero(np.abs(z) > STANDS_OUT)
    if not len(out):
        return None
    leaning = np.sign(z[out[0]]) * z
    start, stop = int(out[0]), int(out[-1]) + 1
    if (leaning[start:stop] <= 0).any():
        return None
    while start > 0 and leaning[start - 1] > NEIGHBOUR:
        start -= 1
    while stop < len(z) and leaning[stop] > NEIGHBOUR:
        stop += 1
    return slice(start, stop)


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
    return any(abs(leaning.z) > TELLING for leaning in means)


def _one_label(problem: ClassProblem) -> Fault | None:
    """Few labels are wrong, all others right."""
    p, happened = event_claims(problem)
    leanings = [Leaning.of(p[:, k], happened[:, k], problem.weights) for k in range(p.shape[1])]
    z = np.array([leaning.z for leaning in leanings])
    out = np.abs(z) > max(STANDS_OUT, _bound(len(z)))
    if not out.any() or out.sum() > max(1, LOCAL * len(z)) or len(z) == 1:
        return None
    rest = Leaning.of(p[:, ~out], happened[:, ~out], problem.weights)
    if abs(rest.z) > TELLING:
        return None
    worst = int(np.argmax(np.abs(z)))
    assert isinstance(problem.predictions, Bernoulli)
    name, found = problem.predictions.label_names[worst], leanings[worst]
    side = "high" if found.is_high else "low"
    means = f"Label {name} is claimed {percent(found.claimed)} on average, and happened {percent(found.happened)} of the time"
    return Fault("label", f"label {name} is too {side}", means)


def _one_favourite(problem: ClassProblem) -> Fault | None:
    """The confidence is wrong where one class is favoured, and right where others are."""
    predictions = problem.predictions
    assert isinstance(predictions, Categorical)
    confidence, right = claims(problem)
    favoured = to_numpy(predictions.probs).argmax(axis=1)
    cells = Cells.of(confidence, right, problem.weights, favoured, predictions.n_classes)
    out = np.flatnonzero(np.abs(cells.z) > max(STANDS_OUT, _bound(predictions.n_classes)))
    if len(out) != 1 or _leans(problem, confidence, right, problem.weights, favoured != out[0]):
        return None
    (i,) = out
    side, name = "over" if cells.z[i] > 0 else "under", predictions.class_names[i]
    claimed, happened = percent(cells.claimed[i]), percent(cells.happened[i])
    means = f"Where it favours class {name} it claims {claimed} on average, and is right {happened} of the time"
    return Fault("class", f"the model is {side}-confident where it favours class {name}", means)


def _everywhere(problem: ClassProblem) -> Fault:
    """Errors that cancel in every mean."""
    means = _mean_confidence(Leaning.of(*claims(problem), problem.weights))
    if problem.kind == "multi-class":
        return _cell_of_a_class(problem) or Fault(
            "mixed", "the favoured class is right as often as claimed, but single classes are not", means
        )
    _, _, _, _, cells = _groups(problem)
    if cells.z.max() > STANDS_OUT and cells.z.min() < -STANDS_OUT:
        high, low = percent(cells.claimed[np.argmax(cells.z)]), percent(cells.claimed[np.argmin(cells.z)])
        words = f"they are too high in places (about {high}) and too low in others (about {low})"
    else:
        words = "they are too high in places and too low in others"
    return Fault("mixed", words, means, _where(problem))


def _cell_of_a_class(problem: ClassProblem) -> Fault | None:
    """The class, and the size of its claims, that are furthest off."""
    predictions = problem.predictions
    assert isinstance(predictions, Categorical)
    p, y, found = to_numpy(predictions.probs), to_numpy(problem.targets), []
    for k, name in enumerate(predictions.class_names):
        cell, n_cells = _cells(p[:, k], problem.weights)
        cells = Cells.of(p[:, k], y == k, problem.weights, cell, n_cells)
        i = int(np.argmax(np.abs(cells.z)))
        found.append((abs(cells.z[i]), name, cells.claimed[i], cells.happened[i]))
    z, name, claimed, happened = max(found)
    if z <= _bound(15 * len(found)):
        return None
    often = "often" if claimed > happened else "seldom"
    words = f"class {name} is claimed too {often} where its claim is about {percent(claimed)}"
    means = f"Where class {name} is claimed at about {percent(claimed)}, {percent(happened)} of rows are of it"
    return Fault("class", words, means)


def _groups(problem: ClassProblem) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray, Cells]:
    """All claims in one line, what came true of them, their weights, and fifteen groups of equally many."""
    claimed, happened = event_claims(problem)
    weights = None if problem.weights is None else np.repeat(problem.weights, claimed.shape[1])
    p, happened = claimed.reshape(-1), happened.reshape(-1)
    cell, n_cells = _cells(p, weights)
    return p, happened, weights, cell, Cells.of(p, happened, weights, cell, n_cells)


def _cells(p: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, int]:
    bins = EqualMass(15).bins(p, weights)
    return bins.of_rows(p, slice(None)), len(bins)


def _where(problem: ClassProblem) -> tuple[str, ...]:
    """The widest gap that stands out, in words."""
    _, _, _, _, cells = _groups(problem)
    out = np.abs(cells.z) > STANDS_OUT
    if not out.any():
        return ()
    worst = int(np.argmax(np.where(out, np.abs(cells.claimed - cells.happened), -1)))
    claimed, seen = percent(cells.claimed[worst]), percent(cells.happened[worst])
    return (f"The gap is widest where the claim is about {claimed}: {seen} came true.",)


def _mean_confidence(confidence: Leaning) -> str:
    claimed, right = percent(confidence.claimed), percent(confidence.happened)
    return f"The model claims {claimed} on average and is right {right} of the time"


def _bound(looks: int) -> float:
    """Standard errors that the largest of so many exceeds by chance in 5 % of cases at most."""
    return float(-ndtri(0.025 / looks))
