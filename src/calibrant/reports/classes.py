"""What a report on class probabilities says and shows."""

from collections.abc import Mapping, Sequence
from functools import partial

from calibrant.estimators.binned import ECE
from calibrant.estimators.binning import EqualMass
from calibrant.estimators.scores import Brier, LogLoss
from calibrant.estimators.tail_scan import TailScan
from calibrant.lenses import ClassWise, Lens, TopLabel
from calibrant.reports.class_faults import fault_of_classes
from calibrant.reports.class_notes import class_notes
from calibrant.reports.class_pictures import class_pictures
from calibrant.reports.class_problem import ClassProblem
from calibrant.reports.class_sections import by_class, label_evidence
from calibrant.reports.class_size import is_small
from calibrant.reports.evidence import EACH, EACH_MEAN, EACH_TAIL, Evidence, gather
from calibrant.reports.model import KeyNumber, Section, Verdict
from calibrant.reports.numbers import Measure, number_of
from calibrant.reports.outline import Outline
from calibrant.reports.slices import Slicing, by_column, clearest_slice, slicings_of
from calibrant.reports.verdict import DOUBT, Fault, alarmed, consistent, slice_fault
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
    each = [] if problem.kind == "binary" else [(f"Each {noun}", partial(by_class, problem))]
    return Outline(
        subject=f"event: {problem.lens.events(problem.predictions)[0].name}" if problem.kind == "binary" else "",
        gather=(f"{problem.n_resamples:,} redraws", partial(_gathered, problem, measures, slicings)),
        numbers=[(measure.label, partial(_number, problem, measure)) for measure in measures],
        pictures=class_pictures(problem),
        sections=[*each, *((f"By {slicing.name}", partial(_slices, problem, slicing)) for slicing in slicings)],
        judge=partial(judge_classes, problem),
        notes=partial(class_notes, problem),
    )


def measures_of(problem: ClassProblem) -> list[Measure]:
    """The numbers of the report; the verdict states the first."""
    kernel = problem.kernel_error
    rest = [] if kernel is None else [Measure("Kernel error (SKCE)", MEANINGS["kernel"], kernel, "number", "kernel")]
    rest += [
        Measure("Brier score", MEANINGS["brier"], Brier(), "number", "Brier score"),
        Measure("Log loss", MEANINGS["log"], LogLoss(), "number", "Log loss"),
    ]
    if problem.kind != "multi-class":
        return [Measure("Calibration error", MEANINGS["event"], problem.error, "percent", "error"), *rest]
    each = ECE(EqualMass(15), lens=ClassWise())
    return [
        Measure("Calibration error of the confidence", MEANINGS["top"], problem.error, "percent", "error"),
        Measure("Class-wise calibration error", MEANINGS["class"], each, "percent", "class-wise error"),
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
        fault = slice_fault(clearest, "too high", "too low")
    fault = fault or fault_of_classes(problem, None if clearest is None else (clearest.name, clearest.rows))
    return alarmed(fault, pvalue, tests, numbers, clearest, "probabilities", is_small(problem, evidence, numbers[0]))


def _gathered(problem: ClassProblem, measures: Sequence[Measure], slicings: Sequence[Slicing]) -> Evidence:
    redrawn = {m.key: m.estimator for m in measures if m.key != "kernel"}
    each = {
        "binary": {},
        "multi-class": {"class-wise error": EACH},
        "multi-label": {"error": EACH, "rate": EACH_MEAN, "tails": EACH_TAIL},
    }
    tested = {**redrawn, **means_to_test(problem), **tails_to_test(problem)}
    evidence = gather(problem, tested, slicings, each[problem.kind])
    return label_evidence(problem, evidence) if problem.kind == "multi-label" else evidence


def _number(problem: ClassProblem, measure: Measure, evidence: Evidence) -> KeyNumber:
    return number_of(problem, measure, evidence.pool)


def _slices(problem: ClassProblem, slicing: Slicing, evidence: Evidence) -> Section:
    return by_column(problem, evidence.pool, slicing, evidence.slicings)
