"""How fast binned errors are, beside NumPy's histogram and other packages that happen to be installed.

Run ``python benchmarks/binned.py [rows]``. Everything is timed in one process, the best of several runs, and reported
as a ratio to ``numpy.histogram`` or ``numpy.argsort`` on the same array: absolute times depend on the machine, ratios
hardly.
"""

import sys
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from harness import best, peak_memory

from calibrant import ECE, DebiasedECE, EqualMass, EqualWidth, ExactTest, SmoothECE, Sweep
from calibrant.estimators import BinnedState, KolmogorovSmirnov, Kuiper
from calibrant.results import brief


def peers(y: np.ndarray, p: np.ndarray) -> dict[str, Callable[[], object]]:
    found: dict[str, Callable[[], object]] = {}
    try:
        from sklearn.calibration import calibration_curve

        found["scikit-learn calibration_curve, 15 uniform bins"] = lambda: calibration_curve(y, p, n_bins=15)
    except ImportError:
        pass
    try:
        import torch
        from torchmetrics.functional.classification import binary_calibration_error

        tensors = torch.from_numpy(p), torch.from_numpy(y)
        found["torchmetrics binary_calibration_error, 15 bins"] = lambda: binary_calibration_error(*tensors, n_bins=15)
    except ImportError:
        pass
    return found


def per_bin_loop(y: np.ndarray, p: np.ndarray, n_bins: int) -> float:
    """What is usually written: a mask over all rows for every bin."""
    edges, total = np.linspace(0, 1, n_bins + 1), 0.0
    for low, high in pairwise(edges):
        rows = (p > low) & (p <= high)
        if rows.any():
            total += rows.mean() * abs(p[rows].mean() - y[rows].mean())
    return total


def sweep_loop(y: np.ndarray, p: np.ndarray) -> int:
    """The sweep as usually written: rows are sorted and binned anew for every number of bins."""
    for n_bins in range(2, len(p)):
        parts = np.array_split(y[np.argsort(p)], n_bins)
        if np.any(np.diff([part.mean() for part in parts]) < 0):
            return n_bins - 1
    return len(p)


def table(title: str, work: dict[str, Callable[[], object]], unit: str, repeats: int = 5) -> None:
    """Times, and ratios to the first of them."""
    times = {name: best(task, repeats)[0] for name, task in work.items()}
    base = next(iter(times.values()))
    print(title)
    for name, time in times.items():
        print(f"  {name:<52} {1e3 * time:9.1f} ms   {time / base:7.2f} x {unit}")


def streamed(chunks: int = 100, rows: int = 1_000_000) -> None:
    """Memory of a state that sees a hundred million rows, a chunk at a time."""
    rng, state = np.random.default_rng(0), BinnedState(ECE())
    peaks = []
    for i in range(chunks):
        p = rng.random(rows)
        state = state.update((rng.random(rows) < p).astype(np.int8), p)
        if i in (1, chunks - 1):
            peaks.append(peak_memory())
    print(f"{state.n:,} rows in {chunks} chunks: ECE = {state.finalize().value:.2e}")
    print(f"  peak memory after 2 chunks {peaks[0]:.0f} MB, after {chunks} {peaks[1]:.0f} MB")


def main(rows: int = 10_000_000) -> None:
    streamed()
    rng = np.random.default_rng(0)
    p = rng.random(rows)
    y = (rng.random(rows) < p).astype(np.int64)
    p32, y8 = p.astype(np.float32), y.astype(np.int8)
    width: dict[str, Callable[[], object]] = {
        "numpy.histogram, 15 bins over (0, 1)": lambda: np.histogram(p, 15, (0, 1)),
        "ECE(EqualWidth(15)), float64 and int64": lambda: ECE(EqualWidth(15))(y, p),
        "ECE(EqualWidth(15)), float32 and int8": lambda: ECE(EqualWidth(15))(y8, p32),
        "a loop over 15 bins": lambda: per_bin_loop(y, p, 15),
        **peers(y, p),
    }
    table(f"{rows:,} rows", width, "histogram")
    f, z = p[:1_000_000], y[:1_000_000]
    ordered: dict[str, Callable[[], object]] = {
        "numpy.argsort": lambda: np.argsort(f),
        "ECE(EqualMass(15))": lambda: ECE(EqualMass(15))(z, f),
        "ECE(Sweep())": lambda: ECE(Sweep())(z, f),
        "ECE(Sweep('width'))": lambda: ECE(Sweep("width"))(z, f),
        "DebiasedECE(EqualMass(15))": lambda: DebiasedECE()(z, f),
        "DebiasedECE(EqualMass(15), norm=1)": lambda: DebiasedECE(norm=1)(z, f),
        "KolmogorovSmirnov()": lambda: KolmogorovSmirnov()(z, f),
        "Kuiper()": lambda: Kuiper()(z, f),
        "SmoothECE()": lambda: SmoothECE()(z, f),
        "a sweep that sorts and bins anew": lambda: sweep_loop(z, f),
    }
    table(f"{len(f):,} rows", ordered, "argsort")
    f, z = p[:10_000], y[:10_000]
    one, _ = best(lambda: ECE(EqualMass(15))(z, f), 200)
    print(f"10,000 rows; ECE(EqualMass(15)) takes {1e3 * one:.3f} ms")
    for estimator in (ECE(EqualMass(15)), ECE(Sweep()), DebiasedECE(), KolmogorovSmirnov(), SmoothECE()):
        resamples, _ = best(lambda estimator=estimator: ExactTest(estimator, 999)(z, f), 3)
        name = f"exact test and null band of {brief(estimator)}, 999 resamples"
        print(f"  {name:<72} {1e3 * resamples:9.1f} ms   {resamples / one:7.0f} x one ECE")


if __name__ == "__main__":
    main(*(int(float(a)) for a in sys.argv[1:2]))
