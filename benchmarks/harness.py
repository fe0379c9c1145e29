"""What benchmarks share: the best of several runs, the peak of memory, and data to run on."""

import resource
from collections.abc import Callable
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


def peak_memory() -> float:
    """Megabytes that this process held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def classes(k: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels of n calibrated predictions of k classes, and the predictions; of two classes, one column."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(k), n) if k > 2 else rng.random(n)
    return Categorical(p).sample(rng, 1)[0].astype(np.int64), p
