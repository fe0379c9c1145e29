"""The report, from targets and predictions to plain data, and the forms in which it is shown."""

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

import calibrant
from calibrant._clusters import Clusters
from calibrant._validate import InputError, as_column, as_weights, check_count
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.reading.conversion import UNNAMED, Classes, as_clustered_problem
from calibrant.estimators.base import SINGLE
from calibrant.inference.certificate import Certificate, check_margin, of_estimate
from calibrant.inference.dependence import TimeBlocks
from calibrant.inference.monte_carlo import as_seed_sequence
from calibrant.inference.suspicion import Suspicion, suspicions
from calibrant.planning.affordable import affordable_resamples
from calibrant.reports.advice import Advised, advise_on
from calibrant.reports.class_report.class_outline import outline_of_classes
from calibrant.reports.class_report.class_problem import ClassProblem
from calibrant.reports.core.folds import Folds, as_folds
from calibrant.reports.core.model import LAST, KeyNumber, Outline, Progress, ReportData, Step, Verdict, announcer
from calibrant.reports.core.problem import ReportProblem, columns_of
from calibrant.reports.fold_verdict import over_folds
from calibrant.reports.forecast_report.forecast_outline import outline_of_forecasts
from calibrant.reports.forecast_report.forecast_problem import ForecastProblem
from calibrant.results import brief
from calibrant.typing import ArrayLike, Engine, Seed


@dataclass(frozen=True, eq=False, repr=False)
class Report(ReportData):
    """Everything the page shows, as data; :func:`calibrant.evaluate` makes it.

    ``pictures`` hold what is drawn, such as the reliability curve with its consistency band; ``sections`` one table of classes
    and one per column of slices. ``settings`` repeat the run.

    >>> from calibrant import evaluate
    >>> report = evaluate([0, 1] * 20, [0.1, 0.9] * 20, advice=False)
    >>> report.n, report.verdict.tone, report.numbers[0].key
    (40, 'unsure', 'error')
    """

    def to_html(self) -> str:
        """One self-contained page."""
        from calibrant.reports.render.html import to_html

        return to_html(self)

    def to_markdown(self) -> str:
        """A summary in GitHub's Markdown, for a comment on a pull request."""
        from calibrant.reports.render.markdown import to_markdown

        return to_markdown(self)

    def _repr_html_(self) -> str:
        from calibrant.reports.render.notebook import to_notebook

        return to_notebook(self)


T = TypeVar("T")

ADVICE = Step("What to do", 12.0)


def evaluate(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    by: ArrayLike | Mapping[str, ArrayLike] | None = None,
    sample_weight: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    time: ArrayLike | None = None,
    block: int | None = None,
    folds: ArrayLike | None = None,
    columns: ArrayLike | Mapping[str, ArrayLike] | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    title: str = "Calibration report",
    n_resamples: int = 999,
    rng: Seed = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
    advice: bool = True,
    certify: float | None = None,
    source: Sequence[str] | None = None,
) -> Report:
    """Can these probabilities be believed? The sensible set of numbers and tests, ready to read, plot or save.

    ``labels`` names the columns of probabilities, and ``pos_label`` says which of two classes is the event; they are needed where
    targets are names. ``by`` slices the rows: a column, a data frame, or a mapping of names to columns. ``clusters`` has one label
    a row: rows with the same label may depend on each other in any way, such as questions about one text. ``time``, numbers or
    dates, orders the rows: blocks of them that are as long as their memory asks for are clusters, or ``block`` steps; ``block``
    alone takes the rows in their order. Where none of these is given, rows that look as if they belonged together are told;
    ``columns``, such as a data frame, are looked through for labels of such rows. ``folds`` says of cross-validated predictions
    which model made them: each is then tested on its own rows, and the verdict is about all of them.

    Large data get fewer resamples than ``n_resamples``, and the report says how many.
    ``progress`` is told of each step. ``advice=False`` leaves out which recalibrator would help; ``source`` are the words of a
    command that name the file and its columns, for the one that learns it. ``certify=0.02`` asks whether the calibration error is
    certified to be below 2 points, by the upper end of the interval that the report shows.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y_pred = rng.random(300)
    >>> report = evaluate((rng.random(300) < y_pred) * 1, y_pred, n_resamples=199)
    >>> report.verdict.headline
    'These probabilities agree with what happened.'
    """
    problem, outline = planned(
        y_true,
        y_pred,
        by,
        sample_weight,
        n_resamples,
        rng,
        engine,
        Together(clusters, time, block),
        Classes(labels, pos_label),
        columns,
        folds,
    )
    certificate = None
    if certify is not None:
        certificate = replace(certificate_of(problem, certify), look_dependent=outline.look_dependent)
    advise = partial(advise_on, problem, source=source) if advice else None
    return report_of(problem, outline, title, progress or silent, advise, certificate)


