"""The command ``report``: a page made, written and shown."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from calibrant import io
from calibrant._files import write_whole
from calibrant._validate import InputError
from calibrant.cli import comparing, console, display
from calibrant.cli.commands import Gate, judge, judge_certificates
from calibrant.cli.flags import (
    Certify,
    Comment,
    File,
    FoldedData,
    Gates,
    Others,
    Place,
    Seed,
    check_outputs,
    check_writable,
    opened,
    sentences,
)
from calibrant.cli.pipes import DASH, beside, name_of, pour
from calibrant.cli.program import DATA, OUTPUT
from calibrant.inference.certificate import check_margin
from calibrant.reports.core.model import check_page_ending
from calibrant.reports.evaluation import Report, evaluate
from calibrant.reports.model_comparison import Comparison
from calibrant.reports.render.pdf import check_browser, to_pdf
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
    certify: float | None = None,
) -> Report:
    """The report on what a file held, with progress; ``source`` are the words that name the file and its columns."""
    with display.steps() as progress:
        found = evaluate(
            data.y_true,
            data.y_pred,
            by=data.by,
            sample_weight=data.sample_weight,
            clusters=data.clusters,
            folds=data.folds,
            columns=data.columns,
            title=title,
            n_resamples=n_resamples,
            rng=seed,
            engine=progress if engine is None else engine,
            progress=progress,
            certify=certify,
            source=source,
        )
    return replace(found, notes=(*sentences(data.notes), *found.notes)) if data.notes else found


def write(report: Report | Comparison, out: Path) -> None:
    """The page in its file, or into the standard output."""
    if out == DASH:
        pour(report.save(beside("page.html")))
    else:
        report.save(out)


def show(report: Report | Comparison, out: Path, format: str) -> None:
    """What the format asks for on the standard output; where that has the page, a summary beside it."""
    if format == "json":
        console.emit(report.to_json())
    elif format == "markdown":
        console.emit(report.to_markdown(), end="")
    else:
        with display.aside(out == DASH):
            if isinstance(report, Comparison):
                display.show_comparison(report)
            else:
                display.show_report(report)
            if out != DASH:
                display.say(f"\nWritten to {out}")


def numbers_of(report: Report) -> dict[str, float]:
    """What gates on a report may name: its numbers by their estimator and by their label, and the p-value of its verdict.

    Of several numbers of one estimator, its name means the first, which the verdict rests on.
    """
    named: dict[str, float] = {}
    for x in reversed(report.numbers):
        named |= {x.label: x.value, x.estimator_name: x.value}
    pvalue = report.verdict.pvalue
    return named if pvalue is None else {**named, "pvalue": pvalue}


def report(
    file: File,
    /,
    *others: Others,
    data: FoldedData = FoldedData(),  # noqa: B008  # frozen
    id: Annotated[str | None, Parameter(group=DATA)] = None,
    out: Annotated[Path, Parameter(group=OUTPUT)] = Path("calibrant-report.html"),
    pdf: Annotated[Path | None, Parameter(group=OUTPUT)] = None,
    title: Annotated[str | None, Parameter(group=OUTPUT)] = None,
    n_resamples: int = 999,
    seed: Seed = 0,
    engine: Place = None,
    fail_if: Gates = (),
    certify: Certify = None,
    format: Comment = "table",
) -> int:
    """Write a page that says whether to trust the model, and print its summary.

    Gates may name the numbers of the report by label or estimator: of classes ECE (the calibration error), SKCE, Brier and
    LogLoss, of forecasts PITError, CentralCoverage, SKCE, CRPS and LogLoss; and pvalue, of all tests together.
    Several files of the same rows, one per model, or several --y-pred of one file, are compared, row by row. Gates then
    name a model, too: 'ECE of b > 0.05'.

    Parameters
    ----------
    id
        of several files: column that names the rows, where their order differs
    out
        where to write the page, or by its ending .json the data or .md a comment; - for the standard output
    pdf
        where to print the page, too, by Chromium, Chrome or Edge
    title
        heading of the page
    n_resamples
        resamples of each test
    """
    gates = [Gate.parse(text) for text in fail_if]
    check_place(out, format)
    check_outputs([file, *others], {"--out": None if out == DASH else out, "--pdf": pdf})
    check_page_ending(out, "--out")
    if pdf is not None:
        check_browser()
    data.check_others(others)
    result: Report | Comparison
    is_comparison = len(data.y_pred) > 1 or (bool(others) and not data.shards)
    if id is not None and not (others and is_comparison):
        raise InputError("--id aligns the rows of several files: leave it out with one")
    if data.fold is not None and is_comparison:
        raise InputError("--fold takes one model: ask for a page on each by itself")
    if data.fold is not None and (data.by or certify is not None):
        raise InputError(
            "--fold cuts the rows by the models that predicted them: leave out --by, and --certify, which is about one model"
        )
    if certify is not None and is_comparison:
        raise InputError("--certify takes one model: ask it of each by itself")
    if certify is not None:
        check_margin(certify, "--certify")
    with opened(engine) as place:
        if is_comparison:
            result = comparing.compared([file, *others], data, id, title, n_resamples, seed, place)
        else:
            heading = title or f"Calibration of {name_of(file)}"
            result = made(
                data.read(data.together(file, others)), heading, n_resamples, seed, data.source(file), place, certify
            )
    write(result, out)
    if pdf is not None:
        write_whole(pdf, to_pdf(result.to_html()))
    show(result, out, format)
    numbers = numbers_of(result) if isinstance(result, Report) else comparing.numbers_of_models(result)
    certificate = result.certificate if isinstance(result, Report) else None
    return max(judge(gates, numbers), judge_certificates([] if certificate is None else [certificate]))
