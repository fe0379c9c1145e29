"""Progress with the time that is left, on the error stream of a terminal and nowhere else."""

import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from calibrant.cli.console import err, is_watched
from calibrant.reports.costs import cost


class Steps:
    """A bar for work of several steps: called before each step, and an engine that moves it on within one."""

    is_here = True
    """What has threads of its own need not be cut into tasks to be shown."""

    def __init__(self, bar: Progress, first: str) -> None:
        self.bar, self.task = bar, bar.add_task(first, total=None)
        self.done, self.room = 0.0, 0.0

    def __call__(self, step: str, done: float, total: float) -> None:
        """Tell of the step that begins."""
        self.done, self.room = done, cost(step) if total > done else 0.0
        self._move(done, description=step, total=total)

    def map(self, fn: Callable[..., Any], /, *tasks: Any) -> Iterator[Any]:
        """Apply ``fn`` to each task, here; as a step may do so more than once, the bar goes no further than it would take."""
        columns = [list(column) for column in tasks]
        for i, result in enumerate(map(fn, *columns)):
            self._move(self.done + 0.9 * self.room * (i + 1) / len(columns[0]))
            yield result

    def _move(self, completed: float, **more: Any) -> None:
        further = max(completed, self.bar.tasks[0].completed if not more else 0.0)
        self.bar.update(self.task, completed=further, moment=time.monotonic(), **more)


@contextmanager
def steps(first: str = "Reading") -> Iterator[Steps]:
    """Such a bar, each step as long as the work that is expected of it; nothing where nobody looks on."""
    with _bar() as bar:
        yield Steps(bar, first)


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


def _bar() -> Progress:
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn(), TimeLeft())
    return Progress(*columns, console=err, transient=True, disable=not is_watched(err))