def report(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    path: str | Path = "calibrant-report.html",
    *,
    by: ArrayLike | Mapping[str, ArrayLike] | None = None,
    sample_weight: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    time: ArrayLike | None = None,
    block: int | None = None,
    folds: ArrayLike | None = None,
    columns: ArrayLike | Mapping[str, ArrayLike] | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    title: str = "Calibration report",
    n_resamples: int = 999,
    rng: Seed = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
    advice: bool = True,
    certify: float | None = None,
) -> Report:
    """Evaluate, and write the page (or, for a path that ends in ``.json``, the data).

    >>> import numpy as np, tempfile
    >>> rng = np.random.default_rng(0)
    >>> y_pred = rng.random(100)
    >>> target = Path(tempfile.mkdtemp()) / "report.json"
    >>> result = report((rng.random(100) < y_pred) * 1, y_pred, target, n_resamples=99)
    >>> target.exists()
    True
    """
    result = evaluate(
        y_true,
        y_pred,
        by=by,
        sample_weight=sample_weight,
        clusters=clusters,
        time=time,
        block=block,
        folds=folds,
        columns=columns,
        labels=labels,
        pos_label=pos_label,
        title=title,
        n_resamples=n_resamples,
        rng=rng,
        engine=engine,
        progress=progress,
        advice=advice,
        certify=certify,
    )
    result.save(path)
    return result


def judge(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    by: ArrayLike | Mapping[str, ArrayLike] | None = None,
    sample_weight: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    time: ArrayLike | None = None,
    block: int | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    n_resamples: int = 999,
    rng: Seed = None,
    engine: Engine | None = None,
) -> Verdict:
    """The verdict of :func:`evaluate` alone, without pictures and notes.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y_pred = rng.random(300)
    >>> judge((rng.random(300) < y_pred**3) * 1, y_pred, n_resamples=199).finding
    'too high'
    """
    _, outline = planned(
        y_true,
        y_pred,
        by,
        sample_weight,
        n_resamples,
        rng,
        engine,
        Together(clusters, time, block),
        Classes(labels, pos_label),
    )
    evidence = outline.gather[1]()
    return outline.judge(evidence, [make(evidence) for _, make in outline.numbers])


@dataclass(frozen=True, eq=False)
class Together:
    """How a caller says which rows belong together: by labels, by times, or by the length of blocks of rows."""

    clusters: ArrayLike | None = None
    time: ArrayLike | None = None
    block: int | None = None

    def of(self, y_true: ArrayLike, y_pred: ArrayLike, names: Classes = UNNAMED) -> tuple[ArrayLike | None, list[str]]:
        """One label per row, if anything is said, and what is to be told of them."""
        if self.time is None and self.block is None:
            return self.clusters, []
        if self.clusters is not None:
            said = "time" if self.time is not None else "block"
            raise InputError(f"clusters and {said} both say which rows belong together: leave one out")
        blocks = TimeBlocks.of(y_true, y_pred, self.time, self.block, names)
        return blocks.labels, [f"{blocks.in_words()}."]


