"""The command that fits maps to better predictions, says what held-out rows show of them, and applies them."""

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter

from calibrant import io
from calibrant._array import to_numpy
from calibrant._validate import InputError, check_count
from calibrant.cli import display
from calibrant.cli.flags import (
    ClusteredFields,
    Fields,
    File,
    Output,
    Place,
    Seed,
    TableFields,
    Texts,
    check_outputs,
    opened,
    print_json,
)
from calibrant.cli.pipes import DASH, beside, local, name_of, pour
from calibrant.cli.program import OUTPUT
from calibrant.cli.reporting import check_place
from calibrant.cli.settings import default_recalibrator, parse_recalibrator
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.io.columns import ENDINGS, check_ending
from calibrant.io.dataset import has_truth
from calibrant.io.opening import kind_of
from calibrant.io.rewriting import rewrite
from calibrant.recalibration.base import HeldOut, Recalibration, Recalibrator, load_map, scores
from calibrant.reports.before_after import BeforeAfter, before_and_after, in_words
from calibrant.reports.core.model import check_page_ending
from calibrant.results import Table, brief, how_many
from calibrant.typing import Engine


@dataclass(frozen=True, eq=False)
class _Learned:
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
) -> _Learned:
    """Fit every method, or one that suits the predictions, and look closer at the best; folds are tasks of the engine."""
    chosen = list(methods) or [default_recalibrator(data.y_pred)]
    fits: list[Recalibration] = []
    with display.steps() as progress:
        for method in chosen:
            progress(brief(method), len(fits), len(chosen) + 1)
            settings: dict[str, Any] = {"sample_weight": data.sample_weight, "clusters": data.clusters}
            settings |= {"folds": folds, "seed": seed}
            fits.append(method.fit(data.y_true, data.y_pred, **settings, engine=engine))
        progress("Before and after", len(fits), len(chosen) + 1)
        if len(fits) > 1:
            fits = _ranked(fits)
        page = None if fits[0].scores is None else _page(fits[0], data, seed, title)
    return _Learned(fits, page, _remark(data.y_pred, folds, None if methods else chosen[0]))


