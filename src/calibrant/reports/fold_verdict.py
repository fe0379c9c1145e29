"""The verdict on cross-validated predictions: each model is judged on its own rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from calibrant.inference.multiplicity import holm
from calibrant.reports.core.folds import DEPENDENT, Folds
from calibrant.reports.core.model import KeyNumber, Outline, Section, Step, Verdict
from calibrant.reports.core.problem import ReportProblem
from calibrant.results import Finding, Table, how_many, number

LEVEL = 0.05
"""P-values up to this are an alarm."""

Plan: TypeAlias = Callable[[ReportProblem], Outline[Any]]


@dataclass(frozen=True, eq=False)
class FoldResult:
    """What is said of the rows of one fold alone: a verdict, its main number, and what was claimed and happened on average."""

    name: str
    n: int
    verdict: Verdict
    main: KeyNumber
    means: tuple[float, float]

    @property
    def pvalue(self) -> float:
        """Of all tests of the fold together; 1 where nothing could be tested."""
        return 1.0 if self.verdict.pvalue is None else self.verdict.pvalue


def over_folds(problem: ReportProblem, plan: Plan, folds: Folds, split: int) -> tuple[ReportProblem, Outline[Any]]:
    """The problem of all folds, without tests and intervals, and its outline: the verdict and a table are those of single folds.

    ``split`` is how many clusters have rows in several folds.
    """
    whole = replace(problem, clusters=folds)
    outline, found = plan(whole), list[FoldResult]()

    def judge(_evidence: Any, numbers: Sequence[KeyNumber]) -> Verdict:
        return judge_folds(found, numbers[0])

    def gather() -> Any:
        found[:] = [
            _judged(problem.rows(np.flatnonzero(folds.codes == i)), plan, name) for i, name in enumerate(folds.names)
        ]
        return outline.gather[1]()

    def notes() -> Sequence[str]:
        return [*_notes(folds, split), *outline.notes()]

    table = (Step("By fold"), lambda _evidence: section_of(found))
    return whole, replace(
        outline, gather=(outline.gather[0], gather), judge=judge, notes=notes, sections=[table, *outline.sections]
    )


def _judged(part: ReportProblem, plan: Plan, name: str) -> FoldResult:
    outline = plan(part)
    evidence = outline.gather[1]()
    numbers = [make(evidence) for _, make in outline.numbers]
    return FoldResult(name, len(part), outline.judge(evidence, numbers), numbers[0], part.means())


def judge_folds(found: Sequence[FoldResult], pooled: KeyNumber) -> Verdict:
    """Each model is tested on its own rows, which is right whatever it was trained on; Holm allows for several.

    The p-value of all is the smallest after that.
    """
    adjusted = holm([fold.pvalue for fold in found])
    worst, count = found[int(np.argmin(adjusted))], len(found)
    alarms = sum(fold.verdict.is_alarm and p <= LEVEL for fold, p in zip(found, adjusted, strict=True))
    evidence = (
        f"Predictions come from {count} models, each of rows that it was not trained on. The verdict is about these models, and so "
        "about the way they were made; one that is trained on all rows is another model.",
        f"Each fold is tested by itself, by all its tests together: the smallest p = {number(float(adjusted.min()))} "
        f"(Holm, {count} folds).",
        f"{pooled.label} of all folds together: {pooled.text(pooled.value)}, with no interval: {DEPENDENT}.",
    )
    pvalue = float(adjusted.min())
    if alarms:
        said = f"Fold {worst.name}: {worst.verdict.headline}"
        headline = f"{how_many(alarms, 'model')} of {count} {'is' if alarms == 1 else 'are'} not calibrated. {said}"
        return Verdict("bad", headline, evidence, pvalue, worst.verdict.finding)
    few = sum(fold.verdict.finding is Finding.TOO_FEW_ROWS for fold in found)
    if few:
        said = f"{how_many(few, 'fold has', 'folds have')} too few rows to tell."
        headline = f"None of {count} models is seen to be miscalibrated; {said}"
        return Verdict("unsure", headline, evidence, pvalue, Finding.TOO_FEW_ROWS)
    return Verdict(
        "good", f"The predictions of all {count} models agree with what happened.", evidence, pvalue, Finding.NONE
    )


def section_of(found: Sequence[FoldResult]) -> Section:
    """A row per fold, the clearest evidence first."""
    adjusted = holm([fold.pvalue for fold in found])
    bands, intervals = ([getattr(fold.main, part) for fold in found] for part in ("null_band", "interval"))
    table = {
        "group": np.array([fold.name for fold in found], dtype=object),
        "rows": np.array([fold.n for fold in found]),
        "claimed": np.array([fold.means[0] for fold in found]),
        "happened": np.array([fold.means[1] for fold in found]),
        "error": np.array([fold.main.value for fold in found]),
        **{f"interval_{end}": _ends(intervals, end) for end in ("low", "high")},
        **{f"null_{end}": _ends(bands, end) for end in ("low", "high")},
        "pvalue": adjusted,
        "pvalue_alone": np.array([fold.pvalue for fold in found]),
    }
    order = np.argsort(adjusted, kind="stable")
    remark = (
        f"The clearest evidence first: {found[0].main.noun} of each model on its own rows, and the p-value of all its tests, which "
        f"allows for {len(found)} folds (Holm)."
    )
    return Section("By fold", "fold", remark, Table({name: column[order] for name, column in table.items()}))


def _ends(intervals: Sequence[Any], end: str) -> np.ndarray:
    return np.array([np.nan if interval is None else getattr(interval, end) for interval in intervals])


def _notes(folds: Folds, split: int) -> list[str]:
    found = [
        f"Cross-validated predictions of {len(folds)} folds: {DEPENDENT}, so all rows together have neither tests nor intervals. "
        "Those of single folds hold for their models. How far models of other data would differ is not seen."
    ]
    if split:
        found.append(
            f"{how_many(split, 'cluster has', 'clusters have')} rows in several folds: their models were trained on rows that "
            "belong to those they predict, and may look better than they are. Keep clusters whole when folds are made."
        )
    return found
