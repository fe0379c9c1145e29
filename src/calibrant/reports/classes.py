"""What a report on class probabilities says and shows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from calibrant._array import to_numpy
from calibrant.distributions.bernoulli import Bernoulli
from calibrant.distributions.categorical import Categorical
from calibrant.estimators.binned import ECE
from calibrant.estimators.binning import EqualMass, EqualWidth
from calibrant.estimators.scores import Brier, LogLoss
from calibrant.inference.reliability import ReliabilityCurve
from calibrant.lenses import ClassWise
from calibrant.reports.class_problem import ClassProblem, claims, event_claims
from calibrant.reports.model import KeyNumber, Picture, Verdict
from calibrant.reports.numbers import Measure, number_of
from calibrant.reports.outline import Outline, tables_of
from calibrant.reports.slices import by_class
from calibrant.reports.verdict import Leaning, judge
from calibrant.results import Table
from calibrant.typing import ArrayLike

NARROW = 0.3
"""Predictions with a smaller range than this are drawn close up."""

MEANINGS = {
    "top": "How far the stated confidence is from how often the favoured class is right, on average over 15 groups of "
    "equally many rows.",
    "class": "The same for the probability of every class in turn, averaged over classes.",
    "event": "How far the predicted probability is from how often the event happened, on average over 15 groups of "
    "equally many rows.",
    "kernel": "How far the probabilities of all classes together are from what happened, with no groups to choose. "
    "Unbiased: a calibrated model shows values around zero.",
    "brier": "Mean squared distance of the probabilities from what happened; smaller is better.",
    "log": "Mean negative log probability of what happened, in nats; smaller is better.",
}


def outline_of_classes(problem: ClassProblem, by: Mapping[str, ArrayLike]) -> Outline:
    """The parts of the report."""
    events = problem.lens.events(problem.predictions)
    each = [] if problem.kind == "binary" else [("Each class", partial(by_class, problem))]
    return Outline(
        subject=f"event: {events[0].name}" if problem.kind == "binary" else "",
        numbers=[(measure[0], partial(number_of, problem, *measure)) for measure in _measures(problem)],
        pictures=[("Reliability curve", partial(reliability_of, problem))],
        sections=[*each, *tables_of(problem, by)],
        judge=partial(_judged, problem),
        notes=_notes(problem),
    )


def _judged(problem: ClassProblem, numbers: Sequence[KeyNumber], pictures: Sequence[Picture]) -> Verdict:
    confidence = Leaning.of(*claims(problem), problem.weights)
    return judge(numbers, confidence, _rate(problem), pictures[0].tables["curve"], len(problem))


def reliability_of(problem: ClassProblem) -> Picture:
    """The reliability diagram of the report's event."""
    what = "confidence in the favoured class" if problem.kind == "multi-class" else "predictions"
    curve = curve_of(problem)
    return Picture(
        "reliability",
        "What was claimed, what happened",
        f"Each mark is a group of rows with similar {what}; larger marks hold more. On the dashed line, claims come true as "
        "often as stated. A calibrated model leaves the band in about one group of twenty.",
        f"Reliability diagram: observed frequency against predicted probability in {curve.n_rows} bins.",
        {"curve": curve, "histogram": histogram_of(problem)},
    )


def _measures(problem: ClassProblem) -> list[Measure]:
    """The numbers of the report; the verdict rests on the first."""
    kernel = problem.kernel_error
    rest: list[Measure] = [] if kernel is None else [("Kernel error (SKCE)", MEANINGS["kernel"], kernel, "number")]
    rest += [
        ("Brier score", MEANINGS["brier"], Brier(), "number"),
        ("Log loss", MEANINGS["log"], LogLoss(), "number"),
    ]
    if problem.kind != "multi-class":
        return [("Calibration error", MEANINGS["event"], problem.error, "percent"), *rest]
    each = ECE(EqualMass(15), lens=ClassWise())
    return [
        ("Calibration error of the confidence", MEANINGS["top"], problem.error, "percent"),
        ("Class-wise calibration error", MEANINGS["class"], each, "percent"),
        *rest,
    ]


def curve_of(problem: ClassProblem) -> Table:
    """The reliability curve of the report's event; all labels of multi-label predictions share one."""
    if isinstance(problem.predictions, Bernoulli):
        problem = _flattened(problem, problem.predictions)
    scores = np.concatenate([event.probability for event in problem.lens.events(problem.predictions)])
    low, high = np.quantile(scores, [0.01, 0.99])
    # Equal widths spread the marks over the picture; probabilities that all lie close together need equal mass.
    bins = EqualWidth(15) if high - low > NARROW else EqualMass(15)
    curve = ReliabilityCurve(bins, problem.lens, n_resamples=problem.n_resamples)
    return problem.run(curve)


def _flattened(problem: ClassProblem, labels: Bernoulli) -> ClassProblem:
    """Every label of every row as a row of its own."""
    return replace(
        problem,
        targets=to_numpy(problem.targets).reshape(-1),
        predictions=Categorical(to_numpy(labels.probs).reshape(-1)),
        weights=None if problem.weights is None else np.repeat(problem.weights, labels.n_labels),
    )


def _rate(problem: ClassProblem) -> Leaning | None:
    """Mean probability of the events against how often they happened; says nothing when classes compete."""
    if problem.kind == "multi-class":
        return None
    return Leaning.of(*event_claims(problem), problem.weights)


def histogram_of(problem: ClassProblem) -> Table:
    """How the predicted probabilities are spread over forty equal parts of [0, 1], or of the range they fill."""
    events = problem.lens.events(problem.predictions)
    scores = np.concatenate([event.probability for event in events])
    low, high = float(scores.min()), float(scores.max())
    edges = np.linspace(0, 1, 41) if high - low > NARROW or high == low else np.linspace(low, high, 41)
    counts = sum(np.histogram(e.probability, edges, weights=problem.weights)[0] for e in events)
    return Table(lower=edges[:-1], upper=edges[1:], weight=counts)


def _notes(problem: ClassProblem) -> list[str]:
    """What a reader should know about the data before believing the numbers."""
    notes = []
    if isinstance(problem.predictions, Categorical):
        seen = np.bincount(to_numpy(problem.targets), minlength=problem.predictions.n_classes)
        names = problem.predictions.class_names
        if unseen := [name for name, count in zip(names, seen, strict=True) if not count]:
            notes.append(f"Never seen in the data: {', '.join(unseen[:10])}{' …' if len(unseen) > 10 else ''}.")
    events = problem.lens.events(problem.predictions)
    certain = np.mean([((e.probability == 0) | (e.probability == 1)).mean() for e in events])
    if certain > 0.01:
        notes.append(f"{100 * certain:.1f} % of the probabilities are exactly 0 or 1.")
    if impossible := int(np.isinf(LogLoss().losses(problem.targets, problem.predictions)).sum()):
        notes.append(f"{impossible:,} rows had probability 0 for what happened: the log loss is infinite.")
    return notes
