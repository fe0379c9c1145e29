"""What a report on class probabilities says and shows."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import partial

import numpy as np

from calibrant.distributions.categorical import Bernoulli, Categorical
from calibrant.estimators.binned.binning import EqualMass
from calibrant.estimators.binned.ece import ECE
from calibrant.estimators.binned.tail_scan import TailScan
from calibrant.estimators.scoring_rules.proper_scores import Brier, LogLoss
from calibrant.inference.exact_tests.aggregated import AggregatedTest, Pool
from calibrant.inference.multiplicity import holm
from calibrant.lenses.class_lenses import ClassWise, Event, Lens, MultiLabel, TopLabel
from calibrant.planning.affordable import TEST_WORK, affordable
from calibrant.reports.class_report.class_faults import fault_of_classes
from calibrant.reports.class_report.class_pictures import class_pictures
from calibrant.reports.class_report.class_problem import ClassProblem, WorstTail, event_claims, means_of
from calibrant.reports.core.evidence import (
    EACH,
    EACH_MEAN,
    EACH_TAIL,
    Evidence,
    KeyMeasure,
    LabelEvidence,
    gather,
    number_of,
    resamples,
)
from calibrant.reports.core.model import KeyNumber, Outline, Section, Step, Verdict
from calibrant.reports.core.problem import MAX_ROWS, Slicing, by_column, clearest_slice, ranked, slicings_of
from calibrant.reports.core.verdict import DOUBT, Fault, alarmed, consistent, slice_fault
from calibrant.reports.notes import class_notes
from calibrant.results import Finding, Table
from calibrant.typing import ArrayLike

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


def outline_of_classes(problem: ClassProblem, by: Mapping[str, ArrayLike]) -> Outline[Evidence]:
    """The parts of the report."""
    slicings, measures = slicings_of(problem, by), measures_of(problem)
    noun = "label" if problem.kind == "multi-label" else "class"
    each = [] if problem.kind == "binary" else [(Step(f"Each {noun}"), partial(by_class, problem))]
    return Outline(
        subject=f"event: {problem.lens.events(problem.predictions)[0].name}" if problem.kind == "binary" else "",
        gather=(resamples(problem.n_resamples), partial(_gathered, problem, measures, slicings)),
        numbers=[(measure.step, partial(_number, problem, measure)) for measure in measures],
        pictures=class_pictures(problem),
        sections=[*each, *((slicing.step, partial(_slices, problem, slicing)) for slicing in slicings)],
        judge=partial(judge_classes, problem),
        notes=partial(class_notes, problem),
    )


def measures_of(problem: ClassProblem) -> list[KeyMeasure]:
    """The numbers of the report; the verdict states the first."""
    kernel = problem.kernel_error
    rest = [] if kernel is None else [KeyMeasure("Kernel error (SKCE)", MEANINGS["kernel"], kernel, "number", "kernel")]
    rest += [
        KeyMeasure("Brier score", MEANINGS["brier"], Brier(), "number", "brier"),
        KeyMeasure("Log loss", MEANINGS["log"], LogLoss(), "number", "log"),
    ]
    if problem.kind != "multi-class":
        return [KeyMeasure("Calibration error", MEANINGS["event"], problem.error, "percent", "error"), *rest]
    each = ECE(EqualMass(15), lens=ClassWise())
    return [
        KeyMeasure("Calibration error of the confidence", MEANINGS["top"], problem.error, "percent", "error"),
        KeyMeasure("Class-wise calibration error", MEANINGS["class"], each, "percent", "class-wise error"),
        *rest,
    ]


def means_to_test(problem: ClassProblem) -> dict[str, ECE]:
    """Means that may be off: errors with a single group, which see a shift that many groups hide in their noise."""
    if problem.kind == "multi-class":
        lenses: dict[str, Lens] = {"confidence": TopLabel(), "rates": ClassWise()}
    else:
        lenses = {"rate": problem.lens} | ({"confidence": TopLabel()} if problem.kind == "binary" else {})
    return {name: ECE(EqualMass(1), lens=lens) for name, lens in lenses.items()}


def tails_to_test(problem: ClassProblem) -> dict[str, TailScan]:
    """Tails that may be off: few rows with high claims, or few events, hardly move an error over groups."""
    more = {"tails of classes": TailScan(ClassWise())} if problem.kind == "multi-class" else {}
    return {"tails": TailScan(problem.lens), **more}


def judge_classes(problem: ClassProblem, evidence: Evidence, numbers: Sequence[KeyNumber]) -> Verdict:
    """The verdict from the aggregated exact test, and the fault it is due to."""
    pvalue, n = evidence.pvalue, len(problem)
    tests = evidence.in_words(n)
    if pvalue > DOUBT:
        return consistent(pvalue, tests, numbers[0], n, "probabilities")
    clearest = clearest_slice(problem, evidence.pool, evidence.slicings, DOUBT)
    fault: Fault | None = None
    if evidence.pvalue_of_all_rows > DOUBT:
        fault = slice_fault(clearest, Finding.TOO_HIGH, Finding.TOO_LOW)
    fault = fault or fault_of_classes(problem, None if clearest is None else (clearest.name, clearest.rows))
    return alarmed(fault, pvalue, tests, numbers, clearest, "probabilities", is_small(problem, evidence, numbers[0]))


def _gathered(problem: ClassProblem, measures: Sequence[KeyMeasure], slicings: Sequence[Slicing]) -> Evidence:
    resampled = {m.key: m.estimator for m in measures if m.key != "kernel"}
    each = {
        "binary": {},
        "multi-class": {"class-wise error": EACH},
        "multi-label": {"error": EACH, "rate": EACH_MEAN, "tails": EACH_TAIL},
    }
    tested = {**resampled, **means_to_test(problem), **tails_to_test(problem)}
    evidence = gather(problem, tested, slicings, each[problem.kind])
    return label_evidence(problem, evidence) if problem.kind == "multi-label" else evidence


def _number(problem: ClassProblem, measure: KeyMeasure, evidence: Evidence) -> KeyNumber:
    return number_of(problem, measure, evidence.pool)


def _slices(problem: ClassProblem, slicing: Slicing, evidence: Evidence) -> Section:
    return by_column(problem, evidence.pool, slicing, evidence.slicings)


ENOUGH = 160
"""Resamples a label that let the smallest p-value of all labels together reach 0.0125."""


def by_class(problem: ClassProblem, evidence: Evidence) -> Section:
    """Each class, or each label, against the rest; the clearest evidence first, and only that where there are many."""
    events = events_of(problem)
    noun = "label" if isinstance(evidence, LabelEvidence) else "class"
    if isinstance(evidence, LabelEvidence):
        pvalues, how = holm(evidence.labels), "Holm"
    else:
        pvalues, how = evidence.pool.adjusted([EACH]), "Westfall and Young"
    observed = [event.observed(problem.targets) for event in events]
    means = [means_of(e.probability, h, problem.weights) for e, h in zip(events, observed, strict=True)]
    table = ranked(evidence.pool, EACH, [e.name for e in events], [int(h.sum()) for h in observed], means, pvalues)
    more = f" The {MAX_ROWS} with the clearest evidence, of {len(events)}." if len(events) > MAX_ROWS else ""
    remark = f"Every {noun} against the rest; p-values allow for their number ({how}).{more}"
    return Section(f"Each {noun}", noun, remark, Table({name: column[:MAX_ROWS] for name, column in table.items()}))


def label_evidence(problem: ClassProblem, evidence: Evidence) -> LabelEvidence:
    """The exact p-value of every label by itself, resampled more often where it is the smallest that there can be.

    A p-value may be replaced by that of a second test whenever it is as small as it can be: below that least value the
    second test alone decides, and above it nothing is gained. So the level holds.
    """
    pool, events = evidence.pool, events_of(problem)
    pvalues = [_together(pool, i) for i in range(len(events))]
    least = 1 / (pool.n_resamples + 1)
    draws = affordable(ENOUGH * len(events) - 1, len(problem), TEST_WORK // 4, least=1)
    if draws > pool.n_resamples:
        again = [i for i, p in enumerate(pvalues) if p <= least * 1.5][:MAX_ROWS]
        for i in again:
            pvalues[i] = _alone(problem, events[i], draws)
    values = {field.name: getattr(evidence, field.name) for field in fields(evidence)}
    return LabelEvidence(**values, labels=tuple(pvalues))


def _alone(problem: ClassProblem, event: Event, draws: int) -> float:
    targets, predictions = event.observed(problem.targets).view(np.uint8), Categorical.trusted(event.probability)
    single = replace(problem, targets=targets, predictions=predictions)
    return single.run(AggregatedTest((ECE(EqualMass(15)), ECE(EqualMass(1)), TailScan()), draws)).pvalue


def _together(pool: Pool, i: int) -> float:
    """One label: its error in groups, its mean and its tails, aggregated."""
    columns = {name: pool.values[name][:, i : i + 1] for name in (EACH, EACH_MEAN, EACH_TAIL)}
    return Pool(columns).together(list(columns))


def events_of(problem: ClassProblem) -> tuple[Event, ...]:
    """Each class or label in turn."""
    lens: Lens = MultiLabel() if isinstance(problem.predictions, Bernoulli) else ClassWise()
    return lens.events(problem.predictions)


SMALL_ERROR = 0.01
"""The largest average error that is called small."""

SMALL_SHARE = 0.05
"""A small error is also no more than this share of the average uncertainty: for a rare event a tenth of a point may be much."""


def is_small(problem: ClassProblem, evidence: Evidence, main: KeyNumber) -> bool:
    """Whether the average error is below a point, and small beside the uncertainty that the predictions state.

    The upper end of the interval counts, so that few rows never show that an error is small. No single class and no slice may
    be much worse, nor the highest and the lowest claims, and nothing may have happened that was called impossible.
    """
    p, _ = event_claims(problem)
    ends = [part.high for part in (main.interval or main.null_band,) if part is not None]
    if max([main.value, *ends]) > min(SMALL_ERROR, SMALL_SHARE * _uncertainty(problem, p)):
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
    return all(abs(tail.predicted - tail.observed) <= SMALL_ERROR for tail in tails)


def _are_classes_small(problem: ClassProblem, evidence: Evidence) -> bool:
    for key in evidence.classes:
        for i, event in enumerate(events_of(problem)):
            uncertainty = _uncertainty(problem, event.probability[:, None])
            if evidence.pool.excess(key)[i] > min(SMALL_ERROR, 2 * SMALL_SHARE * uncertainty):
                return False
    return True


def _are_slices_small(evidence: Evidence) -> bool:
    if not evidence.slicings:
        return True
    excess = np.concatenate([evidence.pool.excess(key) for key in evidence.slices])
    return bool((excess[evidence.pool.adjusted(evidence.slices) <= 0.05] <= SMALL_ERROR).all())


def _uncertainty(problem: ClassProblem, p: np.ndarray) -> float:
    """How far claims are from certainty, on average."""
    return float(np.average(np.minimum(p, 1 - p).mean(axis=1), weights=problem.weights))
