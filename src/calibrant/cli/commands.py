"""The commands."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from cyclopts import App, Parameter

import calibrant
from calibrant import io
from calibrant._validate import InputError, check_count, check_fraction
from calibrant.cli import display
from calibrant.cli.gate import Gate
from calibrant.cli.settings import default_set, parse_estimator, parse_test
from calibrant.inference.aggregated import AggregatedTest
from calibrant.inference.intervals import Bootstrap
from calibrant.lenses import groups
from calibrant.reports.build import evaluate
from calibrant.reports.model import Report
from calibrant.reports.slices import slices as slices_of
from calibrant.results import Estimate, Table, TestResult, brief, jsonable

app = App(
    name="calibrant",
    version=calibrant.__version__,
    help="Can I believe these probabilities? Start with `calibrant demo`, then `calibrant report FILE`.",
)


@Parameter(name="*")
@dataclass(frozen=True)
class Data:
    """Which columns of the file hold what."""

    y_true: Annotated[str | None, Parameter(help="column of the truth; 'y_*' for several labels a row")] = None
    y_pred: Annotated[str | None, Parameter(help="column of probabilities; 'p_*' for a column a class")] = None
    predict: Annotated[
        str | None, Parameter(help="a family and its columns: \"Categorical.from_logits(logits='z_*')\"")
    ] = None
    by: Annotated[tuple[str, ...], Parameter(help="column to slice by; may be repeated", negative="")] = ()
    sample_weight: Annotated[str | None, Parameter(help="column of weights")] = None
    pos_label: Annotated[str | None, Parameter(help="the label whose probability a single column gives")] = None

    def read(self, file: Path) -> io.Dataset:
        """The file's targets and predictions."""
        return io.read(
            file,
            y_true=self.y_true,
            y_pred=self.y_pred,
            predict=self.predict,
            by=self.by,
            sample_weight=self.sample_weight,
            pos_label=self.pos_label,
        )


Output = Annotated[Literal["table", "json"], Parameter(name="--format", help="for people or for programs")]
Texts = tuple[str, ...]
Gates = Annotated[Texts, Parameter(name="--fail-if", help="leave with code 1 if this holds: 'ECE > 0.05'", negative="")]
Seed = Annotated[int, Parameter(help="seed of all random draws")]


@app.command
def demo(*, out: Path = Path("calibrant-demo.html"), seed: Seed = 0) -> int:
    """Make a report on predictions that ship with calibrant: a small neural network reading handwritten digits.

    Parameters
    ----------
    out
        where to write the page
    """
    _check_writable(out)
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
    title
        heading of the page
    n_resamples
        redraws of each test
    """
    gates = [Gate.parse(text) for text in fail_if]
    _check_writable(out)
    result = _write_report(data.read(file), out, title or f"Calibration of {file.name}", n_resamples, seed, format)
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
        _print_json({"estimates": results, "slices": rows})
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
        _print_json({**result.to_dict(), "slices": {name: table.to_dict() for name, table in slices.items()}})
    else:
        display.show_test(result, alpha)
        for name, table in slices.items():
            display.show_table(table, f"by {name}")
    gates += [Gate("pvalue", "<=", alpha)] if gate else []
    return _judge(gates, {"pvalue": result.pvalue, "statistic": result.statistic})


@app.command
def reproduce(
    study: Literal["estimator-error", "rejection-rates"],
    /,
    *,
    data_sets: int = 500,
    seed: Annotated[
        int | None, Parameter(help="seed of all random draws; without it, the one of our own table")
    ] = None,
    workers: int = 1,
    out: Path | None = None,
    keep: Path | None = None,
    format: Output = "table",
) -> int:
    """Repeat a published experiment, and say how far its numbers are from the published ones.

    Leaves with code 1 where a cell lies further off than chance allows.

    Parameters
    ----------
    study
        estimator-error: errors and variances of the kernel error (Widmann, Lindsten & Zachariah 2021, figures 6 to 9);
        rejection-rates: how often tests reject (figures 2, 10 and 11; hours at 500 data sets)
    data_sets
        simulated data sets a cell; the published number is 500
    workers
        processes that share the work; the digits do not depend on them
    out
        folder for the table and the figure, as STUDY.md and STUDY.svg
    keep
        folder for finished cells, so that a study that is broken off goes on where it stopped
    """
    from calibrant.lab.papers import estimator_error, rejection_rates

    check_count(data_sets, "--data-sets", least=100)
    check_count(workers, "--workers")
    for folder in filter(None, (out, keep)):
        folder.mkdir(parents=True, exist_ok=True)
    paper: Any = {"estimator-error": estimator_error, "rejection-rates": rejection_rates}[study]
    engine = display.ProgressEngine(workers)
    table: Table = paper.study(data_sets, seed=paper.SEED if seed is None else seed, engine=engine, folder=keep)
    if out is not None:
        _write_study(out / study, paper, table)
    worst = max(float(np.nanmax(table[name])) for name in table if name == "z" or name.endswith("_z"))
    if format == "json":
        _print_json({"study": study, "bound": paper.BOUND, **table.to_dict()})
    else:
        display.show_table(table, f"{study}, with the published values")
        display.say(f"\nlargest difference: {worst:.2f} standard errors (bound {paper.BOUND})")
    return 1 if worst > paper.BOUND else 0


def _write_study(path: Path, paper: Any, table: Table) -> None:
    """The page and the picture of a study."""
    from calibrant.lab.papers import pictures

    picture = path.with_suffix(".svg")
    picture.write_text(pictures.svg(paper.figure(table)), "utf-8")
    title, _, text = paper.__doc__.strip().partition("\n\n")
    page = [f"# {title}", text, f"![{title}]({picture.name})", paper.summary(table).to_markdown()]
    path.with_suffix(".md").write_text("\n\n".join(page) + "\n", "utf-8")


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


def _check_writable(out: Path) -> None:
    if not out.parent.is_dir():
        raise InputError(f"--out {str(out)!r}: there is no folder {str(out.parent)!r}")


def _print_json(value: object) -> None:
    print(json.dumps(jsonable(value), indent=2, ensure_ascii=False, allow_nan=False))


def _judge(gates: list[Gate], numbers: dict[str, float]) -> int:
    """1 if any gate fails, saying which; else 0."""
    failed = [gate for gate in gates if gate.fails(numbers)]
    for gate in failed:
        display.err.print(f"gate failed: {gate.name} = {numbers[gate.name]:.6g} {gate.comparison} {gate.limit:g}")
    return 1 if failed else 0
