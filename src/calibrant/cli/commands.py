"""Commands on files of predictions."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from calibrant import io
from calibrant._validate import check_fraction
from calibrant.cli import display
from calibrant.cli.app import Data, Gates, Output, Seed, Texts, app, check_writable, print_json
from calibrant.cli.gate import Gate
from calibrant.cli.settings import default_set, parse_estimator, parse_test
from calibrant.inference.aggregated import AggregatedTest
from calibrant.inference.intervals import Bootstrap
from calibrant.lenses import groups
from calibrant.reports.build import evaluate
from calibrant.reports.model import Report
from calibrant.reports.pdf import check_browser, to_pdf
from calibrant.reports.slices import slices as slices_of
from calibrant.results import Estimate, Table, TestResult, brief


@app.command
def demo(*, out: Path = Path("calibrant-demo.html"), seed: Seed = 0) -> int:
    """Make a report on predictions that ship with calibrant: a small neural network reading handwritten digits.

    Parameters
    ----------
    out
        where to write the page
    """
    check_writable(out, "--out")
    data = io.read(io.example("digits"), y_true="digit", y_pred="p_*", by=["ink"])
    _write_report(data, out, "Handwritten digits, read by a small neural network", 999, seed)
    display.say("\nThe same for your own file:  calibrant report FILE --y-true COLUMN --y-pred 'p_*' --by COLUMN")
    return 0


@app.command
def report(
    file: Path,
    /,
    *,
    data: Data = Data(),  # noqa: B008  # frozen
    out: Path = Path("calibrant-report.html"),
    pdf: Path | None = None,
    title: str | None = None,
    n_resamples: int = 999,
    seed: Seed = 0,
    fail_if: Gates = (),
    format: Output = "table",
) -> int:
    """Write a page that says whether to trust the model, and print its summary.

    Gates may name ECE (the calibration error), SKCE, Brier, LogLoss and pvalue (of the exact test).

    Parameters
    ----------
    file
        predictions and truth: CSV, Parquet, JSONL or NPZ
    out
        where to write the page (or, ending in .json, the data)
    pdf
        where to print the page, too, by Chromium, Chrome or Edge
    title
        heading of the page
    n_resamples
        redraws of each test
    """
    gates = [Gate.parse(text) for text in fail_if]
    check_writable(out, "--out")
    if pdf is not None:
        check_writable(pdf, "--pdf")
        check_browser()
    result = _write_report(data.read(file), out, title or f"Calibration of {file.name}", n_resamples, seed, format)
    if pdf is not None:
        pdf.write_bytes(to_pdf(result.to_html()))
    first = result.numbers[0]
    numbers = {} if first.pvalue is None else {"pvalue": first.pvalue}
    for x in reversed(result.numbers):  # the first error is the one meant by ECE
        numbers[x.estimator.partition("(")[0]] = x.value
    return _judge(gates, numbers)


@app.command
def estimate(
    file: Path,
    /,
    *,
    data: Data = Data(),  # noqa: B008  # frozen
    estimator: Annotated[Texts, Parameter(negative="")] = (),
    interval: Annotated[bool, Parameter(negative="")] = False,
    seed: Seed = 0,
    fail_if: Gates = (),
    format: Output = "table",
) -> int:
    """Estimate calibration errors and scores.

    Parameters
    ----------
    file
        predictions and truth: CSV, Parquet, JSONL or NPZ
    estimator
        such as "ECE(bins=EqualMass(15), lens=TopLabel())"; may be repeated; without any, ECE, Brier and log loss
    interval
        add bootstrap intervals
    """
    gates = [Gate.parse(text) for text in fail_if]
    read = data.read(file)
    chosen = [parse_estimator(text) for text in estimator] or default_set(read.y_pred)
    measures = [_Seeded(Bootstrap(e), seed) if interval else e for e in chosen]
    results: list[Estimate] = [_measure(m, read) for m in measures]
    slices = [
        (brief(e), name, _sliced(m, read, name)) for e, m in zip(chosen, measures, strict=True) for name in read.by
    ]
    if format == "json":
        rows = [{"estimator": text, "by": name, **table.to_dict()} for text, name, table in slices]
        print_json({"estimates": results, "slices": rows})
    else:
        display.show_estimates(results)
        for text, name, table in slices:
            display.show_table(table, f"{text} by {name}")
    exact_names = {repr(e): float(r) for e, r in zip(chosen, results, strict=True)}
    return _judge(gates, {**{r.name: float(r) for r in reversed(results)}, **exact_names})


@app.command(name="test")
def exact_test(
    file: Path,
    /,
    *,
    data: Data = Data(),  # noqa: B008  # frozen
    test: str | None = None,
    n_resamples: int = 999,
    alpha: float = 0.05,
    gate: Annotated[bool, Parameter(negative="")] = False,
    seed: Seed = 0,
    fail_if: Gates = (),
    format: Output = "table",
) -> int:
    """Test whether the predictions are calibrated; exact at every sample size, with no bandwidth to choose.

    Gates may name pvalue and statistic: --fail-if 'pvalue < 0.01'.

    Parameters
    ----------
    file
        predictions and truth: CSV, Parquet, JSONL or NPZ
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
    measure = _Seeded(chosen, seed)
    result: TestResult = _measure(measure, read)
    slices = {name: _sliced(measure, read, name) for name in read.by}
    if format == "json":
        print_json({**result.to_dict(), "slices": {name: table.to_dict() for name, table in slices.items()}})
    else:
        display.show_test(result, alpha)
        for name, table in slices.items():
            display.show_table(table, f"by {name}")
    gates += [Gate("pvalue", "<=", alpha)] if gate else []
    return _judge(gates, {"pvalue": result.pvalue, "statistic": result.statistic})


@dataclass(frozen=True)
class _Seeded:
    """A test or interval with its seed, showing progress."""

    measure: Callable[..., Any]
    seed: int

    def __call__(self, y_true: Any, y_pred: Any, **options: Any) -> Any:
        return self.measure(y_true, y_pred, rng=self.seed, engine=display.ProgressEngine(), **options)


def _measure(measure: Callable[..., Any], data: io.Dataset) -> Any:
    return measure(data.y_true, data.y_pred, sample_weight=data.sample_weight)


def _sliced(measure: Callable[..., Any], data: io.Dataset, name: str) -> Table:
    labels, names = slices_of(data.by[name], name)
    table = groups(measure, data.y_true, data.y_pred, by=labels, sample_weight=data.sample_weight)
    return Table({**table, "group": [names[i] for i in table["group"]]})


def _write_report(
    data: io.Dataset, out: Path, title: str, n_resamples: int, seed: int, format: str = "table"
) -> Report:
    with display.steps() as progress:
        result = evaluate(
            data.y_true,
            data.y_pred,
            by=data.by,
            sample_weight=data.sample_weight,
            title=title,
            n_resamples=n_resamples,
            rng=seed,
            progress=progress,
        )
        result.save(out)
    if format == "json":
        print(result.to_json())
    else:
        display.show_report(result)
        display.say(f"\nWritten to {out}")
    return result


def _judge(gates: list[Gate], numbers: dict[str, float]) -> int:
    """1 if any gate fails, saying which; else 0."""
    failed = [gate for gate in gates if gate.fails(numbers)]
    for gate in failed:
        display.err.print(f"gate failed: {gate.name} = {numbers[gate.name]:.6g} {gate.comparison} {gate.limit:g}")
    return 1 if failed else 0
