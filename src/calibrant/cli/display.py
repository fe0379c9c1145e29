"""What the terminal shows: verdicts, tables, and progress with the time that is left."""

import math
import re
import signal
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.panel import Panel
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.table import Table as RichTable
from rich.text import Text

from calibrant.cli import console
from calibrant.cli.console import aside, complain, err, is_watched, say, shown
from calibrant.results import Estimate, Table, TestResult, brief, number
from calibrant.results.text import enumeration, plain_text, visible

if TYPE_CHECKING:
    from calibrant.reports.before_after import BeforeAfter
    from calibrant.reports.core.model import Advice, Verdict
    from calibrant.reports.evaluation import Report
    from calibrant.reports.model_comparison import Comparison
    from calibrant.reports.render.markdown import Standout


UNSAID_WORK = 0.3
"""The work that is expected of a step which does not say."""


class _Steps:
    """A bar for work of several steps: called before each step, and an engine that moves it on within one."""

    is_here = True
    """What has threads of its own need not be cut into tasks to be shown."""

    def __init__(self, bar: Progress, first: str) -> None:
        self.bar, self.task = bar, bar.add_task(first, total=None)
        self.done, self.share = 0.0, 0.0

    def __call__(self, step: str, done: float, total: float) -> None:
        """Tell of the step that begins; one that carries its work has that share to move on in."""
        self.done, self.share = done, getattr(step, "work", UNSAID_WORK) if total > done else 0.0
        self._move(done, description=step, total=total)

    def map(self, fn: Callable[..., Any], /, *tasks: Any) -> Iterator[Any]:
        """Apply ``fn`` to each task, here; as a step may do so more than once, the bar goes no further than it would take."""
        columns = [list(column) for column in tasks]
        for i, result in enumerate(map(fn, *columns)):
            self._move(self.done + 0.9 * self.share * (i + 1) / len(columns[0]))
            yield result

    def _move(self, completed: float, **more: Any) -> None:
        further = max(completed, self.bar.tasks[0].completed if not more else 0.0)
        self.bar.update(self.task, completed=further, moment=time.monotonic(), **more)


@contextmanager
def steps(first: str = "Reading") -> Iterator[_Steps]:
    """Such a bar, each step as long as the work that is expected of it; nothing where nobody looks on."""
    with _bar() as bar:
        yield _Steps(bar, first)


@dataclass(frozen=True)
class ProgressEngine:
    """An engine that works here, one task after the other or in several processes, and shows how far it is."""

    workers: int = 1
    name: str = "Working"

    @property
    def is_here(self) -> bool:
        """Whether tasks are done by this process; what has threads of its own need not be cut into them then."""
        return self.workers == 1

    def map(self, fn: Callable[..., Any], /, *tasks: Any) -> Iterator[Any]:
        """Apply ``fn`` to each task."""
        columns = [list(column) for column in tasks]
        with self._pool() as executor, _bar() as bar:
            task = bar.add_task(self.name, total=len(columns[0]))
            run: Callable[..., Any] = map if executor is None else executor.map
            for result in run(fn, *columns):
                bar.update(task, advance=1, moment=time.monotonic())
                yield result

    def _pool(self) -> Any:
        """Processes that leave an interruption to the one that started them."""
        if self.workers == 1:
            return nullcontext()
        return ProcessPoolExecutor(self.workers, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN))


class TimeLeft(ProgressColumn):
    """The time that the rest takes at the speed so far, counting down between steps."""

    def render(self, task: Task) -> Text:
        """In words; nothing before there is a speed."""
        left = seconds_left(task.elapsed or 0.0, task.completed, task.total, task.fields.get("moment"))
        return Text("" if left is None else f"about {duration(left)} left", style="dim")


def seconds_left(elapsed: float, done: float, total: float | None, moment: float | None) -> float | None:
    """Seconds that are left: the work that is not done, at the speed of what was done until the last step began.

    >>> seconds_left(10.0, 1.0, 4.0, None), seconds_left(10.0, 0.0, 4.0, None)
    (30.0, None)
    """
    if total is None or done <= 0:
        return None
    since = 0.0 if moment is None else time.monotonic() - moment
    return max((elapsed - since) * (total - done) / done - since, 0.0)


def duration(seconds: float) -> str:
    """A time in words, no finer than one can tell.

    >>> duration(0.4), duration(42.3), duration(95), duration(4000)
    ('1 s', '42 s', '1:35 min', '1:06 h')
    """
    whole = max(round(seconds), 1)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02} h"


