"""The pictures of a report on class probabilities, each with how to read it and what is seen."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from calibrant.plots.reliability_diagram import ReliabilityDisplay, beyond_of, settings_of
from calibrant.reports.class_problem import ClassProblem
from calibrant.reports.evidence import Evidence
from calibrant.reports.model import Picture
from calibrant.results import percent


def class_pictures(problem: ClassProblem) -> Sequence[tuple[str, Callable[[Evidence], Picture]]]:
    """The pictures by the names of their steps."""
    return [("Reliability curve", partial(_reliability, problem))]


def reliability_of(problem: ClassProblem) -> Picture:
    """The reliability diagram of the report's event; all labels of multi-label predictions share one."""
    what = "confidence in the favoured class" if problem.kind == "multi-class" else "predictions"
    display = ReliabilityDisplay.from_predictions(
        problem.targets,
        problem.predictions,
        axis="auto",
        n_resamples=problem.n_resamples,
        sample_weight=problem.weights,
        rng=problem.fresh_seeds,
        engine=problem.engine,
    )
    curve = display.tables["curve"]
    outside = beyond_of(curve, settings_of(display.tables))
    seen = f"{int(outside.sum())} of {curve.n_rows} groups lie beyond what chance shows"
    if outside.any():
        worst = int(np.argmax(np.where(outside, np.abs(curve["gap"]), -1)))
        claimed, happened = percent(curve["predicted"][worst]), percent(curve["observed"][worst])
        seen += f"; the furthest claims {claimed} and {happened} came true"
    return Picture(
        "reliability",
        "What was claimed, what happened",
        f"Each mark is a group of rows with similar {what}; larger marks hold more. On the dashed line, claims come true as "
        "often as stated. A calibrated model leaves the band in about one group of twenty.",
        f"Reliability diagram, observed frequency against predicted probability: {seen}.",
        display.tables,
    )


def _reliability(problem: ClassProblem, _evidence: Evidence) -> Picture:
    return reliability_of(problem)
