"""What recalibration does to predictions that it has not seen: scores, errors and diagrams before and after."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError, check_count
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.empirical.quantiles import central_levels, fan_of
from calibrant.distributions.reading.conversion import Classes, as_clustered_problem, as_weighted_problem
from calibrant.inference.monte_carlo import as_seed_sequence
from calibrant.planning.affordable import TEST_WORK, affordable
from calibrant.recalibration.base import FLOORED, HeldOut, effective_rows, impossible, nats, scores
from calibrant.reports.class_report.class_measures import MEANINGS
from calibrant.reports.class_report.class_outline import reliability_of
from calibrant.reports.class_report.class_problem import ClassProblem
from calibrant.reports.core.model import KeyNumber, Page, Picture, Verdict
from calibrant.reports.core.problem import ReportProblem
from calibrant.reports.evaluation import settings_of
from calibrant.reports.forecast_report.forecast_outline import MEANINGS as FORECAST_MEANINGS
from calibrant.reports.forecast_report.forecast_outline import coverage_of, histogram_of
from calibrant.reports.forecast_report.forecast_problem import ForecastProblem, PITProblem
from calibrant.reports.notes import cluster_notes
from calibrant.reports.trials import ODDS, problem_after, spelled
from calibrant.results import SCHEMA, Table, number
from calibrant.results.result import plain_data
from calibrant.typing import ArrayLike, Seed

if TYPE_CHECKING:
    from calibrant.reports.render.html import Chart

NAMES = {
    "log loss": "Log loss",
    FLOORED: "Floored log loss",
    "Brier": "Brier score",
    "CRPS": "CRPS",
    "pinball": "Pinball loss",
}
"""Scores as a page calls them."""


@dataclass(frozen=True, eq=False)
class Side:
    """Predictions before or after: their calibration error, and the pictures of it."""

    error: KeyNumber
    pictures: tuple[Picture, ...]

    @classmethod
    def of(cls, problem: ReportProblem) -> "Side":
        """The error with its null band, and what is drawn of it: the reliability curve, or PIT values and coverage."""
        problem = problem.pit if isinstance(problem, ForecastProblem) else problem
        label, meaning, key = _error_of(problem)
        name, estimator, band, pvalue = type(problem.error).__name__, repr(problem.error), None, None
        value = float(problem.estimate(problem.error))
        if problem.untested is None:
            test = problem.test(problem.error)
            band, pvalue = None if problem.clusters is not None else test.null_band(), test.pvalue
        error = KeyNumber(label, meaning, value, "fraction", None, band, pvalue, estimator, name, key)
        if isinstance(problem, PITProblem):
            fan = fan_of(problem.predictions)
            has_intervals = fan is None or bool(central_levels(fan))
            return cls(error, (histogram_of(problem), *([coverage_of(problem)] if has_intervals else [])))
        assert isinstance(problem, ClassProblem)
        return cls(error, (reliability_of(problem),))

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return plain_data(self)


def _heading(picture: Picture, side: Side) -> str:
    """The error where one picture shows it, else what the picture shows."""
    if len(side.pictures) > 1:
        return picture.title[:1].lower() + picture.title[1:]
    return f"{side.error.label.lower()} {side.error.text(side.error.value)}"


def _error_of(problem: ReportProblem) -> tuple[str, str, str]:
    """What the error is called, what it means, and its key."""
    if isinstance(problem, PITProblem) and fan_of(problem.predictions) is not None:
        return "Error at the levels given", FORECAST_MEANINGS["quantiles"], "quantile error"
    if isinstance(problem, PITProblem):
        return "PIT error", FORECAST_MEANINGS["pit_histogram"], "error"
    if problem.kind == "multi-class":
        return "Calibration error of the confidence", MEANINGS["top"], "error"
    return "Calibration error", MEANINGS["event"], "error"


@dataclass(frozen=True, eq=False, repr=False)
class BeforeAfter(Page):
    """The page of a recalibration, as data; :func:`before_and_after` makes it.

    ``scores`` has the losses before and after, with the standard error of their change. ``origin`` says which rows these
    are.
    """

    title: str
    recalibrator: str
    origin: str
    n: int
    kind: str
    verdict: Verdict
    scores: Table
    before: Side
    after: Side
    notes: tuple[str, ...]
    settings: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        head = {"schema": SCHEMA, "kind": "before-after", **plain_data(self, "title", "recalibrator", "origin")}
        parts = ("n", "verdict", "scores", "before", "after", "notes", "settings")
        return {**head, "problem": self.kind, **plain_data(self, *parts)}

    def to_html(self) -> str:
        """One self-contained page."""
        from calibrant.reports.render.html import rendered

        return rendered(
            "before_after.html.jinja",
            self,
            download="calibrant-recalibration.json",
            parts={"numbers": "Numbers", "pictures": "Pictures", "notes": "Fit", "methods": "Methods"},
            charts=self._charts(),
            number=number,
            names=NAMES,
        )

    def _charts(self) -> list["Chart"]:
        """The pictures before and after, reliability diagrams on the same axes."""
        from calibrant.reports.render.html import chart_of

        pairs = zip(self.before.pictures, self.after.pictures, strict=True)
        sides = [
            side for old, new in pairs for side in (("Before", old, new, self.before), ("After", new, old, self.after))
        ]
        return [
            replace(
                chart_of(one, other.tables.get("curve")),
                title=f"{name}: {_heading(one, side)}",
                description=f"{name} recalibration. {one.description}",
            )
            for name, one, other, side in sides
        ]


def before_and_after(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    better: ArrayLike | Sequence[HeldOut],
    *,
    sample_weight: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    title: str = "Recalibration",
    recalibrator: str = "",
    origin: str = "",
    notes: Sequence[str] = (),
    n_resamples: int = 999,
    rng: Seed = None,
) -> BeforeAfter:
    """Predictions before and after, on rows that taught the map nothing: held-out folds, or new rows.

    Bands are those of predictions taken as given. Maps of folds have seen the other rows, which makes the bands after
    approximate; on new rows they are exact. ``clusters`` has one label per row: rows with the same label may depend on each other,
    and are in one fold. Two models rather than one and its recalibration: :func:`calibrant.compare`.

    >>> from calibrant.lab import Tempered
    >>> from calibrant.recalibration import Temperature
    >>> y_true, y_pred = Tempered(3, temperature=2.0).draw(500, np.random.default_rng(0))
    >>> parts = Temperature().fit(y_true, y_pred).held_out
    >>> before_and_after(y_true, y_pred, parts, n_resamples=99).verdict.headline
    'Recalibration helps: log loss falls from 1.081 to 1.016.'
    """
    check_count(n_resamples, "n_resamples", least=99)
    targets, before, weights, together = as_clustered_problem(
        y_true, y_pred, sample_weight, clusters, Classes(labels, pos_label)
    )
    together = None if together is None or together.are_single_rows else together
    parts = _parts(y_true, better, len(before), sample_weight, Classes(labels, pos_label))
    draws = affordable(n_resamples, len(before), TEST_WORK, least=399)
    settings = (targets, before, weights, draws, as_seed_sequence(rng), None)
    problem: ReportProblem
    kind: Any = ClassProblem if isinstance(before, Categorical) else ForecastProblem
    problem = kind(*settings, clusters=together)
    table = scores(to_numpy(targets), before, weights, parts, together)
    zeros = impossible(to_numpy(targets), before, weights, parts)
    if table is None:
        raise InputError(f"{type(before).__name__} predictions have no score in common with what became of them")
    old, new = Side.of(problem), Side.of(problem_after(problem, parts))
    return BeforeAfter(
        title=title,
        recalibrator=recalibrator,
        origin=origin,
        n=len(before),
        kind=problem.kind,
        verdict=_verdict(
            table, old, new, origin, 0.0 if together is not None else effective_rows(weights, len(before))
        ),
        scores=table,
        before=old,
        after=new,
        notes=tuple(dict.fromkeys((*zeros, *notes, *cluster_notes(problem)))),
        settings=settings_of(problem),
    )


def _parts(
    y_true: ArrayLike, better: ArrayLike | Sequence[HeldOut], n: int, sample_weight: ArrayLike | None, classes: Classes
) -> Sequence[HeldOut]:
    """What became of each row: folds that hold each once, or all rows as one."""
    if isinstance(better, Sequence) and better and isinstance(better[0], HeldOut):
        rows = np.sort(np.concatenate([part.rows for part in better]))
        if not np.array_equal(rows, np.arange(n)):
            raise InputError(f"held-out folds must hold each of the {n:,} rows once; they hold {len(rows):,}")
        return better
    _, after, _ = as_weighted_problem(y_true, better, sample_weight, classes)
    return [HeldOut(np.arange(n), after)]


def in_words(row: Mapping[str, Any]) -> str:
    """A row of scores: before, after, and the change with its standard error, where there is one.

    >>> in_words({"score": "log loss", "before": 0.5, "after": 0.45, "change": -0.05, "error": 0.02})
    '0.5 → 0.45 (-0.05 ± 0.02)'
    """
    change = f" ({row['change']:+.2g} ± {row['error']:.1g})" if np.isfinite(row["error"]) else ""
    return f"{number(row['before'])} → {number(row['after'])}{change}"


def _verdict(table: Table, before: Side, after: Side, origin: str, rows: float) -> Verdict:
    """Better or worse by the first score, and whether chance alone could have done it.

    It could not where the mean changes by two standard errors, or where what happened is :data:`ODDS` times as likely.
    """
    first = next(table.rows())
    is_likelier = abs(nats(first["score"], first["change"], rows)) >= np.log(ODDS)
    shown = is_likelier or not abs(first["change"]) <= 2 * first["error"] or not np.isfinite(first["change"])
    is_worse = first["change"] > 0
    side = "rises" if is_worse else "falls"
    change = f"{spelled(first['score'])} {side} from {number(first['before'])} to {number(first['after'])}"
    headline = {
        (False, True): f"Recalibration helps: {change}.",
        (False, False): "Recalibration may help a little: these rows cannot tell it from chance.",
        (True, False): "Recalibration does not help: leave these predictions as they are.",
        (True, True): f"Do not use this map: {change}.",
    }[is_worse, shown]
    error, would = after.error, ""
    if error.null_band is not None:
        would = f"; calibrated predictions like those after would show {error.band()}"
    elif error.pvalue is not None:
        would = f"; after, p = {number(error.pvalue)} by random signs of clusters"
    evidence = (
        f"{NAMES[first['score']]}: {in_words(first)}.{f' {origin}' if origin else ''}",
        f"{error.label}: {error.text(before.error.value)} → {error.text(error.value)}{would}.",
    )
    tone: Literal["good", "unsure", "bad"] = "unsure" if not shown else "bad" if is_worse else "good"
    return Verdict(tone, headline, evidence)