APART = Together()
"""Rows are independent."""


def planned(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    by: ArrayLike | Mapping[str, ArrayLike] | None,
    sample_weight: ArrayLike | None,
    n_resamples: int,
    rng: Seed,
    engine: Engine | None,
    together: Together = APART,
    names: Classes = UNNAMED,
    beside: ArrayLike | Mapping[str, ArrayLike] | None = None,
    folds: ArrayLike | None = None,
) -> tuple[ReportProblem, Outline[Any]]:
    """The checked problem, and what its report consists of; columns ``beside`` it may be labels of rows that belong together."""
    check_count(n_resamples, "n_resamples", least=99)
    labels, more = together.of(y_true, y_pred, names)
    targets, predictions, weights, clusters = as_clustered_problem(y_true, y_pred, sample_weight, labels, names)
    alone = []
    if clusters is not None and clusters.are_single_rows:
        clusters, alone = None, [f"{SINGLE[:1].upper()}{SINGLE[1:]}."]
    n = len(predictions) if sample_weight is None else len(sample_weight)
    columns = columns_of(by, n, sample_weight)
    draws = affordable_resamples(n_resamples, int(np.prod(targets.shape)))
    parts = (targets, predictions, weights, draws, as_seed_sequence(rng), engine)
    problem: ReportProblem
    if isinstance(predictions, Categorical | Bernoulli):
        problem = ClassProblem(*parts, idle=n - len(predictions), clusters=clusters)  # type: ignore[arg-type]
    else:
        problem = ForecastProblem(*parts, idle=n - len(predictions), clusters=clusters)
    plan: Any = outline_of_classes if isinstance(problem, ClassProblem) else outline_of_forecasts
    found = suspicions_of(problem, columns_of(beside, n, sample_weight, "columns"), columns)
    noted = partial(
        _noted,
        more=more,
        cautions=[*alone, *(s.in_words() for s in found)],
        look_dependent=any(s.misleads for s in found),
    )
    if folds is None:
        return problem, noted(plan(problem, columns))
    if columns:
        raise InputError("by and folds both cut the rows: leave by out, or evaluate the rows of one fold by themselves")
    used = None if sample_weight is None else np.flatnonzero(np.asarray(as_weights(sample_weight, n)) > 0)
    given = as_folds(folds, n)
    given = given if used is None else replace(given, codes=given.codes[used])
    split = 0 if clusters is None else int((_folds_of(clusters, given) > 1).sum())
    problem, outline = over_folds(problem, partial(plan, by={}), given, split)
    return problem, noted(outline)


def suspicions_of(
    problem: ReportProblem, beside: Mapping[str, ArrayLike], by: Mapping[str, ArrayLike]
) -> list[Suspicion]:
    """What makes rows look as if they belonged together, where nobody said so."""
    if problem.clusters is not None:
        return []
    columns, slices = ({name: as_column(column, name) for name, column in part.items()} for part in (beside, by))
    return suspicions(problem.targets, problem.predictions, columns, slices)


