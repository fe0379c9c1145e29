"""What a report on class probabilities says and shows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np

from calibrant._array import to_numpy
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.estimators.binned.binning import EqualMass
from calibrant.estimators.binned.ece import ECE, BinnedStatistic
from calibrant.estimators.binned.tail_scan import TailScan
from calibrant.estimators.cluster_skewness import ClusterSkewness
from calibrant.estimators.scoring_rules.proper_scores import LogLoss
from calibrant.inference.exact_tests.aggregated import AggregatedTest, Pool
from calibrant.inference.exact_tests.cluster_signs import MIN_SURPRISES
from calibrant.inference.multiplicity import holm
from calibrant.lenses.class_lenses import ClassWise, Event, Lens, MultiLabel, TopLabel
from calibrant.planning.affordable import TEST_WORK, affordable
from calibrant.plots.classification.classwise import ClasswiseDisplay
from calibrant.plots.classification.confusion import ConfusionDisplay
from calibrant.plots.classification.reliability import ReliabilityDisplay, beyond_of, settings_of
from calibrant.plots.classification.simplex_plot import SimplexDisplay
from calibrant.plots.comparisons.witness_plot import WitnessDisplay
from calibrant.reports.class_report.class_faults import fault_of_classes
from calibrant.reports.class_report.class_measures import UNTESTED, answered, measures_of
from calibrant.reports.class_report.class_problem import ClassProblem, WorstTail, event_claims, means_of
from calibrant.reports.core.evidence import (
    DOUBT,
    EACH,
    EACH_MEAN,
    EACH_TAIL,
    Evidence,
    Fault,
    KeyMeasure,
    LabelEvidence,
    alarmed,
    consistent,
    gather,
    null_of,
    number_of,
    resamples,
    slice_fault,
    undecided,
)
from calibrant.reports.core.model import KeyNumber, Outline, Picture, Section, Step, Verdict
from calibrant.reports.core.problem import (
    MAX_ROWS,
    Slicing,
    by_column,
    clearest_first,
    clearest_slice,
    ranked,
    slicings_of,
    split_slicings,
)
from calibrant.reports.notes import class_notes
from calibrant.results import Finding, Table, how_many, percent
from calibrant.typing import ArrayLike

MAP_WORK = 100_000_000
"""Resampled targets that a map or a smooth curve may cost."""

Make = Callable[[ClassProblem, Evidence], Picture]


def class_pictures(problem: ClassProblem) -> Sequence[tuple[Step, Callable[[Evidence], Picture]]]:
    """The pictures by the names of their steps; with clusters those whose bands allow for them."""
    kind, is_apart = problem.kind, problem.clusters is None
    found: list[tuple[Step, Make, bool]] = [
        (Step("Reliability curve", 2.0), reliability_of, True),
        (Step("Smooth reliability curve", 15.0), _smooth, kind == "binary" and is_apart),
        (Step("Reliability of each class", 6.0), _panels, kind != "binary"),
        (Step("Confusion of confidence", 7.0), _confusion, kind == "multi-class" and is_apart),
        (Step("Witness", 10.0), _witness, kind != "multi-label" and is_apart),
        (Step("Risk and coverage"), answered, kind == "multi-class"),
        (Step("Map of three classes"), _simplex, kind == "multi-class" and is_apart and _n_classes(problem) == 3),
        (Step("Resampled errors"), _null, kind != "multi-label" and is_apart),  # no mean over labels has an exact test
    ]
    return [(step, partial(make, problem)) for step, make, is_shown in found if is_shown]


def reliability_of(problem: ClassProblem, _evidence: Evidence | None = None) -> Picture:
    """The reliability diagram of the report's event; all labels of multi-label predictions share one."""
    what = "confidence in the favoured class" if problem.kind == "multi-class" else "predictions"
    band = "consistency" if problem.untested is None else None
    leaves = "" if band is None else " A calibrated model leaves the band in about one group of twenty."
    tables = _tables(ReliabilityDisplay, problem, axis="auto", n_resamples=problem.n_resamples, band=band)
    return Picture(
        "reliability",
        "What was claimed, what happened",
        f"Each mark is a group of rows with similar {what}; larger marks hold more. On the dashed line, claims come true as "
        f"often as stated.{leaves}{_scale(tables)}",
        f"Reliability diagram, observed frequency against predicted probability in {_beyond(tables, 'group')}.",
        tables,
    )


def curve_of(problem: ClassProblem) -> Table:
    """The curve of that diagram by groups of equally many rows, without the band: few rows would stray among several models."""
    return _tables(ReliabilityDisplay, problem, axis="probability", band=None, bins=EqualMass(15))["curve"]


