"""Several models of the same targets: their numbers, how far they lie apart, and which is better."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant._validate import InputError, check_same_length
from calibrant.inference.multiplicity import holm
from calibrant.reports.build import planned, report_of, settings_of, silent
from calibrant.reports.comparison_pictures import pictures_of
from calibrant.reports.comparison_verdict import judge_models
from calibrant.reports.costs import LAST, Progress
from calibrant.reports.forecast_problem import ForecastProblem
from calibrant.reports.model import Picture, Section, Verdict
from calibrant.reports.model_differences import Losses, all_equal, differences_of, error_of, losses_of
from calibrant.reports.outline import Outline
from calibrant.reports.problem import Problem
from calibrant.reports.report import Report
from calibrant.reports.saving import Page
from calibrant.reports.slices import Slicing, slicings_of
from calibrant.results import SCHEMA, Table, how_many
from calibrant.results.markdown import escaped
from calibrant.typing import ArrayLike, Engine, Seed

MOST = 12
"""Models that a page compares."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Page):
    """Several models of the same targets, as data; :func:`calibrant.compare` makes it.

    ``reports`` has the report of each model without advice, slices and pictures: its numbers with intervals and null bands.
    ``differences`` has a row a measure and a pair of models, ``a - b``, paired row by row; its p-values allow for all rows of
    the table (Holm). ``sections`` have the scores of slices.
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
        """The numbers of all models that have them in common, a row a number and a model."""
        common = [x.label for x in next(iter(self.reports.values())).numbers]
        common = [label for label in common if all(label in _labels(report) for report in self.reports.values())]
        rows = [
            (label, name, next(x for x in report.numbers if x.label == label))
            for label in common
            for name, report in self.reports.items()
        ]
        return Table(
            number=[label for label, _, _ in rows],
            model=np.array([name for _, name, _ in rows], dtype=object),
            value=[x.value for _, _, x in rows],
            low=[np.nan if x.interval is None else x.interval.low for _, _, x in rows],
            high=[np.nan if x.interval is None else x.interval.high for _, _, x in rows],
            null_low=[np.nan if x.null_band is None else x.null_band.low for _, _, x in rows],
            null_high=[np.nan if x.null_band is None else x.null_band.high for _, _, x in rows],
            pvalue=[np.nan if x.pvalue is None else x.pvalue for _, _, x in rows],
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "schema": SCHEMA,
            "kind": "comparison",
            "title": self.title,
            "problem": self.kind,
            "n": self.n,
            "verdict": self.verdict.to_dict(),
            "numbers": self.numbers.to_dict(),
            "differences": self.differences.to_dict(),
            "pictures": [picture.to_dict() for picture in self.pictures],
            "sections": [section.to_dict() for section in self.sections],
            "reports": {name: report.to_dict() for name, report in self.reports.items()},
            "notes": list(self.notes),
            "settings": dict(self.settings),
        }

    def to_html(self) -> str:
        """One self-contained page."""
        from calibrant.reports.comparison_page import to_html

        return to_html(self)

    def to_markdown(self) -> str:
        """Verdict, evidence and differences in GitHub's Markdown, for a comment on a pull request."""
        evidence = "\n".join(f"- {escaped(sentence, longest=600)}" for sentence in self.verdict.evidence)
        heading = f"### {escaped(self.verdict.headline, longest=600)}"
        title = f"{escaped(self.title)} · {how_many(self.n, 'row')} · {escaped(self.kind)}"
        return "\n\n".join([heading, title, evidence, self.differences.to_markdown()]) + "\n"

    def _lines(self) -> list[tuple[str, str]]:
        return [(self.title, self.verdict.headline), *(("", sentence) for sentence in self.verdict.evidence)]


