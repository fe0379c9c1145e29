"""Which way class probabilities err: too sure or too timid, too high or too low, for which classes and claims."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from calibrant._array import to_numpy
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.estimators.binned.binning import EqualMass
from calibrant.reports.class_report.class_problem import ClassProblem, WorstTail, claims, event_claims
from calibrant.reports.core.evidence import Fault
from calibrant.results import Finding, how_many, percent


@dataclass(frozen=True)
class MeanGap:
    """A mean claim, how often it came true, and how many standard errors of a calibrated model lie between them."""

    predicted: float
    observed: float
    z: float

    @classmethod
    def of(
        cls, probability: np.ndarray, observed: np.ndarray, weights: np.ndarray | None, inflation: float = 1.0
    ) -> "MeanGap":
        """From claims and outcomes of the same shape; variances are so many times those of independent rows.

        >>> round(MeanGap.of(np.array([0.5, 0.5, 0.9, 0.9]), np.array([1, 0, 0, 1]), None).z, 4)
        0.9701
        """
        p = probability.astype(np.float64)
        w = np.ones(len(p)) if weights is None else weights
        w = np.broadcast_to(w.reshape(-1, *[1] * (p.ndim - 1)), p.shape) / (w.sum() * p[0].size)
        spread = float(np.sqrt(inflation * (w**2 * p * (1 - p)).sum()))
        predicted, seen = float((w * p).sum()), float((w * observed).sum())
        return cls(predicted, seen, _score(predicted - seen, spread))

    @property
    def is_high(self) -> bool:
        """Whether more was claimed than happened."""
        return self.predicted > self.observed


@dataclass(frozen=True, eq=False)
class ClaimCells:
    """Groups of claims: weight, mean claim, how many came true, the standard errors between them, and the range of claims.

    Standard errors allow for one row more, so that a group stands out by several rows at least.
    """

    weight: np.ndarray
    predicted: np.ndarray
    observed: np.ndarray
    z: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(
        cls, probability: np.ndarray, observed: np.ndarray, weights: np.ndarray | None, cell: np.ndarray, n_cells: int,
        inflation: float = 1.0,
    ) -> "ClaimCells":  # fmt: skip
        """From claims ``(n,)`` and the number of each one's cell; cells without rows hold zeros.

        >>> cells = ClaimCells.of(np.array([0.2, 0.4, 0.9]), np.array([0, 1, 1]), None, np.array([0, 0, 1]), 2)
        >>> cells.predicted, cells.observed
        (array([0.3, 0.9]), array([0.5, 1. ]))
        """
        p = probability.astype(np.float64)
        w = np.ones(len(p)) if weights is None else weights
        total, claims, seen, variance = (
            np.bincount(cell, weights=v, minlength=n_cells) for v in (w, w * p, w * observed, w**2 * p * (1 - p))
        )
        unit = np.where(total > 0, total, 1)
        low, high = np.full(n_cells, np.inf), np.full(n_cells, -np.inf)
        np.minimum.at(low, cell, p)
        np.maximum.at(high, cell, p)
        # One surprise among claims that are nearly certain is no measure of how wrong they are.
        z = (claims - seen) / np.sqrt(inflation * (variance + _mean_square(w)))
        return cls(total, claims / unit, seen / unit, z, low, high)


def _mean_square(w: np.ndarray) -> float:
    return float((w**2).sum() / max(np.count_nonzero(w), 1))


def _score(gap: float, spread: float) -> float:
    """The gap in standard errors; without spread any gap beyond rounding is infinite."""
    if spread > 0:
        return gap / spread
    return 0.0 if abs(gap) < 1e-12 else float(np.sign(gap) * np.inf)


def beyond(of: np.ndarray, given: np.ndarray, probability: np.ndarray, observed: np.ndarray, w: np.ndarray) -> float:
    """Standard errors that one contrast of errors is off beyond what another explains; contrasts are numbers a claim.

    >>> p, y = np.full(8, 0.5), np.array([1, 1, 1, 1, 0, 0, 0, 0])
    >>> round(beyond(np.repeat([1.0, -1.0], 4), np.ones(8), p, y, np.ones(8)), 3)
    -2.828
    """
    variance = w**2 * probability * (1 - probability)
    inner = (variance * given * given).sum()
    rest = of - given * ((variance * of * given).sum() / inner if inner > 0 else 0.0)
    spread = np.sqrt((variance * rest * rest).sum())
    # contrasts that are the same but for rounding leave nothing
    if spread <= 1e-6 * np.sqrt((variance * of * of).sum()):
        return 0.0
    return float((w * rest * (probability - observed)).sum() / spread)


MAX_GROUPS, GROUP_ROWS = 15, 20
"""How many groups there are at most, and how many rows make one."""

STANDS_OUT = 3.0
"""Standard errors from which a group of claims stands out: one of fifteen would by chance in 4 % of cases."""

NEIGHBOUR = 1.5
"""Standard errors from which a group beside one that stands out belongs to it."""


@dataclass(frozen=True, eq=False)
class ClaimGroups:
    """All claims in one line, what came true of them, their weights, the group of each, and what the groups show."""

    probability: np.ndarray
    observed: np.ndarray
    weights: np.ndarray | None
    group: np.ndarray
    cells: ClaimCells

    @classmethod
    def of(cls, problem: ClassProblem) -> "ClaimGroups":
        """The claims of the report's events."""
        predicted, observed = event_claims(problem)
        weights = None if problem.weights is None else np.repeat(problem.weights, predicted.shape[1])
        return cls.along(predicted.reshape(-1), observed.reshape(-1), weights, problem.inflation)

    @classmethod
    def along(
        cls, probability: np.ndarray, observed: np.ndarray, weights: np.ndarray | None, inflation: float = 1.0
    ) -> "ClaimGroups":
        """Claims of any event."""
        count = min(MAX_GROUPS, max(2, len(probability) // GROUP_ROWS))
        bins = EqualMass(count).bins(probability, weights)
        group = bins.of_rows(probability, slice(None))
        cells = ClaimCells.of(probability, observed, weights, group, len(bins), inflation)
        return cls(probability, observed, weights, group, cells)

    def run(self) -> slice | None:
        """The one run of groups that stand out on the same side, with their neighbours that lean to it."""
        z = self.cells.z
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


def bound(looks: int) -> float:
    """Standard errors that the largest of so many exceeds by chance in 5 % of cases at most.

    >>> round(bound(1), 2), round(bound(100), 2)
    (1.96, 3.48)
    """
    return float(-ndtri(0.025 / looks))


@dataclass(frozen=True)
class PossibleFault:
    """A way to err: standard errors that speak for it, its one word, its words, and the two means that show it."""

    z: float
    finding: Finding
    words: str
    means: str


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
    p, observed, weights = groups.probability, groups.observed, groups.weights
    if _leans(problem, p, observed, weights, ~inside):
        return None
    low, high = cells.low[run.start], cells.high[run.stop - 1]
    w = None if weights is None else weights[inside]
    found = MeanGap.of(p[inside], observed[inside], w, problem.inflation)
    side = "high" if found.is_high else "low"
    what = "confidence is" if problem.kind == "multi-class" else "they are"
    words = f"{what} too {side} where the claim lies between {percent(low)} and {percent(high)}, and right elsewhere"
    means = f"There {percent(found.predicted)} is claimed on average, and {percent(found.observed)} came true"
    return PossibleFault(found.z, Finding.LOCAL, words, means)


def _one_tail(problem: ClassProblem, groups: ClaimGroups) -> PossibleFault | None:
    """The highest or the lowest claims, fewer than make a group, are wrong, all others right."""
    tail = WorstTail.of(problem, problem.lens)
    z = tail.z / np.sqrt(problem.inflation)
    if abs(z) <= STANDS_OUT or tail.share >= 1 / len(groups.cells.z):
        return None
    (p,), (observed,) = (x.T for x in event_claims(problem))
    inside = tail.holds(p)
    if _leans(problem, p, observed, problem.weights, ~inside):
        return None
    side, what = "high" if tail.z > 0 else "low", "confidence is" if problem.kind == "multi-class" else "they are"
    end = f"at least {percent(p[inside].min())}" if tail.is_upper else f"at most {percent(p[inside].max())}"
    predicted, seen = percent(tail.predicted), percent(tail.observed)
    means = f"In {how_many(int(inside.sum()), 'such row', 'such rows')} {predicted} is claimed on average, and {seen} came true"
    return PossibleFault(z, Finding.LOCAL, f"{what} too {side} where the claim is {end}, and right elsewhere", means)


def _leans(
    problem: ClassProblem, p: np.ndarray, observed: np.ndarray, weights: np.ndarray | None, rows: np.ndarray
) -> bool:
    """Whether these claims err on average, or are too sure or too timid."""
    if not rows.any():
        return False
    w = None if weights is None else weights[rows]
    p, observed = p[rows], observed[rows]
    means = [MeanGap.of(p, observed, w, problem.inflation)]
    if problem.kind != "multi-class":
        means.append(MeanGap.of(np.maximum(p, 1 - p), (p > 0.5) == observed, w, problem.inflation))
    return any(abs(leaning.z) > RIGHT for leaning in means)


def _one_slice(problem: ClassProblem, name: str, rows: np.ndarray) -> PossibleFault | None:
    """A slice is wrong, all other rows are right."""
    p, observed = event_claims(problem)
    inside = np.isin(np.arange(len(p)), rows)
    if _leans(problem, p, observed, problem.weights, ~inside):
        return None
    w = None if problem.weights is None else problem.weights[inside]
    found = MeanGap.of(p[inside], observed[inside], w, problem.inflation)
    if abs(found.z) <= STANDS_OUT:
        return None
    side = "high" if found.is_high else "low"
    what = "confidence is" if problem.kind == "multi-class" else "they are"
    means = f"There {percent(found.predicted)} is claimed on average, and {percent(found.observed)} came true"
    return PossibleFault(found.z, Finding.SLICE, f"{what} too {side} where {name}, and right elsewhere", means)


def _one_label(problem: ClassProblem, predictions: Bernoulli) -> PossibleFault | None:
    """Few labels are wrong, all others right."""
    p, observed = event_claims(problem)
    leanings = [MeanGap.of(p[:, k], observed[:, k], problem.weights, problem.inflation) for k in range(p.shape[1])]
    z = np.array([leaning.z for leaning in leanings])
    out = np.abs(z) > max(STANDS_OUT, bound(len(z)))
    if not out.any() or out.sum() > max(1, LOCAL * len(z)) or len(z) == 1:
        return None
    if abs(MeanGap.of(p[:, ~out], observed[:, ~out], problem.weights, problem.inflation).z) > RIGHT:
        return None
    worst = int(np.argmax(np.abs(z)))
    name, found = predictions.label_names[worst], leanings[worst]
    side = "high" if found.is_high else "low"
    means = f"Label {name} is claimed {percent(found.predicted)} on average, and happened {percent(found.observed)} of the time"
    return PossibleFault(found.z, Finding.LABEL, f"label {name} is too {side}", means)


def _one_favourite(problem: ClassProblem, predictions: Categorical) -> PossibleFault | None:
    """The confidence is wrong where one class is favoured, and right where others are."""
    confidence, right = claims(problem)
    favoured = to_numpy(predictions.probs).argmax(axis=1)
    cells = ClaimCells.of(confidence, right, problem.weights, favoured, predictions.n_classes, problem.inflation)
    out = np.flatnonzero(np.abs(cells.z) > max(STANDS_OUT, bound(predictions.n_classes)))
    if len(out) != 1 or _leans(problem, confidence, right, problem.weights, favoured != out[0]):
        return None
    (i,) = out
    side, name = "over" if cells.z[i] > 0 else "under", predictions.class_names[i]
    predicted, observed = percent(cells.predicted[i]), percent(cells.observed[i])
    means = f"Where it favours class {name} it claims {predicted} on average, and is right {observed} of the time"
    return PossibleFault(
        cells.z[i], Finding.CLASS, f"the model is {side}-confident where it favours class {name}", means
    )


MIN_Z_TO_NAME = 2.0
"""Standard errors from which a mean that is off gives a fault its name."""

MIN_Z_OF_SECOND = 4.0
"""Standard errors beyond the first fault from which a second one is named."""

MIN_SHARE_EXPLAINED = 0.25
"""The least share of the squared errors of groups that means must account for to give a fault its name."""


def fault_of_classes(problem: ClassProblem, part: tuple[str, np.ndarray] | None = None) -> Fault:
    """The fault in words, by the mean or group that is off by most standard errors, of a problem wrong beyond chance.

    ``part`` is the slice with the clearest evidence, by its name and its rows.
    """
    groups = ClaimGroups.of(problem)
    means = [c for c in _means(problem) if abs(c.z) > MIN_Z_TO_NAME]
    local = local_faults(problem, groups, part)
    largest = max([*means, *local], key=lambda c: abs(c.z), default=None)
    if largest is None or (largest in means and not _explain(means, groups)):
        return _everywhere(problem, groups)
    if largest in local:
        return Fault(largest.finding, largest.words, largest.means)
    second = next((c for c in means if c is not largest and _adds(problem, c, largest)), None)
    if second is None:
        return Fault(largest.finding, largest.words, largest.means, _where(groups))
    where = (f"{second.means}.", *_where(groups))
    return Fault(largest.finding, f"{largest.words}, and {second.words}", largest.means, where)


def _means(problem: ClassProblem) -> list[PossibleFault]:
    """Means over all rows that may be off: the confidence, the rate of an event, the rates of classes."""
    confidence = MeanGap.of(*claims(problem), problem.weights, problem.inflation)
    way = Finding.OVER_CONFIDENT if confidence.is_high else Finding.UNDER_CONFIDENT
    sure = PossibleFault(confidence.z, way, f"the model is {way}", _mean_confidence(confidence))
    if isinstance(problem.predictions, Categorical) and problem.kind == "multi-class":
        return [sure, *_one_class(problem, problem.predictions)]
    rate = MeanGap.of(*event_claims(problem), problem.weights, problem.inflation)
    way = Finding.TOO_HIGH if rate.is_high else Finding.TOO_LOW
    means = f"They average {percent(rate.predicted)}, and the event happened {percent(rate.observed)} of the time"
    # Where all predictions lie on one side of 1/2 the two differ by rounding only: then it is the rate.
    return [PossibleFault(1.001 * rate.z, way, f"they are {way}", means), sure]


def _one_class(problem: ClassProblem, predictions: Categorical) -> list[PossibleFault]:
    """The class whose mean probability is furthest off, unless by chance."""
    p, y = to_numpy(predictions.probs), to_numpy(problem.targets)
    leanings = [MeanGap.of(p[:, k], y == k, problem.weights, problem.inflation) for k in range(p.shape[1])]
    worst = int(np.argmax([abs(leaning.z) for leaning in leanings]))
    found, name = leanings[worst], predictions.class_names[worst]
    if abs(found.z) <= bound(len(leanings)):
        return []
    often = "often" if found.is_high else "seldom"
    means = f"Class {name} is claimed {percent(found.predicted)} on average, and {percent(found.observed)} of rows are of it"
    return [PossibleFault(found.z, Finding.CLASS, f"class {name} is claimed too {often}", means)]


def _explain(possible: list[PossibleFault], groups: ClaimGroups) -> bool:
    """Whether the means that are off account for a good part of the error of single groups of claims."""
    if any(fault.finding is Finding.CLASS for fault in possible):
        return True
    total = float((groups.cells.z**2).sum()) - len(groups.cells.z)
    return sum(fault.z**2 for fault in possible) > MIN_SHARE_EXPLAINED * total


def _adds(problem: ClassProblem, second: PossibleFault, first: PossibleFault) -> bool:
    """Whether the second fault is clear beyond what the first one explains."""
    if problem.kind == "multi-class":
        return abs(second.z) > max(MIN_Z_OF_SECOND, abs(first.z) / 2)
    p, observed = event_claims(problem)
    weights = np.ones(len(p)) if problem.weights is None else problem.weights
    w = np.broadcast_to(weights[:, None], p.shape)
    contrast = {True: np.where(p > 0.5, 1.0, -1.0), False: np.ones(p.shape)}
    of, given = (contrast[c.finding.is_of_confidence] for c in (second, first))
    z = beyond(of, given, p.astype(np.float64), observed, w) / np.sqrt(problem.inflation)
    return abs(z) > MIN_Z_OF_SECOND and z * second.z > 0


def _everywhere(problem: ClassProblem, groups: ClaimGroups) -> Fault:
    """Errors that cancel in every mean."""
    means = _mean_confidence(MeanGap.of(*claims(problem), problem.weights))
    if isinstance(problem.predictions, Categorical) and problem.kind == "multi-class":
        found = _some_claims_of_a_class(problem, problem.predictions)
        words = "the favoured class is right as often as claimed, but single classes are not"
        return found or Fault(Finding.MIXED, words, means)
    cells = groups.cells
    words = "they are too high in places and too low in others"
    if cells.z.max() > STANDS_OUT and cells.z.min() < -STANDS_OUT:
        high, low = percent(cells.predicted[np.argmax(cells.z)]), percent(cells.predicted[np.argmin(cells.z)])
        words = f"they are too high in places (about {high}) and too low in others (about {low})"
    return Fault(Finding.MIXED, words, means, _where(groups))


def _some_claims_of_a_class(problem: ClassProblem, predictions: Categorical) -> Fault | None:
    """The class, and the size of its claims, that are furthest off."""
    p, y, found = to_numpy(predictions.probs), to_numpy(problem.targets), []
    for k, name in enumerate(predictions.class_names):
        cells = ClaimGroups.along(p[:, k], y == k, problem.weights, problem.inflation).cells
        i = int(np.argmax(np.abs(cells.z)))
        found.append((abs(cells.z[i]), name, cells.predicted[i], cells.observed[i]))
    z, name, predicted, observed = max(found)
    if z <= bound(15 * len(found)):
        return None
    often = "often" if predicted > observed else "seldom"
    words = f"class {name} is claimed too {often} where its claim is about {percent(predicted)}"
    means = f"Where class {name} is claimed at about {percent(predicted)}, {percent(observed)} of rows are of it"
    return Fault(Finding.CLASS, words, means)


def _where(groups: ClaimGroups) -> tuple[str, ...]:
    """The widest gap that stands out, in words."""
    cells = groups.cells
    out = np.abs(cells.z) > STANDS_OUT
    if not out.any():
        return ()
    worst = int(np.argmax(np.where(out, np.abs(cells.predicted - cells.observed), -1)))
    predicted, seen = percent(cells.predicted[worst]), percent(cells.observed[worst])
    return (f"The gap is widest where the claim is about {predicted}: {seen} came true.",)


def _mean_confidence(confidence: MeanGap) -> str:
    predicted, right = percent(confidence.predicted), percent(confidence.observed)
    return f"The model claims {predicted} on average and is right {right} of the time"