def _scale(tables: dict[str, Table]) -> str:
    """That an axis is one of log-odds, which other pictures of the page are not."""
    floor = settings_of(tables)["floor"]
    if floor is None:
        return ""
    return f" On this scale of log-odds there is room near 0 and 1; what lies within {percent(floor)} of them stands at the end."


def _smooth(problem: ClassProblem, _evidence: Evidence) -> Picture:
    tables = _tables(ReliabilityDisplay, problem, axis="auto", method="smooth")
    return Picture(
        "reliability",
        "The same without groups",
        "Observed frequency as a smooth curve of the prediction, which shows what groups may hide. A calibrated model leaves the "
        "band over about a twentieth of its length. It ends where few rows are left.",
        f"Smooth reliability curve, observed frequency against predicted probability at {_beyond(tables, 'point')}.",
        tables,
    )


def _panels(problem: ClassProblem, evidence: Evidence) -> Picture:
    band = "consistency" if problem.untested is None and not rare_events(problem).any() else None
    order = None if problem.untested is not None else clearest_first(evidence.pool, EACH, _pvalues(problem, evidence))
    tables = _tables(ClasswiseDisplay, problem, axis="auto", band=band, order=order)
    noun, count = ("label", "labels") if problem.kind == "multi-label" else ("class", "classes")
    shown, all_of = tables["classes"].n_rows, int(tables["settings"]["classes"][0])
    which = (
        f"The {shown} of {all_of} {count} with the strongest evidence" if shown < all_of else f"Every {noun} by itself"
    )
    curve, outside = tables["curve"], _outside(tables)
    counts = [
        f"{name}: {int(outside[curve['event'] == name].sum())}" for name in dict.fromkeys(curve["event"].tolist())
    ]
    return Picture(
        "classwise",
        f"Each {noun} by itself",
        f"{which}: what was claimed for it, and how often it happened. On the dashed line, claims come true as often as stated.",
        f"Small reliability diagrams, one a {noun}; groups beyond what chance shows: {', '.join(counts)}.",
        tables,
    )


def _confusion(problem: ClassProblem, _evidence: Evidence) -> Picture:
    tables = _tables(ConfusionDisplay, problem)
    cells = tables["cells"]
    return Picture(
        "confusion",
        "Where probability is missing, and where there is too much",
        "Rows by the class that the model favours, columns by class: mean probability less how often it happened. Orange: "
        "claimed too often; blue: too seldom. On the diagonal lies over-confidence, beside it where the probability should "
        "have gone. Framed cells are beyond chance; a calibrated model has none in nineteen of twenty data sets.",
        f"Map of gaps by favoured class and class: {_framed(cells, 'cell')}.",
        tables,
    )


def _witness(problem: ClassProblem, _evidence: Evidence) -> Picture:
    tables = _tables(WitnessDisplay, problem)
    if problem.kind == "binary":
        along, orange, blue = "predicted probability", "predicted too high", "too low"
    else:
        along, orange, blue = "favoured class and confidence", "over-confident", "under-confident"
    return Picture(
        "witness",
        "Where it goes wrong",
        f"By {along}: how much more was claimed than came true. Orange: {orange}; blue: {blue}. Dots mark places beyond chance; a "
        "calibrated model has none in nineteen of twenty data sets.",
        f"Map of gaps by {along}: {_framed(tables['cells'], 'place')}.",
        tables,
    )


def _simplex(problem: ClassProblem, _evidence: Evidence) -> Picture:
    tables = _tables(SimplexDisplay, problem)
    beyond = int((tables["cells"]["adjusted"] <= 0.05).sum())
    return Picture(
        "simplex",
        "All three probabilities at once",
        "Each corner is certainty of one class. Arrows lead from the mean prediction of rows alike to how often the classes "
        "happened there; towards the middle they say over-confidence.",
        f"Map of three classes with an arrow a cell: {beyond} of "
        f"{how_many(tables['cells'].n_rows, 'cell is', 'cells are')} beyond chance.",
        tables,
    )


def _null(problem: ClassProblem, evidence: Evidence) -> Picture:
    label = "calibration error of the confidence" if problem.kind == "multi-class" else "calibration error"
    return null_of(problem, evidence.pool, problem.error, "error", label)


