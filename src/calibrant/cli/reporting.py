"""A report made, written and shown."""

from collections.abc import Sequence
from pathlib import Path

from calibrant import io
from calibrant._validate import InputError
from calibrant.cli import display
from calibrant.cli.app import check_writable
from calibrant.cli.streams import DASH, beside, pour
from calibrant.reports.build import evaluate
from calibrant.reports.comparison import Comparison
from calibrant.reports.report import Report
from calibrant.typing import Engine


def check_place(out: Path, format: str) -> None:
    """Refuse a place where no page can be, and two things on one stream."""
    if out != DASH:
        check_writable(out, "--out")
    elif format != "table":
        raise InputError(f"--out - and --format {format} both go to the standard output: leave one out")


def made(
    data: io.Dataset,
    title: str,
    n_resamples: int,
    seed: int,
    source: Sequence[str] | None,
    engine: Engine | None = None,
) -> Report:
    """The report on what a file held, with progress; ``source`` are the words that name the file and its columns."""
    with display.steps() as progress:
        return evaluate(
            data.y_true,
            data.y_pred,
            by=data.by,
            sample_weight=data.sample_weight,
            title=title,
            n_resamples=n_resamples,
            rng=seed,
            engine=progress if engine is None else engine,
            progress=progress,
            source=source,
        )


def write(report: Report | Comparison, out: Path) -> None:
    """The page in its file, or into the standard output."""
    if out == DASH:
        pour(report.save(beside("page.html")))
    else:
        report.save(out)


def show(report: Report | Comparison, out: Path, format: str) -> None:
    """What the format asks for on the standard output; where that has the page, a summary beside it."""
    if format == "json":
        print(report.to_json())
    elif format == "markdown":
        print(report.to_markdown(), end="")
    else:
        with display.aside(out == DASH):
            if isinstance(report, Comparison):
                display.show_comparison(report)
            else:
                display.show_report(report)
            if out != DASH:
                display.say(f"\nWritten to {out}")
