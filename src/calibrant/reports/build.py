"""From targets and predictions to the report, as plain data."""

import platform
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np

import calibrant
from calibrant._array import to_numpy
from calibrant._validate import InputError, as_weights, check_count
from calibrant.distributions.bernoulli import Bernoulli
from calibrant.distributions.categorical import Categorical
from calibrant.distributions.conversion import as_problem
from calibrant.estimators.base import BaseEstimator
from calibrant.estimators.binned import ECE
from calibrant.estimators.binning import EqualMass, EqualWidth
from calibrant.estimators.scores import Brier, LogLoss
from calibrant.estimators.skce import SKCE
from calibrant.inference.draws import as_seed_sequence
from calibrant.inference.exact import ExactTest
from calibrant.inference.intervals import include_null
from calibrant.inference.reliability import ReliabilityCurve
from calibrant.lenses import ClassWise
from calibrant.reports.model import KeyNumber, Report, Section
from calibrant.reports.problem import TEST_WORK, Problem, affordable
from calibrant.reports.slices import by_class, by_column, claims, event_claims
from calibrant.reports.verdict import Leaning, judge
from calibrant.results import Estimate, Interval, Table
from calibrant.typing import ArrayLike, Engine, Seed

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called before each step with its name, its number and how many there are."""

NARROW = 0.3
"""Predictions with a smaller range than this are drawn close up."""

LEAST_REDRAWS = 199
"""Fewer redraws than this say too little about a p-value."""

Unit: TypeAlias = Literal["percent", "number"]
Measure: TypeAlias = tuple[str, str, BaseEstimator, Unit]
"""What is measured: label, meaning, estimator, unit."""

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


def evaluate(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    by: Mapping[str, ArrayLike] | None = None,
    sample_weight: ArrayLike | None = None,
    title: str = "Calibration report",
    n_resamples: int = 999,
    rng: Seed = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Report:
    """Can these probabilities be believed? The sensible set of numbers and tests, ready to read, plot or save.

    ``by`` maps names to columns that slice the rows. Large data get fewer redraws than ``n_resamples``, and the
    report says how many. ``progress`` is told of each step.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y_pred = rng.random(300)
    >>> report = evaluate((rng.random(300) < y_pred) * 1, y_pred, n_resamples=199)
    >>> report.verdict.headline
    'These probabilities agree with what happened.'
    """
    targets, predictions = as_problem(y_true, y_pred)
    if not isinstance(predictions, Categorical | Bernoulli):
        raise InputError(f"reports take class probabilities so far; got {type(predictions).__name__} predictions")
    check_count(n_resamples, "n_resamples", least=99)
    if not isinstance(by, Mapping | None):
        raise InputError("by must map names to columns, such as by={'site': column}")
    weights = as_weights(sample_weight, len(predictions))
    draws = affordable(n_resamples, int(np.prod(targets.shape)), TEST_WORK, least=399)
    problem = Problem(targets, predictions, weights, draws, as_seed_sequence(rng), engine)
    return _report(problem, title, dict(by or {}), progress or _silent)


def _report(problem: Problem, title: str, by: Mapping[str, ArrayLike], progress: Progress) -> Report:
    measures = _measures(problem)
    steps = len(measures) + 1 + (problem.kind != "binary") + len(by)
    numbers: list[KeyNumber] = []
    for measure in measures:
        progress(measure[0], len(numbers), steps)
        numbers.append(_number(problem, *measure))
    progress("Reliability curve", len(numbers), steps)
    curve = curve_of(problem)
    sections: list[Section] = []
    if problem.kind != "binary":
        progress("Each class", len(numbers) + 1, steps)
        sections.append(by_class(problem))
    for name, column in by.items():
        progress(f"By {name}", len(numbers) + 1 + len(sections), steps)
        sections.append(by_column(problem, name, column))
    progress("Done", steps, steps)
    events = problem.lens.events(problem.predictions)
    return Report(
        title=title,
        n=len(problem),
        kind=problem.kind,
        verdict=judge(numbers, Leaning.of(*claims(problem), problem.weights), _rate(problem), curve, len(problem)),
        numbers=tuple(numbers),
        reliability=curve,
        histogram=histogram_of(problem),
        event=events[0].name if len(events) == 1 else "each label",
        sections=tuple(sections),
        notes=tuple(_notes(problem)),
        settings=settings_of(problem),
    )


def _measures(problem: Problem) -> list[Measure]:
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


def _number(problem: Problem, label: str, meaning: str, estimator: BaseEstimator, unit: Unit) -> KeyNumber:
    if isinstance(estimator, SKCE):
        return _kernel_number(problem, label, meaning, estimator, unit)
    is_error = isinstance(estimator, ECE)
    # A score is too small when the model is under-confident; an error can only be too large.
    test = problem.test(estimator, two_sided=not is_error)
    interval: Interval | None = None
    if estimator == problem.error and problem.kind != "multi-label":  # averaged errors have none: see decision 5
        interval = include_null(problem.interval(estimator).confidence_interval(), test)
    elif (interval := _normal(test.estimate)) is not None:
        interval = replace(interval, low=max(interval.low, 0.0))
    return KeyNumber(label, meaning, test.statistic, unit, interval, test.null_band(), test.pvalue, repr(estimator))


def _kernel_number(problem: Problem, label: str, meaning: str, estimator: SKCE, unit: Unit) -> KeyNumber:
    """With its test where redraws are affordable."""
    draws = problem.kernel_resamples
    if draws < min(LEAST_REDRAWS, problem.n_resamples) or estimator.block is not None:
        estimate = estimator.estimate(problem.targets, problem.predictions, problem.weights)
        return KeyNumber(label, meaning, float(estimate), unit, _normal(estimate), None, None, repr(estimate.estimator))
    test = problem.run(ExactTest(estimator, draws))
    resolved = repr(test.estimate.estimator)
    return KeyNumber(
        label, meaning, test.statistic, unit, _normal(test.estimate), test.null_band(), test.pvalue, resolved
    )


def _normal(estimate: Estimate) -> Interval | None:
    return None if estimate.standard_error is None else estimate.confidence_interval()


def curve_of(problem: Problem) -> Table:
    """The reliability curve of the report's event; all labels of multi-label predictions share one."""
    if isinstance(problem.predictions, Bernoulli):
        problem = _flattened(problem, problem.predictions)
    scores = np.concatenate([event.probability for event in problem.lens.events(problem.predictions)])
    low, high = np.quantile(scores, [0.01, 0.99])
    # Equal widths spread the marks over the picture; probabilities that all lie close together need equal mass.
    bins = EqualWidth(15) if high - low > NARROW else EqualMass(15)
    curve = ReliabilityCurve(bins, problem.lens, n_resamples=problem.n_resamples)
    return problem.run(curve)


