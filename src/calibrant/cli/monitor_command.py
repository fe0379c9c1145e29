"""The command that watches a stream of predictions, row by row."""

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import monotonic
from typing import IO, Annotated, Any

from cyclopts import Parameter

from calibrant._files import read_json, write_whole
from calibrant._validate import InputError, check_count
from calibrant.cli import Stopped, console, display
from calibrant.cli.flags import Comment, Fields, File, Seed, check_outputs
from calibrant.cli.pipes import DASH, is_stream, name_of
from calibrant.cli.program import OUTPUT
from calibrant.io.batches import Batches
from calibrant.monitoring.control import Window, Windows
from calibrant.monitoring.monitor import Monitor
from calibrant.reports.core.model import check_page_ending
from calibrant.reports.render.pdf import check_browser
from calibrant.reports.stream_report import MonitorReport, evalue, monitor_report
from calibrant.results import how_many, jsonable, number, percent

HEADINGS = (
    f"{'rows':>23}  {'claimed':>8}  {'happened':>8}  {'error':>8}  {'if calibrated':>18}  {'p':>6}  {'e-value':>8}"
)


def monitor(
    file: File,
    /,
    *,
    data: Fields = Fields(),  # noqa: B008  # frozen
    alpha: float = 0.05,
    window: int = 1000,
    strict: Annotated[bool, Parameter(negative="")] = False,
    stop: Annotated[bool, Parameter(negative="")] = False,
    state: Annotated[Path | None, Parameter(group=OUTPUT)] = None,
    save_every: Annotated[str, Parameter(group=OUTPUT)] = "30s",
    report: Annotated[Path | None, Parameter(group=OUTPUT)] = None,
    title: Annotated[str | None, Parameter(group=OUTPUT)] = None,
    seed: Seed = 0,
    format: Comment = "table",
) -> int:
    """Watch predictions as they come, and raise an alarm when they cannot be believed any more.

    Rows are read in their order from a file or a pipe (JSON lines, CSV). The alarm keeps its level at every look: a calibrated
    model raises one with probability at most --alpha, however long it is watched. Leaves with code 1 after an alarm.

    Parameters
    ----------
    alpha
        how likely a false alarm may be, over the whole stream
    window
        rows of a line of the table, which shows its own error and p-value, and of a window of the page at first
    strict
        a line that cannot be used is an error, after the rows before it; without it, such lines are counted and left out
    stop
        leave at the alarm, and do not read on
    state
        a file to go on from, where it exists, and to keep the state in: at the end, at Ctrl-C, SIGTERM and SIGHUP, at an error,
        and as often as --save-every says
    save_every
        rows, such as 10000, or seconds, such as 30s, after which --state is written again; no more than these are lost
        where the program or the machine fails
    report
        where to write a page, at the alarm and at the end; by its ending .json the data, .md a comment, .pdf a print
    title
        heading of the page
    """
    if data.sample_weight is not None:
        raise InputError("--sample-weight: the monitor takes every row once; leave it out")
    check_outputs([file], {"--report": report, "--state": state})
    if report is not None:
        check_page_ending(report, "--report")
        if report.suffix.lower() == ".pdf":
            check_browser()
    check_count(window, "--window")
    pace = Pace.parse(save_every)
    before = _restored(state, alpha, seed, window)
    said = {name: value for name, value in asdict(data).items() if name not in ("input_format", "sample_weight")}
    said["y_pred"] = data.single()
    with _opened(file) as source:
        kind = {"csv": "csv", "tsv": "csv", "jsonl": "jsonl"}.get(data.input_format or "")
        batches = Batches(source, rows=window, strict=strict, kind=kind, **said)  # type: ignore[arg-type]
        heading = title or f"Calibration of {name_of(file)}"
        watch = _Watch(batches, _Lines(format), state, report, heading, before, pace)
        try:
            watch.run(Windows(window, seed=seed, n=before.n), stop)
        except (KeyboardInterrupt, Stopped):  # an endless stream ends in no other way
            watch.finish()
            raise
        except BaseException:  # a bad line, a full disk, a reader that left: what was seen so far is kept
            watch.save()
            raise
    watch.finish()
    return 0 if watch.state.alarm is None else 1


@dataclass
class Pace:
    """How often a state is written: after so many rows, or so many seconds.

    >>> Pace.parse("10000").rows, Pace.parse("30s").seconds, Pace.parse("5min").seconds
    (10000, 30.0, 300.0)
    """

    rows: int | None
    seconds: float | None
    n: int = 0
    moment: float = field(default_factory=monotonic)

    @classmethod
    def parse(cls, text: str) -> "Pace":
        """Read a number of rows, or a time with its unit."""
        found = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]+)?)\s*(s|min|h|)", text.strip())
        size = 0.0 if found is None else float(found[1])
        if found is None or size <= 0 or (not found[2] and size != int(size)):
            raise InputError(f"--save-every {text!r} cannot be read: write rows as 10000, or a time as 30s, 5min or 1h")
        if not found[2]:
            return cls(int(size), None)
        return cls(None, size * {"s": 1, "min": 60, "h": 3600}[found[2]])

    def is_due(self, n: int) -> bool:
        """Whether to write after n rows; the next time is counted from here."""
        late = self.seconds is not None and monotonic() - self.moment >= self.seconds
        if not late and (self.rows is None or n - self.n < self.rows):
            return False
        self.n, self.moment = n, monotonic()
        return True


