"""Recalibrators fitted on a file, and what held-out rows say of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from calibrant import io
from calibrant._validate import InputError
from calibrant.cli import display
from calibrant.cli.settings import default_recalibrator
from calibrant.distributions.base import Distribution
from calibrant.distributions.categorical import Categorical
from calibrant.recalibration.base import Recalibration, Recalibrator
from calibrant.reports.before_after import BeforeAfter, before_and_after, in_words
from calibrant.results import Table, brief, how_many
from calibrant.typing import Engine


@dataclass(frozen=True, eq=False)
class Learned:
    """Fits, best first by a held-out score, and the best one's errors and pictures before and after."""

    fits: Sequence[Recalibration]
    page: BeforeAfter | None
    remark: str

    @property
    def best(self) -> Recalibration:
        """The one with the smallest held-out loss."""
        return self.fits[0]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, without the maps, which may be long."""
        about = ("n", "scores", "is_converged", "is_worse", "notes")
        fits = [
            {"recalibrator": repr(fit.recalibrator), **{name: getattr(fit, name) for name in about}}
            for fit in self.fits
        ]
        sides = {} if self.page is None else {"before": self.page.before.error, "after": self.page.after.error}
        return {"best": repr(self.best.recalibrator), "recalibrations": fits, "error": sides or None}

    def show(self) -> None:
        """What was fitted, and what it did."""
        display.say(self.remark)
        if len(self.fits) > 1:
            display.show_table(ranking(self.fits), "held-out scores, best first")
        display.say(f"\n{brief(self.best.recalibrator)}")
        if self.best.scores is not None:
            display.show_change(self.best.scores, self.page)
        chosen = f"the best of {len(self.fits)} by these very rows: its scores are a little too good"
        for note in (*self.best.notes, *([chosen] if len(self.fits) > 1 else [])):
            display.say(f"note: {note}")

    def refusal(self) -> str:
        """Why the best map is not saved, with its numbers and what to do."""
        assert self.best.scores is not None
        row = next(self.best.scores.rows())
        if not math.isfinite(row["change"]):
            size = "as it calls impossible what happened"
        elif row["change"] <= row["error"]:
            size = "within its standard error, so it may be chance"
        else:
            size = f"{row['change'] / row['error']:.1f} standard errors" if row["error"] > 0 else "in every row alike"
        return (
            f"not saved: {brief(self.best.recalibrator)} makes held-out {row['score']} worse, {in_words(row)}, {size}. Leave the "
            "predictions as they are, try another --method or more rows, or save it with --force"
        )


def learn(
    data: io.Dataset,
    methods: Sequence[Recalibrator],
    *,
    folds: int,
    seed: int,
    title: str,
    engine: Engine | None = None,
) -> Learned:
    """Fit every method, or one that suits the predictions, and look closer at the best; folds are tasks of the engine."""
    chosen = list(methods) or [default_recalibrator(data.y_pred)]
    fits: list[Recalibration] = []
    with display.steps() as progress:
        for method in chosen:
            progress(brief(method), len(fits), len(chosen) + 1)
            settings: dict[str, Any] = {"sample_weight": data.sample_weight, "folds": folds, "seed": seed}
            fits.append(method.fit(data.y_true, data.y_pred, **settings, engine=engine))
        progress("Before and after", len(fits), len(chosen) + 1)
        if len(fits) > 1:
            fits = _ranked(fits)
        page = None if fits[0].scores is None else _page(fits[0], data, seed, title)
    return Learned(fits, page, _remark(data.y_pred, folds, None if methods else chosen[0]))


def ranking(fits: Sequence[Recalibration]) -> Table:
    """A row a fit, and one for the predictions as they are where it ranks."""
    tables = [fit.scores for fit in fits if fit.scores is not None]
    first = tables[0]
    rows = [
        (brief(f.recalibrator), t["after"], t["change"][0], t["error"][0]) for f, t in zip(fits, tables, strict=True)
    ]
    rows.append(("as they are", first["before"], 0.0, 0.0))
    rows.sort(key=lambda row: (row[1][0], row[2]))
    names = {str(name): [row[1][i] for row in rows] for i, name in enumerate(first["score"])}
    change = {f"change of {first['score'][0]}": [row[2] for row in rows], "standard error": [row[3] for row in rows]}
    return Table({"method": [row[0] for row in rows], **names, **change})


def _ranked(fits: Sequence[Recalibration]) -> list[Recalibration]:
    """By the first held-out score that all have; by its change, where that is infinite."""
    tables = [fit.scores for fit in fits]
    first = {None if table is None else str(table["score"][0]) for table in tables}
    if len(first) > 1 or None in first:
        raise InputError(
            f"these methods have no score in common to choose by (first scores: {first}): give one --method"
        )
    after = [(float(t["after"][0]), float(t["change"][0])) for t in tables if t is not None]
    return [fits[i] for i in sorted(range(len(fits)), key=after.__getitem__)]


def _page(fit: Recalibration, data: io.Dataset, seed: int, title: str) -> BeforeAfter:
    others = len(fit.held_out) - 1
    return before_and_after(
        data.y_true,
        data.y_pred,
        fit.held_out,
        sample_weight=data.sample_weight,
        title=title,
        recalibrator=brief(fit.recalibrator),
        origin=f"Each row is seen through a map that was fitted without it, on {others} of {others + 1} folds.",
        notes=fit.notes,
        rng=seed,
    )


def _remark(predictions: Distribution, folds: int, default: Recalibrator | None) -> str:
    """On what was fitted, and what where nothing was asked for."""
    kind = type(predictions).__name__
    what = f"{predictions.n_classes} classes" if isinstance(predictions, Categorical) else f"{kind} predictions"
    how = f"{folds} folds, each held out once"
    choice = "" if default is None else f"{brief(default)}, the usual choice for {what}; --method takes others\n"
    return f"{choice}{how_many(len(predictions), 'row')} of {what}; {how}"
