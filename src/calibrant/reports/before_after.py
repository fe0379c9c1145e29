"""What recalibration does to predictions that it has not seen: scores, errors and diagrams before and after."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError, check_count
from calibrant.distributions.categorical import Categorical
from calibrant.distributions.conversion import as_weighted_problem
from calibrant.inference.draws import as_seed_sequence
from calibrant.recalibration.held_out import HeldOut, scores
from calibrant.reports.build import settings_of
from calibrant.reports.class_pictures import reliability_of
from calibrant.reports.class_problem import ClassProblem
from calibrant.reports.classes import MEANINGS
from calibrant.reports.model import KeyNumber, Picture, Verdict
from calibrant.reports.problem import TEST_WORK, affordable
from calibrant.results import SCHEMA, Result, Table, number
from calibrant.typing import ArrayLike, Seed

if TYPE_CHECKING:
    from calibrant.reports.figures import Chart

NAMES = {"log loss": "Log loss", "Brier": "Brier score"}
"""Scores as a page calls them."""


@dataclass(frozen=True, eq=False)
class Side:
    """Predictions before or after: their calibration error, and the reliability diagram."""

    error: KeyNumber
    picture: Picture

    @classmethod
    def of(cls, problem: ClassProblem) -> "Side":
        """The error with its null band, and the curve with its consistency band."""
        meaning = MEANINGS["top" if problem.kind == "multi-class" else "event"]
        label = "Calibration error of the confidence" if problem.kind == "multi-class" else "Calibration error"
        test = problem.test(problem.error)
        band, pvalue, estimator = test.null_band(), test.pvalue, repr(problem.error)
        error = KeyNumber(label, meaning, test.statistic, "percent", None, band, pvalue, estimator)
        return cls(error, reliability_of(problem))

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"error": self.error.to_dict(), "picture": self.picture.to_dict()}


@dataclass(frozen=True, eq=False, repr=False)
class BeforeAfter(Result):
    """The page of a recalibration, as data; :func:`compare` makes it.

    ``scores`` has the losses before and after, with the standard error of their change. ``origin`` says which rows these
    are.
    """

    title: str
    recalibrator: str
    origin: str
    n: int
    kind: Literal["binary", "multi-class", "multi-label"]
    verdict: Verdict
    scores: Table
    before: Side
    after: Side
    notes: tuple[str, ...]
    settings: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "schema": SCHEMA,
            "kind": "before-after",
            "title": self.title,
            "recalibrator": self.recalibrator,
            "origin": self.origin,
            "problem": self.kind,
            "n": self.n,
            "verdict": self.verdict.to_dict(),
            "scores": self.scores.to_dict(),
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "notes": list(self.notes),
            "settings": dict(self.settings),
        }

    def to_html(self) -> str:
        """One self-contained page."""
        from calibrant.reports.page import rendered

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
        """The diagrams before and after, on the same axes."""
        from calibrant.reports.figures import chart_of

        sides = (("Before", self.before, self.after), ("After", self.after, self.before))
        return [
            replace(
                chart_of(one.picture, other.picture.tables["curve"]),
                title=f"{name}: {one.error.label.lower()} {one.error.text(one.error.value)}",
                description=f"{name} recalibration. {one.picture.description}",
            )
            for name, one, other in sides
        ]

    def save(self, path: str | Path) -> Path:
        """Write the page to a file; its data if the name ends in ``.json``, or a print of it if in ``.pdf``."""
        from calibrant.reports.saving import save

        return save(self, path)

    def _lines(self) -> list[tuple[str, str]]:
        return [(self.title, self.verdict.headline), *(("", sentence) for sentence in self.verdict.evidence)]


def compare(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    better: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    title: str = "Recalibration",
    recalibrator: str = "",
    origin: str = "",
    notes: Sequence[str] = (),
    n_resamples: int = 999,
    rng: Seed = None,
) -> BeforeAfter:
    """Class probabilities before and after, on rows that taught the map nothing: held-out ones, or new ones.

    Bands are those of predictions taken as given. Maps of folds have seen the other rows, which makes the bands after
    approximate; on new rows they are exact.

    >>> from calibrant.lab.problems import Tempered
    >>> from calibrant.recalibration.held_out import in_order
    >>> from calibrant.recalibration.temperature import Temperature
    >>> y_true, y_pred = Tempered(3, temperature=2.0).draw(500, np.random.default_rng(0))
    >>> better = in_order(Temperature().fit(y_true, y_pred).held_out)
    >>> compare(y_true, y_pred, better, n_resamples=99).verdict.headline
    'Recalibration helps: log loss falls from 1.081 to 1.016.'
    """
    targets, before, weights = as_weighted_problem(y_true, y_pred, sample_weight)
    _, after, _ = as_weighted_problem(y_true, better, None)
    for predictions in (before, after):
        if not isinstance(predictions, Categorical):
            raise InputError(f"class probabilities are compared so far; got {type(predictions).__name__} predictions")
    check_count(n_resamples, "n_resamples", least=99)
    draws = affordable(n_resamples, len(before), TEST_WORK, least=399)
    seeds = as_seed_sequence(rng)
    problems = [ClassProblem(targets, p, weights, draws, seeds, None) for p in (before, after)]  # type: ignore[arg-type]
    old, new = (Side.of(problem) for problem in problems)
    table = scores(to_numpy(targets), before, weights, [HeldOut(np.arange(len(before)), after)])
    assert table is not None  # classes have scores
    return BeforeAfter(
        title=title,
        recalibrator=recalibrator,
        origin=origin,
        n=len(before),
        kind=problems[0].kind,
        verdict=_verdict(table, old, new, origin),
        scores=table,
        before=old,
        after=new,
        notes=tuple(notes),
        settings=settings_of(problems[0]),
    )


def in_words(row: Mapping[str, Any]) -> str:
    """A row of scores: before, after, and the change with its standard error, where there is one.

    >>> in_words({"score": "log loss", "before": 0.5, "after": 0.45, "change": -0.05, "error": 0.02})
    '0.5 → 0.45 (-0.05 ± 0.02)'
    """
    change = f" ({row['change']:+.2g} ± {row['error']:.1g})" if np.isfinite(row["change"]) else ""
    return f"{number(row['before'])} → {number(row['after'])}{change}"


def _verdict(table: Table, before: Side, after: Side, origin: str) -> Verdict:
    """Better or worse in log loss, and whether chance alone could have done it."""
    first = next(table.rows())
    shown = not abs(first["change"]) <= 2 * first["error"]  # an infinite change has no error
    is_worse = first["change"] > 0
    change = f"log loss {'rises' if is_worse else 'falls'} from {number(first['before'])} to {number(first['after'])}"
    headline = {
        (False, True): f"Recalibration helps: {change}.",
        (False, False): "Recalibration may help a little: these rows cannot tell it from chance.",
        (True, False): "Recalibration does not help: leave these predictions as they are.",
        (True, True): f"Do not use this map: {change}.",
    }[is_worse, shown]
    error = after.error
    evidence = (
        f"{NAMES[first['score']]}: {in_words(first)}.{f' {origin}' if origin else ''}",
        f"{error.label}: {error.text(before.error.value)} → {error.text(error.value)}; calibrated predictions like those "
        f"after would show {error.band()}.",
    )
    tone: Literal["good", "unsure", "bad"] = "unsure" if not shown else "bad" if is_worse else "good"
    return Verdict(tone, headline, evidence)