@contextmanager
def _bar() -> Iterator[Progress]:
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn(), TimeLeft())
    bar = Progress(*columns, console=err, transient=True, disable=not is_watched(err))
    with nullcontext() if bar.disable else bar:  # old releases of rich end a line where nothing was shown
        yield bar


__all__ = ["ProgressEngine", "aside", "complain", "err", "say", "steps"]

TONES = {"good": "green", "unsure": "yellow", "bad": "red"}

MAX_SLICES = 5
"""Flagged slices that are shown."""

MAX_COLUMNS = 100
"""Columns of a line that is read with ease; sentences are not wider, tables may be."""

UNBOUND = 400
"""Columns of a table in a file or a pipe."""


def show_comparison(comparison: "Comparison") -> None:
    """The verdict, and how far models lie apart."""
    _show_verdict(comparison.verdict, comparison.title)
    table = comparison.differences
    texts = {name: [plain_text(str(v)) for v in table[name].tolist()] for name in ("measure", "a", "b")}
    shown = {"difference a - b": "difference", "low": "low", "high": "high", "p": "pvalue"}
    show_columns(
        {**texts, **{heading: [number(v) for v in table[name].tolist()] for heading, name in shown.items()}}, left=3
    )


def _show_verdict(verdict: "Verdict", title: str) -> None:
    tone, width = TONES[verdict.tone], min(console.out.width, MAX_COLUMNS)
    headline, *evidence = (_broken(text, width - 4) for text in (verdict.headline, *verdict.evidence))
    body = Text("\n").join([shown(headline, f"bold {tone}"), *map(shown, evidence)])
    console.out.print(Panel(body, title=Text(plain_text(title)), border_style=tone, title_align="left", width=width))


def show_report(report: "Report") -> None:
    """The verdict, the numbers, what stands out, and what to do."""
    from calibrant.reports.render.markdown import standouts

    _show_verdict(report.verdict, report.title)
    show_columns(_number_columns(report), left=1)
    for reason in dict.fromkeys(x.withheld for x in report.numbers if x.withheld is not None):
        labels = [x.label for x in report.numbers if x.withheld == reason]
        have = "has" if len(labels) == 1 else "have"
        say(_broken(f"{enumeration(labels)} {have} no interval: {reason}", min(console.out.width, MAX_COLUMNS)))
    show_standouts(standouts(report))
    if report.advice is not None:
        show_advice(report.advice)


def _number_columns(report: "Report") -> dict[str, list[str]]:
    """The numbers of a report, those that matter most to the left."""
    numbers = report.numbers
    intervals = [None if x.interval is None else (x.text(x.interval.low), x.text(x.interval.high)) for x in numbers]
    found = {
        "": [x.label for x in numbers],
        "value": [x.text(x.value) for x in numbers],
        "if calibrated": [x.band() for x in numbers],
        "p": ["" if x.pvalue is None else number(x.pvalue) for x in numbers],
        "95 % interval": ["" if pair is None else " to ".join(pair) for pair in intervals],
    }
    return {heading: cells for heading, cells in found.items() if any(cells)}


def show_standouts(found: "Sequence[Standout]") -> None:
    """Flagged slices and classes, the strongest evidence first."""
    if not found:
        return
    shown = found[:MAX_SLICES]
    more = f", {len(found) - MAX_SLICES} more in the report" if len(found) > MAX_SLICES else ""
    console.out.print(Text(f"\nStands out{more}", style="bold"))
    headings = [
        name for name in ("error", "if calibrated", "p", "claimed", "happened", "rows") if name in shown[0].cells
    ]
    names = [f"{x.section}: {plain_text(x.group, 40)}" for x in shown]
    show_columns({"": names, **{name: [x.cells.get(name, "") for x in shown] for name in headings}}, left=1)


def show_advice(advice: "Advice") -> None:
    """What to do, and the command that does it."""
    width = min(console.out.width, MAX_COLUMNS)
    headline = _broken(f"What to do: {advice.headline}", width)
    console.out.print()
    console.out.print(Text.assemble((headline[:12], "bold"), visible(headline[12:])))
    for sentence in advice.sentences:
        console.out.print(shown(_broken(sentence, width)))
    if advice.command is not None:
        say(f"  {advice.command}")