def compare(
    y_true: ArrayLike,
    models: Mapping[str, ArrayLike],
    *,
    by: Mapping[str, ArrayLike] | None = None,
    sample_weight: ArrayLike | None = None,
    title: str = "Comparison of models",
    n_resamples: int = 999,
    rng: Seed = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Which of several models of the same targets is better, and is it chance? Scores and calibration errors, paired.

    ``models`` maps names to predictions; of numbers and counts they may be of different families, as an ensemble and a normal
    distribution. Differences of scores have skewness-corrected intervals, those of calibration errors a bootstrap of the rows, the
    same for all models (:class:`~calibrant.inference.comparison.PairedDifference`); p-values allow for all comparisons (Holm).
    One estimator alone: :func:`calibrant.inference.comparison.compare`. A model and its recalibration:
    :func:`calibrant.reports.before_after.before_and_after`.

    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(400)
    >>> result = compare((rng.random(400) < p) * 1, {"plain": p, "bold": (p > 0.5) * 0.9 + 0.05}, n_resamples=199, rng=0)
    >>> result.verdict.headline
    'plain is better calibrated than bold, and has the lower log loss.'
    """
    plans = _plans(y_true, models, by, sample_weight, n_resamples, rng, engine)
    problems = {name: problem for name, (problem, _) in plans.items()}
    step, total = progress or silent, float(len(problems) + 1)
    reports = {}
    for i, (name, (problem, outline)) in enumerate(plans.items()):
        step(name, i, total)
        reports[name] = report_of(problem, replace(outline, pictures=()), name, silent)
    step("Differences", total - 1, total)
    first, scores = next(iter(problems.values())), list(losses_of(list(problems.values())))
    differences, error = differences_of(problems, scores), error_of(first)[0]
    result = Comparison(
        title=title,
        n=len(first),
        kind=first.kind,
        verdict=judge_models(differences, reports, scores[0].name if scores else None, error),
        reports=reports,
        differences=differences,
        pictures=pictures_of(problems, reports),
        sections=_sections(first, list(problems), scores, by or {}),
        notes=_notes(problems, scores),
        settings=settings_of(first),
    )
    step(LAST, total, total)
    return result


def _plans(
    y_true: ArrayLike,
    models: Mapping[str, ArrayLike],
    by: Mapping[str, ArrayLike] | None,
    sample_weight: ArrayLike | None,
    n_resamples: int,
    rng: Seed,
    engine: Engine | None,
) -> dict[str, tuple[Problem, Outline[Any]]]:
    """The checked problems, all of one kind, and what their reports consist of."""
    if not isinstance(models, Mapping) or not 2 <= len(models) <= MOST:
        raise InputError(f"models must be 2 to {MOST} predictions by name, {{'a': y_pred, 'b': other_pred}}")
    if not isinstance(by, Mapping | None):
        raise InputError("by must map names to columns, such as by={'site': column}")
    found: dict[str, tuple[Problem, Outline[Any]]] = {}
    for name, y_pred in models.items():
        try:
            found[name] = planned(y_true, y_pred, None, sample_weight, n_resamples, rng, engine)
        except InputError as error:
            raise InputError(f"model {name!r}: {error}") from error
        rng = found[name][0].fresh_seeds
    kinds = {name: _target_of(problem) for name, (problem, _) in found.items()}
    if len(set(kinds.values())) > 1:
        raise InputError(
            f"models must predict the same: {', '.join(f'{name!r} {kind}' for name, kind in kinds.items())}"
        )
    return found


def _target_of(problem: Problem) -> str:
    """What is predicted; numbers and counts may be mixed, as families of one may stand for the other."""
    return "numbers" if isinstance(problem, ForecastProblem) and problem.kind == "counts" else problem.kind


def _labels(report: Report) -> set[str]:
    return {x.label for x in report.numbers}


def _sections(
    problem: Problem, names: Sequence[str], scores: Sequence[Losses], by: Mapping[str, ArrayLike]
) -> tuple[Section, ...]:
    """The first score of every model in every slice, with p-values of there being no difference."""
    if not scores or not by:
        return ()
    for name, column in by.items():
        check_same_length(len(column), len(problem), f"by[{name!r}]", "y_true")
    slicings, losses = slicings_of(problem, by), scores[0]
    alone = [[all_equal(losses.rows[:, rows], _at(problem, rows)) for rows in part.rows] for part in slicings]
    adjusted = iter(holm(np.concatenate(alone)))
    tables = [_slices(part, problem, names, losses, [next(adjusted) for _ in part.rows]) for part in slicings]
    remark = f"{losses.name} of each model; p-values of there being no difference allow for all slices (Holm)."
    return tuple(
        Section(f"By {part.name}", part.name, f"{remark} {part.remark}".strip(), table)
        for part, table in zip(slicings, tables, strict=True)
    )


def _slices(part: Slicing, problem: Problem, names: Sequence[str], losses: Losses, pvalues: Sequence[float]) -> Table:
    means = [np.average(losses.rows[:, rows], axis=1, weights=_at(problem, rows)) for rows in part.rows]
    order = np.argsort(pvalues, kind="stable")
    columns = {f"{losses.name} of {name}": np.array([mean[i] for mean in means])[order] for i, name in enumerate(names)}
    groups = np.array(part.groups, dtype=object)[order]
    rows = np.array([len(rows) for rows in part.rows])[order]
    return Table({"group": groups, "rows": rows, **columns, "pvalue": np.array(pvalues)[order]})


def _at(problem: Problem, rows: np.ndarray) -> np.ndarray | None:
    return None if problem.weights is None else problem.weights[rows]


def _notes(problems: Mapping[str, Problem], scores: Sequence[Losses]) -> tuple[str, ...]:
    """What a reader should know before believing the differences."""
    found = []
    members = [name for name, one in problems.items() if isinstance(one, ForecastProblem) and one.is_ensemble]
    if members and len(members) < len(problems) and any(score.name == "CRPS" for score in scores):
        found.append(
            f"{', '.join(members)}: members are scored as they are; what they were drawn from has a smaller CRPS, the more so "
            "the fewer members there are."
        )
    if not any(score.name == "Log loss" for score in scores):
        found.append("The log loss is infinite, or there is no density, for at least one model: it is not compared.")
    return tuple(found)
