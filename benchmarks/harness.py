"""What benchmarks share: the best of several runs, the peak of memory, and data to run on."""

import resource
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from calibrant import Categorical


def best(
    work: Callable[[], Any], repeats: int, *, warm: bool = True, clock: Callable[[], float] = perf_counter
) -> tuple[float, Any]:
    """Seconds of the fastest run, after one that warms up (and compiles), and what the last one gave."""
    value = work() if warm else None
    times = []
    for _ in range(repeats):
        start = clock()
        value = work()
        times.append(clock() - start)
    return min(times), value


SHORT = 0.3
"""Seconds for which short work is repeated: its fastest run is then one that nothing else disturbed."""


def in_turns(
    works: Sequence[Callable[[], Any]], repeats: int, clock: Callable[[], float] = perf_counter
) -> list[tuple[float, Any]]:
    """Seconds of the fastest run of each, and what it gave; they take turns, so that other work on the machine hits all alike.

    As many turns as asked for, and short work as many as :data:`SHORT` seconds allow.
    """
    values, least = [work() for work in works], [float("inf")] * len(works)
    turn, spent = 0, 0.0
    while turn < repeats or spent < SHORT:
        for i, work in enumerate(works):
            start = clock()
            work()
            seconds = clock() - start
            least[i], spent = min(least[i], seconds), spent + seconds
        turn += 1
    return list(zip(least, values, strict=True))


def peak_memory() -> float:
    """Megabytes that this process held at most; not its parent, whose peak Linux hands down to ``ru_maxrss``."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) / 1024 for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def classes(k: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels of n calibrated predictions of k classes, and the predictions; of two classes, one column."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(k), n) if k > 2 else rng.random(n)
    return Categorical(p).sample(rng, 1)[0].astype(np.int64), p