def _folds_of(clusters: Clusters, folds: Folds) -> np.ndarray:
    """In how many folds each cluster has rows."""
    pairs = np.unique(clusters.codes * len(folds) + folds.codes)
    return np.bincount(pairs // len(folds))


def _noted(outline: Outline[Any], more: Sequence[str], cautions: Sequence[str], look_dependent: bool) -> Outline[Any]:
    """The outline with more notes; cautions are also said beside the verdict, which they put in doubt."""

    def notes() -> Sequence[str]:
        return [*cautions, *more, *outline.notes()]

    def judge(evidence: Any, numbers: Sequence[KeyNumber]) -> Verdict:
        verdict = outline.judge(evidence, numbers)
        return replace(verdict, evidence=(*cautions, *verdict.evidence))

    return replace(outline, notes=notes, judge=judge, look_dependent=look_dependent) if more or cautions else outline


def report_of(
    problem: ReportProblem,
    outline: Outline[Any],
    title: str,
    progress: Progress,
    advise: Callable[..., Advised] | None = None,
    certificate: Certificate | None = None,
) -> Report:
    """All that the outline lists, made."""
    tell = announcer([*outline.steps, *([] if advise is None else [ADVICE])], progress)

    def made(parts: Sequence[tuple[Step, Callable[[Any], T]]], evidence: Any) -> list[T]:
        found = []
        for step, make in parts:
            tell(step)
            found.append(make(evidence))
        return found

    tell(outline.gather[0])
    evidence = outline.gather[1]()
    numbers, pictures, sections = (
        made(outline.numbers, evidence),
        made(outline.pictures, evidence),
        made(outline.sections, evidence),
    )
    verdict, advised = outline.judge(evidence, numbers), None
    if advise is not None:
        tell(ADVICE)
        advised = advise(verdict=verdict)
        pictures += [] if advised.picture is None else [advised.picture]
    if certificate is not None:
        certificate = _as_shown(certificate, numbers[0])
        said = certificate.sentence(f"the {numbers[0].noun}")
        verdict = replace(verdict, evidence=(said, *verdict.evidence))
    tell(LAST)
    return Report(
        title=title,
        n=len(problem),
        kind=problem.kind,
        subject=outline.subject,
        verdict=verdict,
        numbers=tuple(numbers),
        pictures=tuple(picture for picture in pictures if not picture.is_empty),
        sections=tuple(sections),
        notes=tuple(outline.notes()),
        settings=settings_of(problem),
        advice=None if advised is None else advised.advice,
        certificate=certificate,
    )


def certificate_of(problem: ReportProblem, margin: float) -> Certificate:
    """By the interval of the error that the verdict rests on; refused where it has none."""
    check_margin(margin, "certify")
    if isinstance(problem.clusters, Folds):
        raise InputError(
            f"certify={margin:g} is about one model, and predictions of several folds are those of others: leave certify out, or "
            "give the predictions of the model that will be used, of rows that it was not trained on"
        )
    if problem.clusters is not None:
        raise InputError(
            f"certify={margin:g} needs an upper limit of the error, and none is known to hold where rows belong together: leave "
            "clusters out and take one row of each, or leave certify out"
        )
    looked = problem.judged
    estimate = looked.error.estimate(looked.targets, looked.predictions, looked.weights)
    if estimate.limits is None:  # of PIT values with weights
        raise InputError(
            f"certify={margin:g} needs an upper limit of {brief(looked.error)}, which has none with weights"
        )
    return of_estimate(estimate, float(margin), weights=looked.weights)


def _as_shown(certificate: Certificate, main: KeyNumber) -> Certificate:
    """With the lower limit of the page, which is zero where the exact test cannot rule zero out."""
    assert main.interval is not None
    return replace(certificate, lower=main.interval.low, estimate=replace(certificate.estimate, interval=main.interval))


def settings_of(problem: ReportProblem) -> dict[str, object]:
    """What repeats the run: versions, resamples, seed and level."""
    return {
        **versions(),
        "resamples": problem.n_resamples,
        "seed": str(problem.seeds.entropy),
        "level": 0.95,
        **({} if problem.clusters is None else {_noun(problem.clusters): len(problem.clusters)}),
    }


def _noun(clusters: Clusters) -> str:
    return "folds" if isinstance(clusters, Folds) else "clusters"


def versions() -> dict[str, object]:
    """What numbers may depend on."""
    return {
        "calibrant": calibrant.__version__,
        "numpy": np.__version__,
        "scipy": version("scipy"),
        "numba": _installed("numba"),
        "python": platform.python_version(),
    }


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def silent(step: str, done: float, total: float) -> None:
    """Report no progress."""
