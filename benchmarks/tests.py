"""What tests cost, in single estimates.

Run ``python benchmarks/tests.py``. Everything is timed in one process and reported as ratios: absolute times depend on the
machine.
"""

from functools import partial

import numpy as np
from harness import best, classes, peak_memory

from calibrant import SKCE, AggregatedTest, ExactTest, Normal
from calibrant.kernels import Exponential


def two_classes(n: int = 1_000_000, resamples: int = 199) -> None:
    y, p = classes(2, n)
    kernel = Exponential(0.3)
    x, r = np.sort(2**0.5 * p), np.ones((n, 1))
    kernel.product(x, r, diagonal=False)  # compile
    one, _ = best(lambda: kernel.product(x, r, diagonal=False), 5)
    test, result = best(partial(ExactTest(SKCE(kernel), resamples), y, p), 1, warm=False)
    print(
        f"two classes, n={n:,}, {resamples} resamples: {test:.1f} s, {test / one:.0f} sorted passes of {1e3 * one:.1f} ms"
    )
    print(f"    p = {result.pvalue:g}; {result.notes or 'all pairs'}")


def ten_classes(n: int = 2_000, resamples: int = 999) -> None:
    y, p = classes(10, n)
    one, _ = best(partial(SKCE(Exponential(0.3)), y, p), 5, warm=False)
    test, result = best(partial(ExactTest(SKCE(Exponential(0.3)), resamples), y, p), 2, warm=False)
    print(
        f"ten classes, n={n:,}, {resamples} resamples: {test:.1f} s, {test / one:.0f} single estimates of {1e3 * one:.0f} ms"
    )
    print(f"    p = {result.pvalue:g}; {result.notes or 'all pairs'}")


def many_rows(n: int = 100_000) -> None:
    y, p = classes(10, n)
    before = peak_memory()
    for test in (ExactTest(SKCE()), AggregatedTest()):
        time, result = best(partial(test, y, p), 1, warm=False)
        peak = peak_memory()
        print(f"ten classes, n={n:,}, {type(test).__name__}: {time:.0f} s, p = {result.pvalue:g}, peak {peak:.0f} MB")
        for note in result.notes:
            print(f"    {note}")
    print(f"    (peak before: {before:.0f} MB)")


def normals(n: int = 1_000, resamples: int = 999) -> None:
    rng = np.random.default_rng(0)
    predictions = Normal(rng.normal(size=n), rng.uniform(0.5, 2, n))
    y = predictions.sample(rng, 1)[0]
    one, _ = best(partial(SKCE(), y, predictions), 5, warm=False)
    test, result = best(partial(ExactTest(SKCE(), resamples), y, predictions), 2, warm=False)
    print(
        f"normal predictions, n={n:,}, {resamples} resamples: {test:.1f} s, {test / one:.0f} estimates; p = {result.pvalue:g}"
    )


if __name__ == "__main__":
    two_classes()
    ten_classes()
    normals()
    many_rows()
