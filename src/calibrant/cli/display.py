"""What the terminal shows: tables, verdicts and progress."""

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table as RichTable
from rich.text import Text

from calibrant.reports.before_after import BeforeAfter
from calibrant.reports.build import Progress as StepProgress
from calibrant.reports.model import Report
from calibrant.results import Estimate, Table, TestResult, brief, number

TONES = {"good": "green", "unsure": "yellow", "bad": "red"}

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def say(text: str) -> None:
    """A line, as it is."""
    out.print(Text(text), soft_wrap=True)


def complain(text: str) -> None:
    """One line on the error stream, as it is."""
    err.print(Text(text), soft_wrap=True)


def show_report(report: Report) -> None:
    """The verdict, then the numbers."""
    tone = TONES[report.verdict.tone]
    body = Text("\n").join([Text(report.verdict.headline, style=f"bold {tone}"), *map(Text, report.verdict.evidence)])
    out.print(Panel(body, title=Text(report.title), border_style=tone, title_align="left"))
    grid = _grid("", "value", "95 % interval", "if calibrated", "p")
    for x in report.numbers:
        interval = "" if x.interval is None else f"{x.text(x.interval.low)} to {x.text(x.interval.high)}"
        pvalue = "" if x.pvalue is None else number(x.pvalue)
        grid.add_row(Text(x.label), x.text(x.value), interval, x.band(), pvalue)
    _print(grid)


def show_estimates(estimates: list[Estimate]) -> None:
    """One row an estimate."""
    grid = _grid("estimator", "value", "95 % interval", "n")
    for estimate in estimates:
        known = estimate.interval is not None or estimate.standard_error is not None
        interval = str(estimate.confidence_interval()) if known else ""
        grid.add_row(Text(brief(estimate.estimator)), number(float(estimate)), interval, f"{estimate.n:,}")
    _print(grid)


def show_test(result: TestResult, alpha: float) -> None:
    """The decision in words, then the result as it prints itself."""
    rejected = result.pvalue <= alpha
    words = "Not calibrated" if rejected else "No evidence against calibration"
    out.print(Text(f"{words} at the level {alpha:g}.", style=TONES["bad" if rejected else "good"]))
    out.print(Text(repr(result)))


def show_change(scores: Table, page: BeforeAfter | None) -> None:
    """Scores before and after; of classes, the calibration error with what calibrated predictions would show."""
    grid = _grid("", "before", "after", "change", "standard error")
    for row in scores.rows():
        tone = TONES["bad" if row["change"] > 0 else "good"]
        change = Text(f"{row['change']:+.2g}", style=tone)
        error = f"{row['error']:.1g}" if math.isfinite(row["error"]) else ""
        grid.add_row(Text(str(row["score"])), number(row["before"]), number(row["after"]), change, error)
    if page is not None:
        before, after = page.before.error, page.after.error
        grid.add_row(Text(after.label.lower()), before.text(before.value), after.text(after.value))
        grid.add_row(Text("  if calibrated", style="dim"), before.band(), after.band())
    _print(grid)


def show_table(table: Table, title: str) -> None:
    """Any table of results."""
    out.print(Text(f"\n{title}"))
    grid = _grid(*table)
    for column, values in zip(grid.columns, table.values(), strict=True):
        column.justify = "right" if values.dtype.kind in "fiu" else "left"
    for row in table.rows():
        grid.add_row(*(Text(v) if isinstance(v, str) else number(float(v)) for v in row.values()))
    _print(grid)


def _print(grid: RichTable) -> None:
    """Within the terminal's width; as wide as it needs to be in a file or a pipe."""
    console = out if out.is_terminal else Console(file=out.file, width=400, highlight=False)
    console.print(grid)


def _grid(first: str, *columns: str) -> RichTable:
    grid = RichTable(box=None, header_style="dim", pad_edge=False, padding=(0, 3, 0, 0))
    grid.add_column(first)
    for column in columns:
        grid.add_column(column, justify="right")
    return grid


@contextmanager
def steps() -> Iterator[StepProgress]:
    """A progress bar on the terminal's error stream for a report; nothing where it is not a terminal."""
    with _bar() as bar:
        task = bar.add_task("Reading", total=None)

        def advance(step: str, done: int, total: int) -> None:
            bar.update(task, description=step, completed=done, total=total)

        yield advance


@dataclass(frozen=True)
class ProgressEngine:
    """An engine that works here, one task after the other or in several processes, and shows how far it is."""

    workers: int = 1

    def map(self, fn: Callable[..., Any], /, *tasks: Any) -> Iterator[Any]:
        """Apply ``fn`` to each task."""
        columns = [list(column) for column in tasks]
        pool = ProcessPoolExecutor(self.workers) if self.workers > 1 else nullcontext()
        with pool as executor, _bar() as bar:
            task = bar.add_task("Working", total=len(columns[0]))
            run: Callable[..., Any] = map if executor is None else executor.map
            for result in run(fn, *columns):
                bar.advance(task)
                yield result


def _bar() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    return Progress(*columns, console=err, transient=True, disable=not err.is_terminal)
