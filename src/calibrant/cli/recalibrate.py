"""The command that learns maps to better predictions, and applies them."""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from calibrant._columns import check_ending
from calibrant._validate import InputError, check_count
from calibrant.cli import display
from calibrant.cli.app import (
    OUTPUT,
    Fields,
    File,
    Output,
    Place,
    Seed,
    Texts,
    check_outputs,
    command,
    opened,
    print_json,
)
from calibrant.cli.applying import Applied, apply_map
from calibrant.cli.learning import Learned, learn
from calibrant.cli.reporting import check_place
from calibrant.cli.settings import parse_recalibrator
from calibrant.cli.streams import DASH, beside, local, name_of, pour
from calibrant.recalibration.base import load_map
from calibrant.results import brief


@command("recalibrate")
def recalibrate(
    file: File,
    /,
    *,
    data: Fields = Fields(),  # noqa: B008  # frozen
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
    _check_absent("without --apply", {"--out": out, "--level": level})
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


def _write(result: Learned | Applied, report: Path | None, format: str, **more: object) -> None:
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


def _usage(saved: Path, data: Fields) -> str:
    """The command that applies a map to predictions of the same columns."""
    named = {"--y-pred": data.y_pred, "--predict": data.predict}
    columns = [part for option, value in named.items() if value is not None for part in (option, value)]
    return shlex.join(["calibrant", "recalibrate", "NEW.csv", *columns, "--apply", str(saved), "--out", "BETTER.csv"])


def _target(out: Path | None, file: Path, data: Fields, format: str) -> Path:
    """Where to write rows, in a format that is known; for the standard output a file on the way, in that of the input."""
    if out is None:
        raise InputError("--apply needs --out: say where to write the rows with better predictions")
    if out == DASH:
        check_place(out, format)
        return beside(f"better.{data.input_format}" if data.input_format else f"better{file.suffix}")
    check_ending(out, "write")
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