def _tables(display: Any, problem: ClassProblem, **options: Any) -> dict[str, Table]:
    """The tables of a display, with the settings of the problem."""
    size = len(problem) * max(1, _n_classes(problem) // 10)
    options = {"n_resamples": affordable(min(199, problem.n_resamples), size, MAP_WORK, least=99), **options}
    if problem.clusters is not None:
        options["clusters"] = problem.clusters.codes
    made = display.from_predictions(
        problem.targets,
        problem.predictions,
        sample_weight=problem.weights,
        rng=problem.fresh_seeds,
        engine=problem.engine,
        **options,
    )
    tables: dict[str, Table] = made.tables
    return tables


def _n_classes(problem: ClassProblem) -> int:
    shape = problem.predictions.probs.shape
    return int(shape[1]) if len(shape) == 2 else 2


def _outside(tables: dict[str, Table]) -> np.ndarray:
    return beyond_of(tables["curve"], settings_of(tables))


def _beyond(tables: dict[str, Table], noun: str) -> str:
    """How many points chance does not explain, and the furthest of them."""
    curve, outside = tables["curve"], _outside(tables)
    beyond = how_many(int(outside.sum()), "lies", "lie")
    said = f"{how_many(curve.n_rows, noun)}: {beyond} beyond what chance shows"
    if not outside.any():
        return said
    gap = np.abs(curve["predicted"] - curve["observed"])
    worst = int(np.argmax(np.where(outside, gap, -1)))
    predicted, observed = percent(curve["predicted"][worst]), percent(curve["observed"][worst])
    return f"{said}; the furthest claims {predicted}, and {observed} came true"


def _framed(cells: Table, noun: str) -> str:
    """How many cells are beyond chance, and the furthest."""
    outside = cells["adjusted"] <= 0.05
    said = f"{int(outside.sum())} of {how_many(cells.n_rows, f'{noun} is', f'{noun}s are')} beyond chance"
    if not outside.any():
        return said
    worst = int(np.nanargmax(np.where(outside, np.abs(cells["gap"]), -1)))
    side = "more" if cells["gap"][worst] > 0 else "less"
    points = f"{100 * abs(cells['gap'][worst]):.1f} points {side} than happened"
    named = [str(cells[name][worst]) for name in ("favoured", "class", "outcome") if name in cells]
    return f"{said}; the furthest ({', '.join(named)}) claims {points}"


def outline_of_classes(problem: ClassProblem, by: Mapping[str, ArrayLike]) -> Outline[Evidence]:
    """The parts of the report."""
    (slicings, missing), measures = split_slicings(slicings_of(problem, by)), measures_of(problem)
    noun = "label" if problem.kind == "multi-label" else "class"
    each = [] if problem.kind == "binary" or problem.untested else [(Step(f"Each {noun}"), partial(by_class, problem))]
    return Outline(
        subject=f"event: {problem.lens.events(problem.predictions)[0].name}" if problem.kind == "binary" else "",
        gather=(resamples(problem.n_resamples), partial(_gathered, problem, measures, slicings)),
        numbers=[(measure.step, partial(_number, problem, measure)) for measure in measures],
        pictures=class_pictures(problem),
        sections=[*each, *((slicing.step, partial(_slices, problem, slicing)) for slicing in slicings)],
        judge=partial(judge_classes, problem),
        notes=partial(_notes, problem, missing),
    )


def _notes(problem: ClassProblem, missing: Sequence[str]) -> Sequence[str]:
    return [*class_notes(problem), *missing]


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
    if problem.untested is not None:
        return undecided(problem)
    pvalue, tests = evidence.pvalue, evidence.in_words(len(problem))
    if pvalue > DOUBT:
        return consistent(pvalue, tests, numbers[0], problem, "probabilities")
    clearest = clearest_slice(problem, evidence.pool, evidence.slicings, DOUBT)
    fault: Fault | None = None
    if evidence.pvalue_of_all_rows > DOUBT:
        fault = slice_fault(clearest, Finding.TOO_HIGH, Finding.TOO_LOW)
    fault = fault or fault_of_classes(problem, None if clearest is None else (clearest.name, clearest.rows))
    return alarmed(fault, pvalue, tests, numbers, clearest, "probabilities", is_small(problem, evidence, numbers[0]))


def _gathered(problem: ClassProblem, measures: Sequence[KeyMeasure], slicings: Sequence[Slicing]) -> Evidence:
    resampled = {m.key: m.estimator for m in measures if m.key not in UNTESTED}
    each = {
        "binary": {},
        "multi-class": {"class-wise error": EACH},
        "multi-label": {"error": EACH, "rate": EACH_MEAN, "tails": EACH_TAIL},
    }
    tested = {**resampled, **means_to_test(problem), **tails_to_test(problem)}
    evidence = gather(problem, tested, slicings, each[problem.kind])
    if problem.clusters is not None:
        return _without_rare_events(problem, evidence)
    return label_evidence(problem, evidence) if problem.kind == "multi-label" else evidence


def rare_events(problem: ClassProblem) -> np.ndarray:
    """Which classes or labels are too rare to be tested by themselves with these clusters."""
    if problem.clusters is None:
        return np.zeros(len(events_of(problem)), dtype=bool)
    targets, weights, clusters = to_numpy(problem.targets), problem.weights, problem.clusters
    found = [ClusterSkewness.of_events((event,), targets, weights, clusters) for event in events_of(problem)]
    return np.array([float(skewness.surprises()[0][0]) < MIN_SURPRISES for skewness in found])


def _without_rare_events(problem: ClassProblem, evidence: Evidence) -> Evidence:
    """Evidence in which single classes or labels that are too rare show nothing."""
    single = [name for name in (EACH, EACH_MEAN, EACH_TAIL) if name in evidence.pool.values]
    if not single or not (rare := rare_events(problem)).any():
        return evidence
    values = {**evidence.pool.values, **{name: np.where(rare, 0.0, evidence.pool.values[name]) for name in single}}
    return replace(evidence, pool=replace(evidence.pool, values=values))


def _number(problem: ClassProblem, measure: KeyMeasure, evidence: Evidence) -> KeyNumber:
    return number_of(problem, measure, evidence.pool)


def _slices(problem: ClassProblem, slicing: Slicing, evidence: Evidence) -> Section:
    return by_column(problem, evidence.pool, slicing, evidence.slicings)


RESAMPLES_PER_LABEL = 160
"""Resamples per label that let the smallest p-value of all labels together reach 0.0125."""


def by_class(problem: ClassProblem, evidence: Evidence) -> Section:
    """Each class, or each label, against the rest; the clearest evidence first, and only that where there are many."""
    events, pvalues = events_of(problem), _pvalues(problem, evidence)
    noun = "label" if problem.kind == "multi-label" else "class"
    how = "Holm" if isinstance(evidence, LabelEvidence) else "Westfall and Young"
    errors = None if problem.clusters is None else _error_of_each(problem)
    few = " Those without one are too rare in these clusters." if np.isnan(pvalues).any() else ""
    observed = [event.observed(problem.targets) for event in events]
    means = [means_of(e.probability, h, problem.weights) for e, h in zip(events, observed, strict=True)]
    rows = [int(h.sum()) for h in observed]
    table = ranked(evidence.pool, EACH, [e.name for e in events], rows, means, pvalues, errors)
    more = f" The {MAX_ROWS} with the clearest evidence, of {len(events)}." if len(events) > MAX_ROWS else ""
    remark = f"Every {noun} against the rest; p-values allow for their number ({how}).{few}{more}"
    return Section(f"Each {noun}", noun, remark, Table({name: column[:MAX_ROWS] for name, column in table.items()}))


def _pvalues(problem: ClassProblem, evidence: Evidence) -> np.ndarray:
    """Of each class or label, allowing for their number; none of those that are too rare in clusters."""
    found = holm(evidence.labels) if isinstance(evidence, LabelEvidence) else evidence.pool.adjusted([EACH])
    return found if problem.clusters is None else np.where(rare_events(problem), np.nan, found)


def _error_of_each(problem: ClassProblem) -> list[float]:
    """The error of each class or label."""
    statistic = ECE(problem.error.bins, lens=_lens_of_each(problem)).given(problem.predictions, problem.weights)
    assert isinstance(statistic, BinnedStatistic)
    return [float(error) for error in statistic.each(to_numpy(problem.targets)[None])[0]]


def label_evidence(problem: ClassProblem, evidence: Evidence) -> LabelEvidence:
    """The exact p-value of every label by itself, resampled more often where it is the smallest that there can be.

    A p-value may be replaced by that of a second test whenever it is as small as it can be: below that least value the
    second test alone decides, and above it nothing is gained. So the level holds.
    """
    pool, events = evidence.pool, events_of(problem)
    pvalues = [_together(pool, i) for i in range(len(events))]
    least = 1 / (pool.n_resamples + 1)
    draws = affordable(RESAMPLES_PER_LABEL * len(events) - 1, len(problem), TEST_WORK // 4, least=1)
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
    return _lens_of_each(problem).events(problem.predictions)


def _lens_of_each(problem: ClassProblem) -> Lens:
    return MultiLabel() if isinstance(problem.predictions, Bernoulli) else ClassWise()


SMALL_ERROR = 0.01
"""The largest average error that is called small."""

SMALL_SHARE = 0.05
"""A small error is also no more than this share of the average uncertainty: for a rare event a tenth of a point may be much."""


def is_small(problem: ClassProblem, evidence: Evidence, main: KeyNumber) -> bool:
    """Whether the average error is below a point, and small beside the uncertainty that the predictions state.

    The upper end of the interval counts, so that few rows never show that an error is small. No single class and no slice may
    be much worse, nor the highest and the lowest claims, and nothing may have happened that was called impossible.
    """
    if problem.clusters is not None:  # no limits are known
        return False
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
