"""Several models of the same targets: their numbers, how far they lie apart, and which is better."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant._validate import InputError
from calibrant.distributions.empirical.quantiles import central_levels
from calibrant.distributions.reading.conversion import Classes
from calibrant.inference.multiplicity import holm
from calibrant.inference.proportions import coverage
from calibrant.plots.style import distinct_names
from calibrant.reports.class_report.class_outline import curve_of
from calibrant.reports.class_report.class_problem import ClassProblem
from calibrant.reports.core.model import LAST, KeyNumber, Outline, Page, Picture, Progress, Section, Step, Verdict
from calibrant.reports.core.problem import ReportProblem, Slicing, columns_of, slicings_of
from calibrant.reports.evaluation import Report, Together, planned, report_of, settings_of, silent, suspicions_of
from calibrant.reports.forecast_report.forecast_outline import COVERED
from calibrant.reports.forecast_report.forecast_problem import ForecastProblem
from calibrant.reports.model_differences import (
    CRPS_LOSS,
    LOG_LOSS,
    Losses,
    all_equal,
    differences_of,
    error_of,
    judge_models,
    losses_of,
    table_of,
)
from calibrant.reports.notes import cluster_notes
from calibrant.reports.render.html import charts_of, rendered
from calibrant.results import SCHEMA, Table, how_many
from calibrant.results.result import plain_data
from calibrant.results.text import escaped
from calibrant.typing import ArrayLike, Engine, Seed

LETTERS = 28
"""Letters of a model's name at most where several stand in one line."""

MAX_MODELS = 12
"""Models that a page compares."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Page):
    """Several models of the same targets, as data; :func:`calibrant.compare` makes it.

    ``reports`` has the report of each model without advice, slices and pictures: its numbers with intervals and null bands.
    ``differences`` has a row per measure and a pair of models, ``a - b``, paired row by row; its p-values allow for all rows of
    the table (Holm). ``sections`` have the scores of slices.

    >>> from calibrant import compare
    >>> page = compare([0, 1] * 20, {"sure": [0.1, 0.9] * 20, "unsure": [0.4, 0.6] * 20})
    >>> list(page.reports)
    ['sure', 'unsure']
    """

    title: str
    n: int
    kind: str
    verdict: Verdict
    reports: Mapping[str, Report]
    differences: Table
    pictures: tuple[Picture, ...]
    sections: tuple[Section, ...]
    notes: tuple[str, ...]
    settings: Mapping[str, Any]

    @property
    def numbers(self) -> Table:
        """The numbers of all models that have them in common, one row per number and model."""
        rows = list(numbers_in_common(self.reports))
        return Table(
            number=[x.label for _, x in rows],
            model=np.array([name for name, _ in rows], dtype=object),
            value=[x.value for _, x in rows],
            low=[np.nan if x.interval is None else x.interval.low for _, x in rows],
            high=[np.nan if x.interval is None else x.interval.high for _, x in rows],
            null_low=[np.nan if x.null_band is None else x.null_band.low for _, x in rows],
            null_high=[np.nan if x.null_band is None else x.null_band.high for _, x in rows],
            pvalue=[np.nan if x.pvalue is None else x.pvalue for _, x in rows],
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        head = {"schema": SCHEMA, "kind": "comparison", "title": self.title, "problem": self.kind}
        parts = ("n", "verdict", "numbers", "differences", "pictures", "sections", "reports", "notes", "settings")
        return head | plain_data(self, *parts)

    def to_html(self) -> str:
        """One self-contained page."""

        return to_html(self)

    def to_markdown(self) -> str:
        """Verdict, evidence and differences in GitHub's Markdown, for a comment on a pull request."""
        evidence = "\n".join(f"- {escaped(sentence, longest=600)}" for sentence in self.verdict.evidence)
        heading = f"### {escaped(self.verdict.headline, longest=600)}"
        title = f"{escaped(self.title)} · {how_many(self.n, 'row')} · {escaped(self.kind)}"
        return "\n\n".join([heading, title, evidence, self.differences.to_markdown()]) + "\n"


