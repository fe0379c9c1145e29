"""The command that watches a stream of predictions, row by row."""

import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO, Annotated, Any

from cyclopts import Parameter

from calibrant._validate import InputError
from calibrant.batches import Batches
from calibrant.cli import display
from calibrant.cli.app import OUTPUT, Fields, File, Output, Seed, check_writable, command
from calibrant.cli.streams import DASH, is_stream
from calibrant.monitoring.monitor import Monitor
from calibrant.monitoring.windows import Window, Windows
from calibrant.results import how_many, jsonable, number, percent

HEADINGS = (
    f"{'rows':>23}  {'claimed':>8}  {'happened':>8}  {'error':>8}  {'if calibrated':>18}  {'p':>6}  {'e-value':>8}"
)


@command("monitor")
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
    seed: Seed = 0,
    format: Output = "table",
) -> int:
    """Watch predictions as they come, and raise an alarm when they cannot be believed any more.

    Rows are read in their order from a file or a pipe (JSON lines, CSV). The alarm keeps its level at every look: a calibrated
    model raises one with probability at most --alpha, however long it is watched. Leaves with code 1 after an alarm.

    Parameters
    ----------
    alpha
        how likely a false alarm may be, over the whole stream
    window
        rows of a line of the table; each shows its own error and p-value
    strict
        a line that cannot be used is an error; without it, such lines are counted and left out
    stop
        leave at the alarm, and do not read on
    state
        a file to go on from, where it exists, and to keep the state in
    """
    if data.sample_weight is not None:
        raise InputError("--sample-weight: the monitor takes every row once; leave it out")
    before = _restored(state, alpha, seed)
    out = _Lines(format == "json")
    said = {name: value for name, value in asdict(data).items() if name not in ("input_format", "sample_weight")}
    with _opened(file) as source:
        kind = None if data.input_format == "parquet" else data.input_format
        batches = Batches(source, rows=window, strict=strict, kind=kind, **said)  # type: ignore[arg-type]
        after = _watch(batches, before, Windows(window, seed=seed, n=before.n), out, stop)
    if batches.bad.count:
        display.complain(str(batches.bad))
    out.summary(after, batches.bad.count)
    if state is not None:
        state.write_text(after.to_json(), encoding="utf-8")
    return 0 if after.alarm is None else 1


def _watch(batches: Batches, state: Monitor, windows: Windows, out: "_Lines", stop: bool) -> Monitor:
    """The monitor after all rows, or at the first alarm; windows and the alarm are told as they come."""
    for batch in batches:
        was_quiet = state.alarm is None
        state = state.update(batch.y_true, batch.y_pred)
        windows, done = windows.update(batch.y_true, batch.y_pred)
        is_new = was_quiet and state.alarm is not None
        if is_new:
            out.alarm(state)
        for one in done:
            out.window(one, state)
        if is_new and stop:
            return state
    for one in windows.finish():
        out.window(one, state)
    return state


def _restored(path: Path | None, alpha: float, seed: int) -> Monitor:
    """A fresh monitor, or the one that was kept."""
    if path is None:
        return Monitor(alpha, seed)
    check_writable(path, "--state")
    if not path.exists():
        return Monitor(alpha, seed)
    try:
        kept = Monitor.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"--state {str(path)!r} holds no state of a monitor: name another file, or remove it"
        ) from error
    if (kept.alpha, kept.seed) != (alpha, seed):
        raise InputError(
            f"--state {str(path)!r} was kept with --alpha {kept.alpha:g} --seed {kept.seed}: say the same, or name another file"
        )
    return kept


@contextmanager
def _opened(file: Path) -> Iterator[Path | IO[bytes]]:
    """A file by its path, or a pipe as it flows."""
    if file == DASH:
        if sys.stdin is None or sys.stdin.isatty():
            raise InputError("- reads from a pipe, and there is none: tail -f log.jsonl | calibrant monitor -")
        yield sys.stdin.buffer
    elif is_stream(file):
        with file.open("rb") as pipe:
            yield pipe
    else:
        yield file


class _Lines:
    """What is told, a line at a time: for people, or one JSON object a line for programs."""

    def __init__(self, is_json: bool) -> None:
        self.is_json, self.has_headings = is_json, False

    def window(self, window: Window, state: Monitor) -> None:
        """A window that is complete."""
        if self.is_json:
            self._object("window", {**window.to_dict(), "log_evalue": state.log_evalue})
            return
        if not self.has_headings:
            display.say(HEADINGS)
            self.has_headings = True
        rows = f"{window.first:,} to {window.last:,}"
        band = f"{percent(window.null_low)} to {percent(window.null_high)}"
        display.say(
            f"{rows:>23}  {percent(window.claimed):>8}  {percent(window.happened):>8}  {percent(window.error):>8}  "
            f"{band:>18}  {number(window.pvalue):>6}  {_evalue(state):>8}"
        )

    def alarm(self, state: Monitor) -> None:
        """At once, not at the end of the window."""
        assert state.alarm is not None
        if self.is_json:
            self._object("alarm", asdict(state.alarm))
        else:
            display.say(f"ALARM at {state.alarm}")

    def summary(self, state: Monitor, bad: int) -> None:
        """After the last row."""
        if self.is_json:
            facts = {"n": state.n, "pvalue": state.pvalue, "log_evalue": state.log_evalue, "bad_lines": bad}
            self._object("end", {**facts, "alarm": None if state.alarm is None else asdict(state.alarm)})
            return
        word = "no alarm" if state.alarm is None else f"alarm at {state.alarm}"
        display.say(f"{how_many(state.n, 'row')}, p = {number(state.pvalue)}: {word}")

    def _object(self, name: str, value: dict[str, Any]) -> None:
        print(json.dumps({name: jsonable(value)}, ensure_ascii=False), flush=True)


def _evalue(state: Monitor) -> str:
    """With three digits, also where it is out of all bounds."""
    power = state.log_evalue / math.log(10)
    if math.isinf(power):
        return "infinite"
    return f"1e{power:.0f}" if abs(power) > 5 else f"{10**power:.3g}"
