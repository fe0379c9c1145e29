"""The pictures of a report on class probabilities, each with how to read it and what is seen."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from calibrant.planning.affordable import affordable
from calibrant.plots.classification.classwise import ClasswiseDisplay
from calibrant.plots.classification.confusion import ConfusionDisplay
from calibrant.plots.classification.reliability import ReliabilityDisplay, beyond_of, settings_of
from calibrant.plots.classification.simplex_plot import SimplexDisplay
from calibrant.plots.comparisons.witness_plot import WitnessDisplay
from calibrant.reports.class_report.class_problem import ClassProblem
from calibrant.reports.core.evidence import Evidence, null_of
from calibrant.reports.core.model import Picture, Step
from calibrant.results import Table, how_many, percent

MAP_WORK = 100_000_000
"""Resampled targets that a map or a smooth curve may cost."""

Make = Callable[[ClassProblem], Picture]


def class_pictures(problem: ClassProblem) -> Sequence[tuple[Step, Callable[[Evidence], Picture]]]:
    """The pictures by the names of their steps."""
    found: list[tuple[Step, Make]] = [(Step("Reliability curve", 2.0), reliability_of)]
    if problem.kind == "binary":
        found += [(Step("Smooth reliability curve", 15.0), _smooth), (Step("Witness", 10.0), _witness)]
    else:
        found.append((Step("Reliability of each class", 6.0), _panels))
    if problem.kind == "multi-class":
        found += [(Step("Confusion of confidence", 7.0), _confusion), (Step("Witness", 10.0), _witness)]
        found += [(Step("Map of three classes"), _simplex)] if _n_classes(problem) == 3 else []
    steps: list[tuple[Step, Callable[[Evidence], Picture]]] = [
        (step, partial(_made, make, problem)) for step, make in found
    ]
    if problem.kind == "multi-label":  # no mean over labels has an exact test
        return steps
    return [*steps, (Step("Resampled errors"), partial(_null, problem))]


def reliability_of(problem: ClassProblem) -> Picture:
    """The reliability diagram of the report's event; all labels of multi-label predictions share one."""
    what = "confidence in the favoured class" if problem.kind == "multi-class" else "predictions"
    tables = _tables(ReliabilityDisplay, problem, axis="auto", n_resamples=problem.n_resamples)
    return Picture(
        "reliability",
        "What was claimed, what happened",
        f"Each mark is a group of rows with similar {what}; larger marks hold more. On the dashed line, claims come true as "
        "often as stated. A calibrated model leaves the band in about one group of twenty.",
        f"Reliability diagram, observed frequency against predicted probability in {_beyond(tables, 'group')}.",
        tables,
    )


def curve_of(problem: ClassProblem) -> Table:
    """The curve of that diagram, without the band."""
    return _tables(ReliabilityDisplay, problem, axis="auto", band=None)["curve"]


def _smooth(problem: ClassProblem) -> Picture:
    tables = _tables(ReliabilityDisplay, problem, axis="auto", method="smooth")
    return Picture(
        "reliability",
        "The same without groups",
        "Observed frequency as a smooth curve of the prediction, which shows what groups may hide. A calibrated model leaves the "
        "band over about a twentieth of its length.",
        f"Smooth reliability curve, observed frequency against predicted probability at {_beyond(tables, 'point')}.",
        tables,
    )


def _panels(problem: ClassProblem) -> Picture:
    tables = _tables(ClasswiseDisplay, problem, axis="auto")
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


def _confusion(problem: ClassProblem) -> Picture:
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


def _witness(problem: ClassProblem) -> Picture:
    tables = _tables(WitnessDisplay, problem)
    return Picture(
        "witness",
        "Where it goes wrong",
        "By the favoured class and the confidence in it: how much more was claimed than came true. Orange: over-confident; blue: "
        "under-confident. Dots mark places beyond chance; a calibrated model has none in nineteen of twenty data sets.",
        f"Map of gaps by favoured class and confidence: {_framed(tables['cells'], 'place')}.",
        tables,
    )


def _simplex(problem: ClassProblem) -> Picture:
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


def _made(make: Make, problem: ClassProblem, _evidence: Evidence) -> Picture:
    return make(problem)


def _tables(display: Any, problem: ClassProblem, **options: Any) -> dict[str, Table]:
    """The tables of a display, with the settings of the problem."""
    size = len(problem) * max(1, _n_classes(problem) // 10)
    options = {"n_resamples": affordable(min(199, problem.n_resamples), size, MAP_WORK, least=99), **options}
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