@dataclass
class _Watch:
    """A stream that is watched, and the monitor as it stands."""

    batches: Batches
    out: "_Lines"
    place: Path | None
    report: Path | None
    title: str
    state: Monitor
    pace: "Pace"

    def run(self, windows: Windows, stop: bool) -> None:
        """All rows, or those up to the first alarm; windows and the alarm are told as they come."""
        for batch in self.batches:
            was_quiet = self.state.alarm is None
            self.state = self.state.update(batch.y_true, batch.y_pred)
            if self.place is not None and self.pace.is_due(self.state.n):
                self.save()
            windows, done = windows.update(batch.y_true, batch.y_pred)
            is_new = was_quiet and self.state.alarm is not None
            if is_new:
                self.out.alarm(self.state)
                self.write()
            for one in done:
                self.out.window(one, self.state)
            if is_new and stop:
                return
        for one in windows.finish():
            self.out.window(one, self.state)

    def page(self) -> MonitorReport:
        """The page of what came so far."""
        bad = self.batches.bad
        return monitor_report(self.state, title=self.title, bad_lines=bad.count, notes=[str(bad)] if bad.count else [])

    def write(self) -> None:
        """The page in its file."""
        if self.report is not None:
            self.page().save(self.report)

    def save(self) -> None:
        """The state in its file, once there is something to keep."""
        if self.place is not None and self.state.n:
            write_whole(self.place, self.state.to_json())

    def finish(self) -> None:
        """What is kept, shown and told after the last row; the state comes first, whatever becomes of the rest."""
        self.save()
        if not self.state.n:
            return
        self.write()
        self.summary()

    def summary(self) -> None:
        """What is told after the last row."""
        if self.batches.bad.count:
            display.complain(str(self.batches.bad))
        self.out.summary(self.state, self.batches.bad.count)
        if self.out.format == "markdown":
            console.emit(self.page().to_markdown(), end="")
        if self.out.format == "table" and self.report is not None:
            display.say(f"Page written to {self.report}")


def _restored(path: Path | None, alpha: float, seed: int, window: int) -> Monitor:
    """A fresh monitor, or the one that was kept, whose windows stay as they are."""
    fresh = Monitor(alpha, seed, window=window)
    if path is None or not path.exists():
        return fresh
    try:
        kept = Monitor.from_dict(read_json(path))
    except InputError as error:
        raise InputError(
            f"--state {str(path)!r} holds no state of a monitor: name another file, or remove it ({error})"
        ) from error
    if (kept.alpha, kept.seed) != (alpha, seed):
        raise InputError(
            f"--state {str(path)!r} was kept with --alpha {kept.alpha:g} --seed {kept.seed}: say the same, or name another file"
        )
    return kept


@contextmanager
def _opened(file: Path) -> Iterator[Path | IO[bytes]]:
    """A file by its path, or a pipe as it flows.

    Pipes come without their buffer: the thread that waits for more would hold its lock, on which the end of the program fails.
    """
    if file == DASH:
        if sys.stdin is None or sys.stdin.isatty():
            raise InputError("- reads from a pipe, and there is none: tail -f log.jsonl | calibrant monitor -")
        yield getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
    elif is_stream(file):
        with file.open("rb", buffering=0) as pipe:
            yield pipe
    else:
        yield file


class _Lines:
    """What is told, a line at a time: for people, or one JSON object a line for programs; a comment has no lines."""

    def __init__(self, format: str) -> None:
        self.format, self.has_headings = format, False

    def window(self, window: Window, state: Monitor) -> None:
        """A window that is complete."""
        if self.format == "json":
            self._object("window", {**window.to_dict(), "log_evalue": state.log_evalue})
        if self.format != "table":
            return
        if not self.has_headings:
            display.say(HEADINGS)
            self.has_headings = True
        rows = f"{window.first:,} to {window.last:,}"
        band = f"{percent(window.null_low)} to {percent(window.null_high)}"
        display.say(
            f"{rows:>23}  {percent(window.predicted):>8}  {percent(window.observed):>8}  {percent(window.error):>8}  "
            f"{band:>18}  {number(window.pvalue):>6}  {evalue(state.log_evalue):>8}"
        )

    def alarm(self, state: Monitor) -> None:
        """At once, not at the end of the window."""
        assert state.alarm is not None
        if self.format == "json":
            self._object("alarm", asdict(state.alarm))
        elif self.format == "table":
            display.say(f"ALARM at {state.alarm}")

    def summary(self, state: Monitor, bad: int) -> None:
        """After the last row."""
        if self.format == "json":
            facts = {"n": state.n, "pvalue": state.pvalue, "log_evalue": state.log_evalue, "bad_lines": bad}
            self._object("end", {**facts, "alarm": None if state.alarm is None else asdict(state.alarm)})
        if self.format != "table":
            return
        word = "no alarm" if state.alarm is None else f"alarm at {state.alarm}"
        display.say(f"{how_many(state.n, 'row')}, p = {number(state.pvalue)}: {word}")

    def _object(self, name: str, value: dict[str, Any]) -> None:
        console.emit(json.dumps({name: jsonable(value)}, ensure_ascii=False))