def show_estimates(estimates: list[Estimate]) -> None:
    """One row per estimate, and below the table what a reader must know of each."""
    columns: dict[str, list[str]] = {"estimator": [], "value": [], "95 % interval": [], "n": []}
    for estimate in estimates:
        interval = str(estimate.confidence_interval()) if estimate.has_interval else ""
        row = (brief(estimate.estimator), number(float(estimate)), interval, f"{estimate.n:,}")
        for column, cell in zip(columns.values(), row, strict=True):
            column.append(cell)
    show_columns(columns, left=1)
    for estimate in estimates:
        withheld = () if estimate.withheld is None else (f"no interval: {estimate.withheld}",)
        for sentence in (*withheld, *estimate.notes):
            say(_broken(f"{brief(estimate.estimator)}: {sentence}", min(console.out.width, MAX_COLUMNS)))


def show_sentences(sentences: Sequence[str]) -> None:
    """Each in a paragraph of its own."""
    for sentence in sentences:
        say(_broken(sentence, min(console.out.width, MAX_COLUMNS)))


def show_test(result: TestResult, alpha: float) -> None:
    """The decision in words, then the result as it prints itself."""
    rejected = result.pvalue <= alpha
    words = "Not calibrated" if rejected else "No evidence against calibration"
    console.out.print(Text(f"{words} at the level {alpha:g}.", style=TONES["bad" if rejected else "good"]))
    say(repr(result))


def show_change(scores: Table, page: "BeforeAfter | None") -> None:
    """Scores before and after; of classes, the calibration error with what calibrated predictions would show."""
    grid = _grid(["", "before", "after", "change", "standard error"], left=1)
    for row in scores.rows():
        tone = TONES["bad" if row["change"] > 0 else "good"]
        change = Text(f"{row['change']:+.2g}", style=tone)
        error = f"{row['error']:.1g}" if math.isfinite(row["error"]) else ""
        grid.add_row(shown(str(row["score"])), number(row["before"]), number(row["after"]), change, error)
    if page is not None:
        before, after = page.before.error, page.after.error
        grid.add_row(Text(after.label.lower()), before.text(before.value), after.text(after.value))
        if before.null_band is not None:
            grid.add_row(Text("  if calibrated", style="dim"), before.band(), after.band())
    _roomy().print(grid)


def show_table(table: Table, title: str) -> None:
    """Any table of results."""
    console.out.print(shown(f"\n{title}"))
    cells = {
        name: [v if isinstance(v, str) else number(float(v)) for v in values.tolist()] for name, values in table.items()
    }
    is_text = [values.dtype.kind not in "fiu" for values in table.values()]
    show_columns(cells, left=is_text.index(False) if False in is_text else len(is_text))


def show_columns(columns: Mapping[str, Sequence[str]], *, left: int) -> None:
    """Columns side by side, the first ``left`` of them words; in as many blocks as the width asks for, no number cut."""
    for i, names in enumerate(_blocks(columns, _roomy().width)):
        if i:
            _roomy().print()
        grid = _grid(names, left=left if i == 0 else 1)
        for row in zip(*(columns[name] for name in names), strict=True):
            grid.add_row(*map(shown, row))
        _roomy().print(grid)


def _blocks(columns: Mapping[str, Sequence[str]], width: int) -> Iterator[list[str]]:
    """Names of columns that fit side by side, the first of all in every block; it gives way down to 16 letters."""
    first, *rest = columns
    sizes = {name: max(map(cell_len, [name, *cells])) + 2 for name, cells in columns.items()}
    block, taken = [first], min(sizes[first], 18)
    for name in rest:
        if taken + sizes[name] > width + 2 and len(block) > 1:
            yield block
            block, taken = [first], min(sizes[first], 18)
        block, taken = [*block, name], taken + sizes[name]
    yield block


def _broken(sentence: str, width: int) -> str:
    """A sentence on lines of so many letters; a number stays with its unit and with its name."""
    tied = re.sub(r" (?=%)| [=±] ", lambda found: found[0].replace(" ", "\u00a0"), sentence)
    return textwrap.fill(tied, width, break_on_hyphens=False).replace("\u00a0", " ")


def _roomy() -> Console:
    """The terminal with its width; a file or a pipe is as wide as it needs to be."""
    if console.out.file.isatty():
        return console.out
    return console.Stream(file=console.out.file, width=UNBOUND, highlight=False, force_terminal=console.out.is_terminal)


def _grid(names: Sequence[str], *, left: int) -> RichTable:
    grid = RichTable(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    for i, name in enumerate(names):
        grid.add_column(shown(name), justify="left" if i < left else "right", no_wrap=i > 0)
    return grid