def ranking(fits: Sequence[Recalibration]) -> Table:
    """A row per fit, and one for the predictions as they are where it ranks."""
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
    others, which = len(fit.held_out) - 1, "it" if data.clusters is None else "it and its cluster"
    return before_and_after(
        data.y_true,
        data.y_pred,
        fit.held_out,
        sample_weight=data.sample_weight,
        clusters=data.clusters,
        title=title,
        recalibrator=brief(fit.recalibrator),
        origin=f"Each row is seen through a map that was fitted without {which}, on {others} of {others + 1} folds.",
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


ORIGIN = "A fair comparison if the map was not fitted on these rows."


@dataclass(frozen=True, eq=False)
class Applied:
    """What was written, and how the predictions did before and after where the file has the truth."""

    out: Path
    n: int
    columns: Sequence[str]
    scores: Table | None
    page: BeforeAfter | None
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        sides = {} if self.page is None else {"before": self.page.before.error, "after": self.page.after.error}
        about = {"out": str(self.out), "n": self.n, "columns": list(self.columns), "notes": list(self.notes)}
        return {**about, "scores": self.scores, "error": sides or None}

    def show(self) -> None:
        """The columns, and the scores."""
        if self.scores is not None:
            display.show_change(self.scores, self.page)
        for note in self.notes:
            display.say(f"note: {note}")
        first, last = self.columns[0], self.columns[-1]
        which = first if len(self.columns) == 1 else f"{first} … {last} ({len(self.columns)} columns)"
        place = "the standard output" if self.out == DASH else self.out
        display.say(f"Written to {place}: {how_many(self.n, 'row')} with better predictions in {which}")


def apply_map(
    file: Path, fields: TableFields, path: Path, out: Path, *, levels: Sequence[float], seed: int, draws_page: bool
) -> Applied:
    """Put a file's predictions right and write them."""
    chosen = load_map(path)
    said = {"y_pred": fields.single(), "predict": fields.predict, "pos_label": fields.pos_label, "scale": fields.scale}
    old = io.read_predictions(file, **said, missing=fields.missing, layout=fields.layout)
    better = chosen(old.prediction)
    data, notes = _with_truth(file, fields)
    for note in old.notes if data is None else ():
        display.complain(f"Note: {note}.")
    title = f"{file.name} through {path.name}"
    table, page = (None, None) if data is None else _judged(data, chosen(data.y_pred), seed, title)
    if draws_page and page is None:
        raise InputError(f"--report needs the truth: say which column of {file.name} has it with --y-true")
    columns = rewrite(old, better, out, levels)
    return Applied(out, len(old.prediction), columns, table, page, (*notes, *(() if page is None else page.notes)))


def _with_truth(file: Path, fields: Fields) -> tuple[io.Dataset | None, tuple[str, ...]]:
    """What the file holds, if the truth is among it; one that was not asked for and cannot be used is left alone."""
    if fields.y_true is None and not has_truth(file, fields.layout):
        return None, ()
    try:
        data = fields.read(file)
        data.y_pred.as_targets(data.y_true)
    except InputError as error:
        if fields.y_true is not None:
            raise
        return None, (f"no scores, as the truth cannot be used: {error}",)
    return data, ()


def _judged(data: io.Dataset, better: Distribution, seed: int, title: str) -> tuple[Table | None, BeforeAfter | None]:
    """Scores before and after, with errors and pictures."""
    targets = to_numpy(data.y_pred.as_targets(data.y_true))
    if scores(targets[:1], data.y_pred[:1], None, [HeldOut(np.arange(1), better[:1])]) is None:
        return None, None
    options: dict[str, Any] = {
        "sample_weight": data.sample_weight,
        "clusters": data.clusters,
        "title": title,
        "rng": seed,
    }
    page = before_and_after(data.y_true, data.y_pred, better, **options, origin=ORIGIN)
    return page.scores, page


def recalibrate(
    file: File,
    /,
    *,
    data: ClusteredFields = ClusteredFields(),  # noqa: B008  # frozen
    method: Annotated[Texts, Parameter(negative="", show_default=False)] = (),
    save: Annotated[Path | None, Parameter(group=OUTPUT)] = None,
    report: Annotated[Path | None, Parameter(group=OUTPUT)] = None,
    folds: int | None = None,
    force: Annotated[bool, Parameter(negative="")] = False,
    apply: Path | None = None,
    out: Annotated[Path | None, Parameter(group=OUTPUT)] = None,
    level: Annotated[tuple[float, ...], Parameter(negative="", show_default=False)] = (),
    seed: Seed = 0,
    engine: Place = None,
    format: Output = "table",
) -> int:
    """Learn a map to better predictions, and show what it does to held-out rows; with --apply, put predictions right.

    Leaves with code 1, and does not save the map, where the held-out loss got worse.

    Parameters
    ----------
    method
        such as "Temperature()"; may be repeated, and the best is taken; without it, one that suits the predictions
    save
        where to write the map, as JSON
    report
        where to write a page with diagrams before and after (or, ending in .json, the data)
    folds
        parts of the rows, each held out once; without it 5
    force
        save a map that makes the held-out loss worse, or in place of a file that is no map
    apply
        a saved map: write the rows with better predictions to --out
    out
        where to write them, in any of the formats; all other columns stay as they were; - for the standard output, in the
        format of the input
    level
        add the quantile of this level, of predictions of numbers; may be repeated
    """
    check_count(seed, "--seed", least=0)
    places = {"--save": save, "--report": report, "--out": None if out == DASH else out}
    check_outputs([path for path in (file, apply) if path], places)
    if report is not None:
        check_page_ending(report, "--report")
    title, file = f"Recalibration of {name_of(file)}", local(file, data.input_format)
    if apply is not None:
        _check_absent(
            "with --apply", {"--method": method, "--save": save, "--folds": folds, "--force": force, "--engine": engine}
        )
        target = _target(out, file, data, format)
        applied = apply_map(file, data, apply, target, levels=level, seed=seed, draws_page=report is not None)
        if out == DASH:
            pour(target)
        with display.aside(out == DASH):
            _write(replace(applied, out=out or target), report, format)
        return 0
    if out is not None:
        raise InputError(
            "--out takes rows through a saved map: first --save map.json, then --apply map.json --out FILE"
        )
    _check_absent("without --apply", {"--level": level})
    if save is not None and not force:
        _check_replaceable(save)
    check_count(folds := 5 if folds is None else folds, "--folds", least=2)
    methods = [parse_recalibrator(text) for text in dict.fromkeys(method)]
    read = data.read(file)
    with opened(engine) as place:
        learned = learn(read, methods, folds=folds, seed=seed, title=title, engine=place)
    saved = save if force or not learned.best.is_worse else None
    if saved is not None:
        learned.best.save(saved)
    _write(learned, report, format, saved=None if saved is None else str(saved))
    if saved is not None and format == "table":
        display.say(f"Saved {brief(learned.best.recalibrator)}. To apply it:\n  {_usage(saved, data)}")
    if save == saved:
        return 0
    display.complain(learned.refusal())
    return 1


def _write(result: _Learned | Applied, report: Path | None, format: str, **more: object) -> None:
    """Write the page, and show the result."""
    if report is not None:
        if result.page is None:
            raise InputError("--report needs a score that judges both, and these predictions have none: leave it out")
        result.page.save(report)
    if format == "json":
        print_json({**result.to_dict(), **more})
        return
    result.show()
    if report is not None:
        display.say(f"Page written to {report}")


def _usage(saved: Path, data: TableFields) -> str:
    """The command that applies a map to predictions of the same columns, in a file that is written alike."""
    named = {"--y-pred": data.single(), "--predict": data.predict, "--scale": data.scale}
    named |= {"--input-format": data.input_format, "--sep": data.sep, "--encoding": data.encoding}
    named |= {"--decimal": data.decimal, "--missing": None if data.missing == "fail" else data.missing}
    columns = [part for option, value in named.items() if value is not None for part in (option, value)]
    return shlex.join(["calibrant", "recalibrate", "NEW.csv", *columns, "--apply", str(saved), "--out", "BETTER.csv"])


def _target(out: Path | None, file: Path, data: Fields, format: str) -> Path:
    """Where to write rows, in a format that is known; for the standard output a file on the way, in that of the input."""
    if out is None:
        raise InputError("--apply needs --out: say where to write the rows with better predictions")
    if out == DASH:
        check_place(out, format)
        kind = kind_of(file, data.layout)
        return beside(f"better{kind if kind in ENDINGS else '.csv'}")
    check_ending(out)
    return out


def _check_absent(where: str, options: Mapping[str, object]) -> None:
    """Refuse options that say nothing here."""
    if said := [name for name, value in options.items() if value]:
        raise InputError(f"{said[0]} means nothing {where}: leave it out")


def _check_replaceable(save: Path) -> None:
    """Refuse to write a map over anything but a map."""
    if not save.exists():
        return
    try:
        load_map(save)
    except InputError as error:
        message = f"--save {str(save)!r} exists and is no recalibration map: choose another name, or --force"
        raise InputError(message) from error
