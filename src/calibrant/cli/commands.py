"""Commands on files of predictions."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from calibrant import io
from calibrant._validate import InputError, check_fraction
from calibrant.cli import comparing, display, reporting
from calibrant.cli.app import (
    DATA,
    OUTPUT,
    Comment,
    Data,
    File,
    Gates,
    Others,
    Place,
    Seed,
    Texts,
    check_outputs,
    command,
    opened,
    print_json,
)
from calibrant.cli.comments import comment_of_estimates, comment_of_test
from calibrant.cli.gate import Gate, judge, numbers_of
from calibrant.cli.settings import default_set, parse_estimator, parse_test
from calibrant.cli.streams import DASH, name_of
from calibrant.inference.aggregated import AggregatedTest
from calibrant.inference.intervals import WithInterval
from calibrant.lenses import groups
from calibrant.reports.comparison import Comparison
from calibrant.reports.pdf import check_browser, to_pdf
from calibrant.reports.report import Report
from calibrant.reports.slices import slices as slices_of
from calibrant.results import Estimate, Table, TestResult, brief
from calibrant.typing import Engine


@command("report")
def report(
    file: File,
    /,
    *others: Others,
    data: Data = Data(),  # noqa: B008  # frozen
    id: Annotated[str | None, Parameter(group=DATA)] = None,
    out: Annotated[Path, Parameter(group=OUTPUT)] = Path("calibrant-report.html"),
    pdf: Annotated[Path | None, Parameter(group=OUTPUT)] = None,
    title: Annotated[str | None, Parameter(group=OUTPUT)] = None,
    n_resamples: int = 999,
    seed: Seed = 0,
    engine: Place = None,
    fail_if: Gates = (),
    format: Comment = "table",
) -> int:
    """Write a page that says whether to trust the model, and print its summary.

    Gates may name the numbers of the report by label or estimator: of classes ECE (the calibration error), SKCE, Brier and
    LogLoss, of forecasts PITError, LevelsWithin, SKCE, CRPS and LogLoss; and pvalue, of all tests together.
    Several files of the same rows, one a model, are compared, row by row; gates then name a model, too: 'ECE of b > 0.05'.

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
        redraws of each test
    """
    gates = [Gate.parse(text) for text in fail_if]
    reporting.check_place(out, format)
    check_outputs([file, *others], {"--out": None if out == DASH else out, "--pdf": pdf})
    if pdf is not None:
        check_browser()
    result: Report | Comparison
    if id is not None and not others:
        raise InputError("--id aligns the rows of several files: leave it out with one")
    with opened(engine) as place:
        if others:
            result = comparing.compared([file, *others], data, id, title, n_resamples, seed, place)
        else:
            heading = title or f"Calibration of {name_of(file)}"
            result = reporting.made(data.read(file), heading, n_resamples, seed, data.source(file), place)
    reporting.write(result, out)
    if pdf is not None:
        pdf.write_bytes(to_pdf(result.to_html()))
    reporting.show(result, out, format)
    numbers = numbers_of(result) if isinstance(result, Report) else comparing.numbers_of_models(result)
    return judge(gates, numbers)


@command("estimate")
def estimate(
    file: File,
    /,
    *,
    data: Data = Data(),  # noqa: B008  # frozen
    estimator: Annotated[Texts, Parameter(negative="", show_default=False)] = (),
    interval: Annotated[bool, Parameter(negative="")] = False,
    seed: Seed = 0,
    engine: Place = None,
    fail_if: Gates = (),
    format: Comment = "table",
) -> int:
    """Estimate calibration errors and scores.

    Parameters
    ----------
    estimator
        such as "ECE(bins=EqualMass(15), lens=TopLabel())"; may be repeated; without any, ECE, Brier and log loss
    interval
        add bootstrap intervals to estimators that have none of their own, where resampling suits them
    """
    gates = [Gate.parse(text) for text in fail_if]
    read = data.read(file)
    chosen = [parse_estimator(text) for text in estimator] or default_set(read.y_pred)
    with opened(engine) as place:
        measures = [_Seeded(WithInterval(e), seed, place) if interval else partial(e, engine=place) for e in chosen]
        results, slices = _measured(measures, [brief(e) for e in chosen], read)
    if format == "json":
        rows = [{"estimator": text, "by": name, **table.to_dict()} for text, name, table in slices]
        print_json({"estimates": results, "slices": rows})
    elif format == "markdown":
        print(comment_of_estimates(results, slices))
    else:
        display.show_estimates(results)
        for text, name, table in slices:
            display.show_table(table, f"{text} by {name}")
    exact_names = {repr(e): float(r) for e, r in zip(chosen, results, strict=True)}
    return judge(gates, {**{r.name: float(r) for r in reversed(results)}, **exact_names})


@command("test")
def exact_test(
    file: File,
    /,
    *,
    data: Data = Data(),  # noqa: B008  # frozen
    test: str | None = None,
    n_resamples: int = 999,
    alpha: float = 0.05,
    gate: Annotated[bool, Parameter(negative="")] = False,
    seed: Seed = 0,
    engine: Place = None,
    fail_if: Gates = (),
    format: Comment = "table",
) -> int:
    """Test whether the predictions are calibrated; exact at every sample size, with no bandwidth to choose.

    Gates may name pvalue and statistic: --fail-if 'pvalue < 0.01'.

    Parameters
    ----------
    test
        such as "ExactTest(ECE(lens=ClassWise()))"; without it, AggregatedTest()
    n_resamples
        redraws, where --test does not say
    alpha
        the level of the test
    gate
        leave with code 1 where the test rejects at this level
    """
    gates = [Gate.parse(text) for text in fail_if]
    check_fraction(alpha, "--alpha")
    read = data.read(file)
    chosen = AggregatedTest(n_resamples=n_resamples) if test is None else parse_test(test)
    with opened(engine) as place:
        measure = _Seeded(chosen, seed, place)
        result: TestResult = _measure(measure, read)
        slices = {name: _sliced(measure, read, name) for name in read.by}
    if format == "json":
        print_json({**result.to_dict(), "slices": {name: table.to_dict() for name, table in slices.items()}})
    elif format == "markdown":
        print(comment_of_test(result, alpha, slices))
    else:
        display.show_test(result, alpha)
        for name, table in slices.items():
            display.show_table(table, f"by {name}")
    gates += [Gate("pvalue", "<=", alpha)] if gate else []
    return judge(gates, {"pvalue": result.pvalue, "statistic": result.statistic})


def _measured(
    measures: Sequence[Callable[..., Any]], names: Sequence[str], data: io.Dataset
) -> tuple[list[Estimate], list[tuple[str, str, Table]]]:
    """What each measure says of all rows, and of the slices of each column; with progress, a step a measure."""
    results: list[Estimate] = []
    slices: list[tuple[str, str, Table]] = []
    has_own = any(isinstance(measure, _Seeded) for measure in measures)
    with nullcontext() if has_own else display.steps() as progress:
        for i, (measure, text) in enumerate(zip(measures, names, strict=True)):
            if progress is not None:
                progress(text, i, len(measures))
            results.append(_measure(measure, data))
            slices += [(text, name, _sliced(measure, data, name)) for name in data.by]
    return results, slices


@dataclass(frozen=True)
class _Seeded:
    """A test or interval with its seed, showing progress unless it is done elsewhere."""

    measure: Callable[..., Any]
    seed: int
    engine: Engine | None = None

    def __call__(self, y_true: Any, y_pred: Any, **options: Any) -> Any:
        name = type(getattr(self.measure, "estimator", self.measure)).__name__
        engine = display.ProgressEngine(name=name) if self.engine is None else self.engine
        return self.measure(y_true, y_pred, rng=self.seed, engine=engine, **options)


def _measure(measure: Callable[..., Any], data: io.Dataset) -> Any:
    return measure(data.y_true, data.y_pred, sample_weight=data.sample_weight)


def _sliced(measure: Callable[..., Any], data: io.Dataset, name: str) -> Table:
    labels, names = slices_of(data.by[name], name)
    table = groups(measure, data.y_true, data.y_pred, by=labels, sample_weight=data.sample_weight)
    return Table({**table, "group": [names[i] for i in table["group"]]})
