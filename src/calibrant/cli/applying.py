"""A saved map applied to a file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibrant import io
from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.cli import display
from calibrant.cli.app import Fields
from calibrant.cli.streams import DASH
from calibrant.distributions.base import Distribution
from calibrant.recalibration.base import load_map
from calibrant.recalibration.held_out import HeldOut, scores
from calibrant.reports.before_after import BeforeAfter, before_and_after
from calibrant.results import Table, how_many
from calibrant.rewriting import rewrite

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
    file: Path, fields: Fields, path: Path, out: Path, *, levels: Sequence[float], seed: int, draws_page: bool
) -> Applied:
    """Put a file's predictions right and write them."""
    chosen = load_map(path)
    said = {"y_pred": fields.y_pred, "predict": fields.predict, "pos_label": fields.pos_label}
    old = io.read_predictions(file, **said, format=fields.input_format)
    better = chosen(old.prediction)
    data, notes = _with_truth(file, fields)
    table, page = (None, None) if data is None else _judged(data, better, seed, f"{file.name} through {path.name}")
    if draws_page and page is None:
        raise InputError(f"--report needs the truth: say which column of {file.name} has it with --y-true")
    columns = rewrite(old, better, out, levels)
    return Applied(out, len(old.prediction), columns, table, page, (*notes, *(() if page is None else page.notes)))


def _with_truth(file: Path, fields: Fields) -> tuple[io.Dataset | None, tuple[str, ...]]:
    """What the file holds, if the truth is among it; one that was not asked for and cannot be used is left alone."""
    if fields.y_true is None and not io.has_truth(file, fields.input_format):
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
    options: dict[str, Any] = {"sample_weight": data.sample_weight, "title": title, "rng": seed}
    page = before_and_after(data.y_true, data.y_pred, better, **options, origin=ORIGIN)
    return page.scores, page
