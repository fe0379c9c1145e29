"""How fast binned errors are, beside NumPy's histogram and other packages that happen to be installed.

Run ``python benchmarks/binned.py [rows]``. Everything is timed in one process, the best of several runs, and reported
as a ratio to ``numpy.histogram`` on the same array: absolute times depend on the machine, ratios hardly.
"""

import sys
from collections.abc import Callable
from time import perf_counter

import numpy as np

from calibrant import ECE, EqualMass, EqualWidth, ExactTest


def best(work: Callable[[], object], repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return min(times)


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


def main(rows: int = 10_000_000) -> None:
    rng = np.random.default_rng(0)
    p = rng.random(rows)
    y = (rng.random(rows) < p).astype(np.int64)
    p32, y8 = p.astype(np.float32), y.astype(np.int8)
    small = slice(0, 10_000)
    work: dict[str, Callable[[], object]] = {
        "numpy.histogram, 15 bins over (0, 1)": lambda: np.histogram(p, 15, (0, 1)),
        "ECE(EqualWidth(15)), float64 and int64": lambda: ECE(EqualWidth(15))(y, p),
        "ECE(EqualWidth(15)), float32 and int8": lambda: ECE(EqualWidth(15))(y8, p32),
        "ECE(EqualMass(15))": lambda: ECE(EqualMass(15))(y, p),
        "numpy.sort": lambda: np.sort(p),
        **peers(y, p),
    }
    times = {name: best(task) for name, task in work.items()}
    base = next(iter(times.values()))
    print(f"{rows:,} rows")
    for name, time in times.items():
        print(f"  {name:<52} {1e3 * time:9.1f} ms   {time / base:7.2f} x histogram")
    one = best(lambda: ECE(EqualMass(15))(y[small], p[small]), 200)
    redraws = best(lambda: ExactTest(ECE(EqualMass(15)), 999)(y[small], p[small]))
    print("10,000 rows")
    print(f"  {'ECE(EqualMass(15))':<52} {1e3 * one:9.3f} ms")
    print(f"  {'exact test and null band, 999 redraws':<52} {1e3 * redraws:9.1f} ms   {redraws / one:7.0f} x one ECE")


if __name__ == "__main__":
    main(*(int(float(a)) for a in sys.argv[1:2]))
