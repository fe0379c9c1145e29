"""The pictures of several models: their numbers in rows, and their curves in one diagram."""

from collections.abc import Mapping

import numpy as np

from calibrant.distributions.quantiles import central_levels
from calibrant.inference.coverage import coverage
from calibrant.reports.class_pictures import curve_of
from calibrant.reports.class_problem import ClassProblem
from calibrant.reports.forecast_pictures import COVERED
from calibrant.reports.forecast_problem import ForecastProblem
from calibrant.reports.model import KeyNumber, Picture
from calibrant.reports.problem import Problem
from calibrant.reports.report import Report
from calibrant.results import Table


def pictures_of(problems: Mapping[str, Problem], reports: Mapping[str, Report]) -> tuple[Picture, ...]:
    """The calibration error of every model beside its null band, every score that all have, and all curves."""
    first, *others = reports.values()
    shared = [x for x in first.numbers if all(x.label in [y.label for y in other.numbers] for other in others)]
    shared = [
        x
        for x in shared
        if x is first.numbers[0] or x.label in ("Log loss", "Brier score", "CRPS", "Energy score", "Pinball loss")
    ]
    rows = [rows_of(x, reports) for x in shared if np.isfinite([_number(r, x).value for r in reports.values()]).all()]
    return (curves_of(problems), *rows)


def rows_of(x: KeyNumber, reports: Mapping[str, Report]) -> Picture:
    """A row a model: its value, interval and null band."""
    found = {name: _number(report, x) for name, report in reports.items()}
    scale = 100.0 if x.unit == "percent" else 1.0
    ends = {
        name: [getattr(y, part, None) for y in found.values()]
        for name, part in (("interval", "interval"), ("null", "null_band"))
    }
    values = np.array([y.value for y in found.values()])
    table = Table(
        model=np.array(list(found), dtype=object),
        value=scale * values,
        pvalue=[1.0 if y.pvalue is None else y.pvalue for y in found.values()],
        **{
            column: scale * np.array([np.nan if end is None else getattr(end, side) for end in ends[part]])
            for column, part, side in (
                ("low", "interval", "low"),
                ("high", "interval", "high"),
                ("null_low", "null", "low"),
                ("null_high", "null", "high"),
            )
        },
    )
    unit = f"{x.label}, %" if x.unit == "percent" else x.label
    best = list(found)[int(np.argmin(values))]
    return Picture(
        "comparison",
        f"{x.label} of every model",
        f"{x.meaning} With its 95 % interval, beside what each model would show if it were calibrated.",
        f"{x.label} of {len(found)} models; the smallest is that of {best}, {x.text(float(values.min()))}.",
        {"models": table, "settings": Table(name=[unit])},
    )


def curves_of(problems: Mapping[str, Problem]) -> Picture:
    """What every model claimed, and what happened, in one diagram."""
    first = next(iter(problems.values()))
    tables = {f"curve_{i}": _curve(problem, name) for i, (name, problem) in enumerate(problems.items())}
    is_class = isinstance(first, ClassProblem)
    how = (
        "Each mark is a group of rows with similar predictions. On the dashed line, claims come true as often as stated."
        if is_class
        else "Share of outcomes in central intervals of every size. Below the dashed line, intervals are too narrow."
    )
    words = "Observed frequency against predicted probability" if is_class else "Observed against promised coverage"
    return Picture(
        "curves",
        "What was claimed, what happened",
        how,
        f"{words}, a line for each of {len(problems)} models.",
        {**tables, "settings": Table(kind=["classes" if is_class else "coverage"])},
    )


def _curve(problem: Problem, name: str) -> Table:
    if isinstance(problem, ClassProblem):
        curve = curve_of(problem)
        predicted, observed = curve["predicted"], curve["observed"]
    else:
        assert isinstance(problem, ForecastProblem)
        levels, fan = problem.levels, problem.fan
        sizes = COVERED if fan is None else central_levels(fan)
        if not sizes:
            return Table(model=np.array([], dtype=object), predicted=np.zeros(0), observed=np.zeros(0))
        table = coverage(levels.targets, levels.predictions, levels=sizes, sample_weight=levels.weights)
        predicted, observed = table["level"], table["observed"]
    names = np.array([name] * len(predicted), dtype=object)
    return Table(model=names, predicted=predicted, observed=observed)


def _number(report: Report, like: KeyNumber) -> KeyNumber:
    return next(x for x in report.numbers if x.label == like.label)