def _flattened(problem: Problem, labels: Bernoulli) -> Problem:
    """Every label of every row as a row of its own."""
    return replace(
        problem,
        targets=to_numpy(problem.targets).reshape(-1),
        predictions=Categorical(to_numpy(labels.probs).reshape(-1)),
        weights=None if problem.weights is None else np.repeat(problem.weights, labels.n_labels),
    )


def _rate(problem: Problem) -> Leaning | None:
    """Mean probability of the events against how often they happened; says nothing when classes compete."""
    if problem.kind == "multi-class":
        return None
    return Leaning.of(*event_claims(problem), problem.weights)


def histogram_of(problem: Problem) -> Table:
    """How the predicted probabilities are spread over forty equal parts of [0, 1], or of the range they fill."""
    events = problem.lens.events(problem.predictions)
    scores = np.concatenate([event.probability for event in events])
    low, high = float(scores.min()), float(scores.max())
    edges = np.linspace(0, 1, 41) if high - low > NARROW or high == low else np.linspace(low, high, 41)
    counts = sum(np.histogram(e.probability, edges, weights=problem.weights)[0] for e in events)
    return Table(lower=edges[:-1], upper=edges[1:], weight=counts)


def _notes(problem: Problem) -> list[str]:
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


def settings_of(problem: Problem) -> dict[str, object]:
    """What repeats the run."""
    return {
        "calibrant": calibrant.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "redraws": problem.n_resamples,
        "seed": str(problem.seeds.entropy),
        "level": 0.95,
    }


def _silent(step: str, done: int, total: int) -> None:
    """Report no progress."""