def compare(
    y_true: ArrayLike,
    models: Mapping[str, ArrayLike],
    *,
    by: ArrayLike | Mapping[str, ArrayLike] | None = None,
    sample_weight: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    time: ArrayLike | None = None,
    block: int | None = None,
    columns: ArrayLike | Mapping[str, ArrayLike] | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    title: str = "Comparison of models",
    n_resamples: int = 999,
    rng: Seed = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Which of several models of the same targets is better, and is it chance? Scores and calibration errors, paired.

    ``models`` maps names to predictions; of numbers and counts they may be of different families, as an ensemble and a normal
    distribution. Differences of scores have skewness-corrected intervals, those of calibration errors a bootstrap of the rows, the
    same for all models (:class:`~calibrant.PairedDifference`); p-values allow for all comparisons (Holm). ``clusters``,
    ``time``, ``block`` and ``columns`` are those of :func:`calibrant.evaluate`.
    One estimator alone: :func:`calibrant.inference.differences`. A model and its recalibration:
    :func:`calibrant.reports.before_and_after`.

    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(400)
    >>> result = compare((rng.random(400) < p) * 1, {"plain": p, "bold": (p > 0.5) * 0.9 + 0.05}, n_resamples=199, rng=0)
    >>> result.verdict.headline
    'plain is better calibrated than bold, and has the lower log loss.'
    """
    plans = _plans(
        y_true,
        models,
        sample_weight,
        n_resamples,
        rng,
        engine,
        Together(clusters, time, block),
        Classes(labels, pos_label),
    )
    problems = {name: problem for name, (problem, _) in plans.items()}
    first = next(iter(problems.values()))
    slicing = columns_of(by, len(first) + first.idle, sample_weight)
    is_said = not (clusters is None and time is None and block is None)
    beside = columns_of(columns, len(first) + first.idle, sample_weight, "columns")
    cautions = [] if is_said else [found.in_words() for found in suspicions_of(first, beside, slicing)]
    step, total = progress or silent, float(len(problems) + 1)
    reports = {}
    for i, (name, (problem, outline)) in enumerate(plans.items()):
        step(Step(name, 1.0), i, total)
        reports[name] = report_of(problem, replace(outline, pictures=()), name, silent)
    step(Step("Differences", 1.0), total - 1, total)
    first, scores = next(iter(problems.values())), list(losses_of(list(problems.values())))
    differences, error = differences_of(problems, scores), error_of(first)[0]
    verdict = judge_models(differences, reports, scores[0].measure if scores else None, error)
    result = Comparison(
        title=title,
        n=len(first),
        kind=first.kind,
        verdict=replace(verdict, evidence=(*cautions, *verdict.evidence)),
        reports=reports,
        differences=table_of(differences),
        pictures=pictures_of(problems, reports),
        sections=_sections(first, list(problems), scores, slicing),
        notes=(*cautions, *_notes(problems, scores)),
        settings=settings_of(first),
    )
    step(LAST, total, total)
    return result


def _plans(
    y_true: ArrayLike,
    models: Mapping[str, ArrayLike],
    sample_weight: ArrayLike | None,
    n_resamples: int,
    rng: Seed,
    engine: Engine | None,
    together: Together,
    names: Classes,
) -> dict[str, tuple[ReportProblem, Outline[Any]]]:
    """The checked problems, all of one kind, and what their reports consist of."""
    if not isinstance(models, Mapping) or not 2 <= len(models) <= MAX_MODELS:
        raise InputError(f"models must be 2 to {MAX_MODELS} predictions by name, {{'a': y_pred, 'b': other_pred}}")
    found: dict[str, tuple[ReportProblem, Outline[Any]]] = {}
    together = Together(together.of(y_true, next(iter(models.values())), names)[0])  # the same for all
    for name, y_pred in models.items():
        try:
            found[name] = planned(y_true, y_pred, None, sample_weight, n_resamples, rng, engine, together, names)
        except InputError as error:
            raise InputError(f"model {name!r}: {error}") from error
        rng = found[name][0].fresh_seeds
    kinds = {name: _target_of(problem) for name, (problem, _) in found.items()}
    if len(set(kinds.values())) > 1:
        raise InputError(
            f"models must predict the same: {', '.join(f'{name!r} {kind}' for name, kind in kinds.items())}"
        )
    return found


def _target_of(problem: ReportProblem) -> str:
    """What is predicted; numbers and counts may be mixed, as families of one may stand for the other."""
    return "numbers" if isinstance(problem, ForecastProblem) and problem.kind == "counts" else problem.kind


def shared_numbers(reports: Mapping[str, Report]) -> list[KeyNumber]:
    """Those of the first model that all others have, too: the log loss, other scores, and then errors."""
    first, *others = reports.values()
    found = [x for x in first.numbers if all(x.key in [y.key for y in other.numbers] for other in others)]
    return sorted(found, key=lambda x: 0 if x.key == "log" else 1 if x.is_score else 2)


def numbers_in_common(reports: Mapping[str, Report]) -> Iterator[tuple[str, KeyNumber]]:
    """The numbers that all models have, each with the name of its model."""
    for like in shared_numbers(reports):
        yield from ((name, _number(report, like)) for name, report in reports.items())


def _sections(
    problem: ReportProblem, names: Sequence[str], scores: Sequence[Losses], by: Mapping[str, ArrayLike]
) -> tuple[Section, ...]:
    """The first score of every model in every slice, with p-values of there being no difference."""
    if not scores or not by:
        return ()
    slicings, losses = slicings_of(problem, by), scores[0]
    slicings = tuple(part for part in slicings if part.groups)
    if not slicings:
        return ()
    alone = [[_all_equal(problem, losses, rows) for rows in part.rows] for part in slicings]
    adjusted = iter(holm(np.concatenate(alone)))
    tables = [_slices(part, problem, names, losses, [next(adjusted) for _ in part.rows]) for part in slicings]
    remark = f"{losses.measure.name} of each model; p-values of there being no difference allow for all slices (Holm)."
    return tuple(
        Section(f"By {part.name}", part.name, f"{remark} {part.remark}".strip(), table)
        for part, table in zip(slicings, tables, strict=True)
    )


def _all_equal(problem: ReportProblem, losses: Losses, rows: np.ndarray) -> float:
    clusters = None if problem.clusters is None else problem.clusters[rows]
    return all_equal(losses.rows[:, rows], _at(problem, rows), clusters)


def _slices(
    part: Slicing, problem: ReportProblem, names: Sequence[str], losses: Losses, pvalues: Sequence[float]
) -> Table:
    means = [np.average(losses.rows[:, rows], axis=1, weights=_at(problem, rows)) for rows in part.rows]
    order = np.argsort(pvalues, kind="stable")
    columns = {
        f"{losses.measure.name} of {name}": np.array([mean[i] for mean in means])[order] for i, name in enumerate(names)
    }
    groups = np.array(part.groups, dtype=object)[order]
    rows = np.array([len(rows) for rows in part.rows])[order]
    return Table({"group": groups, "rows": rows, **columns, "pvalue": np.array(pvalues)[order]})


def _at(problem: ReportProblem, rows: np.ndarray) -> np.ndarray | None:
    return None if problem.weights is None else problem.weights[rows]


def _notes(problems: Mapping[str, ReportProblem], scores: Sequence[Losses]) -> tuple[str, ...]:
    """What a reader should know before believing the differences."""
    found = cluster_notes(next(iter(problems.values())))
    if found:
        found.append(
            "Calibration errors of models are not compared: rows of a cluster depend on each other, and no limits are known that "
            "allow for it. Differences of scores have some."
        )
    members = [name for name, one in problems.items() if isinstance(one, ForecastProblem) and one.is_ensemble]
    if members and len(members) < len(problems) and any(score.measure is CRPS_LOSS for score in scores):
        found.append(
            f"{', '.join(members)}: members are scored as they are; what they were drawn from has a smaller CRPS, the more so "
            "the fewer members there are."
        )
    if not any(score.measure is LOG_LOSS for score in scores):
        found.append("The log loss is infinite, or there is no density, for at least one model: it is not compared.")
    return tuple(found)


def pictures_of(problems: Mapping[str, ReportProblem], reports: Mapping[str, Report]) -> tuple[Picture, ...]:
    """The calibration error of every model beside its null band, every score that all have, and all curves."""
    first = next(iter(reports.values()))
    shared = [x for x in shared_numbers(reports) if x is first.numbers[0] or x.is_score]
    rows = [rows_of(x, reports) for x in shared if np.isfinite([_number(r, x).value for r in reports.values()]).all()]
    return (curves_of(problems), *rows)


def rows_of(x: KeyNumber, reports: Mapping[str, Report]) -> Picture:
    """A row per model: its value, interval and null band."""
    found = {name: _number(report, x) for name, report in reports.items()}
    scale = 100.0 if x.unit == "fraction" else 1.0
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
    unit = f"{x.label}, %" if x.unit == "fraction" else x.label
    best = list(found)[int(np.argmin(values))]
    return Picture(
        "comparison",
        f"{x.label} of every model",
        f"{x.meaning} With its 95 % interval, beside what each model would show if it were calibrated.",
        f"{x.label} of {len(found)} models; the smallest is that of {best}, {x.text(float(values.min()))}.",
        {"models": table, "settings": Table(name=[unit], unit=["percent" if scale == 100 else "number"])},
    )


def curves_of(problems: Mapping[str, ReportProblem]) -> Picture:
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


def _curve(problem: ReportProblem, name: str) -> Table:
    if isinstance(problem, ClassProblem):
        curve = curve_of(problem)
        predicted, observed = curve["predicted"], curve["observed"]
    else:
        assert isinstance(problem, ForecastProblem)
        levels, fan = problem.pit, problem.fan
        sizes = COVERED if fan is None else central_levels(fan)
        if not sizes:
            return Table(model=np.array([], dtype=object), predicted=np.zeros(0), observed=np.zeros(0))
        table = coverage(levels.targets, levels.predictions, levels=sizes, sample_weight=levels.weights)
        predicted, observed = table["level"], table["observed"]
    names = np.array([name] * len(predicted), dtype=object)
    return Table(model=names, predicted=predicted, observed=observed)


def _number(report: Report, like: KeyNumber) -> KeyNumber:
    return next(x for x in report.numbers if x.key == like.key)


PARTS = {
    "numbers": "Numbers",
    "differences": "Differences",
    "pictures": "Pictures",
    "slices": "Slices",
    "notes": "Data",
    "methods": "Methods",
}


def to_html(comparison: "Comparison") -> str:
    """The page, in the frame that all pages share."""
    parts = {anchor: words for anchor, words in PARTS.items() if anchor != "slices" or comparison.sections}
    return rendered(
        "comparison.html.jinja",
        comparison,
        download="calibrant-comparison.json",
        parts=parts,
        charts=charts_of(comparison.pictures),
        numbers=numbers_of(comparison),
        differences=short_names(comparison),
    )


def short_names(comparison: "Comparison") -> Table:
    """The differences with names that leave room for the numbers."""
    names = list(comparison.reports)
    short = dict(zip(names, distinct_names(names, LETTERS), strict=True))
    columns = dict(comparison.differences)
    for side in ("a", "b"):
        columns[side] = np.array([short[name] for name in columns[side].tolist()], dtype=object)
    return Table(columns)


def numbers_of(comparison: "Comparison") -> Table:
    """The numbers of all models as people read them, each in its unit."""
    shared, rows = comparison.numbers, list(numbers_in_common(comparison.reports))
    intervals = [
        "" if x.interval is None else f"{x.text(x.interval.low)} to {x.text(x.interval.high)}" for _, x in rows
    ]
    return Table(
        {
            "number": shared["number"],
            "model": shared["model"],
            "value": [x.text(x.value) for _, x in rows],
            "95 % interval": intervals,
            "if calibrated": [x.band() for _, x in rows],
            "pvalue": shared["pvalue"],
        }
    )
