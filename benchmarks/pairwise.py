"""How fast kernel errors are: compiled, in tiles of NumPy and of torch, and by sorting.

Run ``python benchmarks/pairwise.py``. Everything is timed in one process, the best of several runs after a first one that
compiles, and reported as ratios: absolute times depend on the machine.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
from harness import best, classes, peak_memory

from calibrant import SKCE, Normal
from calibrant._compiled import choice
from calibrant.kernels import Exponential, Gaussian, Matern

ROWS = 10_000
OPERATIONS = {
    "distance: 10 differences, 10 squares added": 20,
    "inner product: 10 multiply-adds": 10,
    "square root, scaling": 2,
    "exponential: range reduction 4, polynomial 12, scaling 2": 18,
    "product with the kernel, sums by row and column, sum of squares": 4,
}
"""Vector instructions that one pair of rows needs at k = 10; a multiply-add is one."""


def in_tiles(work: Callable[[], Any]) -> Any:
    """Without the fast paths."""
    with patch.object(choice, "MAX_PLAIN_ROWS", 10**9):
        return work()


def normals(n: int) -> tuple[np.ndarray, Normal]:
    rng = np.random.default_rng(0)
    mu, s = rng.normal(size=n), rng.uniform(0.5, 2, n)
    return mu + s * rng.normal(size=n), Normal(mu, s)


def memory() -> None:
    estimator = SKCE(Exponential(0.5))
    estimator(*classes(10, 5_000))
    small = peak_memory()
    estimator(*classes(10, 50_000))
    print(f"(e) peak memory, k=10: {small:.0f} MB at n=5,000, and {peak_memory() - small:.0f} MB more at n=50,000")


def compare(name: str, estimator: SKCE, y: np.ndarray, predictions: Any, *, with_torch: bool) -> float:
    fast, value = best(partial(estimator, y, predictions), 5)
    rows = {"compiled": (fast, value), "NumPy tiles": best(lambda: in_tiles(partial(estimator, y, predictions)), 2)}
    if with_torch:
        try:
            import torch

            with torch.no_grad():
                tensors = torch.asarray(y), torch.asarray(predictions)
                rows["torch tiles"] = best(lambda: in_tiles(partial(estimator, *tensors)), 2)
        except ImportError:
            pass
    print(name)
    for label, (time, other) in rows.items():
        ratio, apart = time / fast, abs(float(other) - float(value))
        print(f"    {label:<14} {1e3 * time:9.1f} ms {ratio:7.1f} x   differs by {apart:.1e}")
    return fast


def sorting(n: int = 1_000_000) -> None:
    rng = np.random.default_rng(0)
    p = rng.random(n)
    y = (rng.random(n) < p).astype(np.int64)
    base, _ = best(lambda: np.argsort(p), 5)
    print(f"(d) two classes, n={n:,}, the whole estimate with its standard error: times np.argsort")
    print(f"    {'np.argsort':<14} {1e3 * base:9.1f} ms {1.0:7.1f} x")
    for kernel in (Exponential(0.3), Matern(1.5, 0.3), Matern(2.5, 0.3)):
        time, _ = best(partial(SKCE(kernel), y, p), 5)
        print(f"    {type(kernel).__name__:<14} {1e3 * time:9.1f} ms {time / base:7.1f} x")


def limit(fast: float) -> None:
    """The rate of multiply-adds that BLAS reaches here stands for what the machine can do."""
    a = np.random.default_rng(0).normal(size=(2000, 2000))
    time, _ = best(lambda: a @ a, 5)
    rate = 2000**3 / time
    needed = sum(OPERATIONS.values())
    pairs = ROWS * (ROWS - 1) / 2
    print(f"(f) {1e9 * fast / pairs:.2f} ns a pair at k=10; the limit is {1e9 * needed / rate:.2f} ns:")
    for name, count in OPERATIONS.items():
        print(f"    {count:>3}  {name}")
    print(
        f"    {needed:>3}  vector instructions a pair, at the {rate / 1e9:.1f} per ns that matrix products reach here"
    )


GRADIENTS = """
import resource, numpy as np, torch
from calibrant import SKCE
from calibrant.kernels import Exponential
rng, peaks = np.random.default_rng(0), []
for n in (1024, 8192):
    p = torch.tensor(rng.dirichlet(np.ones(10), n), requires_grad=True)
    SKCE(Exponential(0.5))(torch.tensor(rng.integers(0, 10, n)), p).value.backward()
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
print(round(peaks[1] - peaks[0]))
"""
"""Run apart: the peak of a process only grows, and the allocator reads its settings at the start."""


def gradients() -> None:
    try:
        import torch  # noqa: F401
    except ImportError:
        return
    for words, setting in (
        ("as it comes", {}),
        ("freed tiles given back at once", {"MALLOC_MMAP_THRESHOLD_": "65536"}),
    ):
        command = [sys.executable, "-c", GRADIENTS]
        more = subprocess.run(
            command, env=os.environ | setting, capture_output=True, text=True, check=True
        ).stdout.strip()
        print(f"(g) gradients, k=10: {more} MB more at n=8,192 than at n=1,024, allocator {words}")


def main() -> None:
    gradients()
    memory()
    settings = {"with_torch": True}
    fast = compare("(a) n=10,000, k=10, exponential", SKCE(Exponential(0.5)), *classes(10, ROWS), **settings)
    compare("    n=10,000, k=10, Gaussian", SKCE(Gaussian(0.5)), *classes(10, ROWS), **settings)
    compare("(b) n=10,000, k=100, exponential", SKCE(Exponential(0.5)), *classes(100, ROWS), **settings)
    normal = SKCE(Exponential(1.0), Gaussian(1.0))
    compare("(c) n=10,000, normal predictions", normal, *normals(ROWS), with_torch=False)
    sorting()
    limit(fast)


if __name__ == "__main__":
    main()
