"""How fast files of any length are read into a state, beside ``wc -l``, and how much memory that takes.

Run ``python benchmarks/streams.py [rows]``. A CSV of so many binary predictions is written to a temporary folder (about
11 bytes per row), and each number of rows is read in a process of its own, as peaks of memory do not go down again. The
rate of ``wc -l``, which does nothing but count the lines of the same file, is the limit of the disk and a measure of the machine.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
from harness import peak_memory

from calibrant import ECE, Brier, state
from calibrant.estimators import CalibrationRatio
from calibrant.io import Batches

CHUNK = 1_000_000
SETTINGS = {"ECE()": (ECE(),), "ECE(), Brier(), CalibrationRatio()": (ECE(), Brier(), CalibrationRatio())}


def write(path: Path, n: int) -> None:
    """Calibrated predictions of six digits, a million at a time."""
    import polars as pl

    with path.open("wb") as out:
        for i in range(0, n, CHUNK):
            rng = np.random.default_rng(i)
            p = rng.random(min(CHUNK, n - i)).round(6)
            y = (rng.random(len(p)) < p).astype(np.int8)
            pl.DataFrame({"y": y, "p": p}).write_csv(out, include_header=i == 0, float_precision=6)


def read(path: Path, name: str) -> None:
    """One pass over the file; prints seconds, rows, megabytes of memory, and the estimates."""
    start, total = perf_counter(), state(*SETTINGS[name])
    for batch in Batches(path, y_true="y", y_pred="p"):
        total = total.update(batch.y_true, batch.y_pred)
    found = total.finalize()
    values = [float(estimate) for estimate in (found if isinstance(found, tuple) else (found,))]
    print(json.dumps([perf_counter() - start, total.n, peak_memory(), values]))


def counted(path: Path) -> float:
    """Seconds that ``wc -l`` takes, the better of two."""
    times = []
    for _ in range(2):
        start = perf_counter()
        subprocess.run(["wc", "-l", str(path)], check=True, capture_output=True)
        times.append(perf_counter() - start)
    return min(times)


def measure(path: Path, n: int) -> None:
    write(path, n)
    size, wc = path.stat().st_size / 1e6, counted(path)
    print(f"\n{n:,} rows, {size:,.0f} MB; wc -l: {wc:.2f} s, {size / wc:,.0f} MB/s")
    for name in SETTINGS:
        command = [sys.executable, __file__, "--read", str(path), name]
        seconds, rows, memory, values = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        assert rows == n
        print(
            f"  {name:40} {seconds:6.1f} s  {n / seconds / 1e6:5.1f} million rows/s  {size / seconds:5.0f} MB/s  "
            f"{seconds / wc:5.1f} x wc -l  peak {memory:,.0f} MB  {values}"
        )


def main(n: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        while shutil.disk_usage(folder).free < 30 * n:
            n //= 5
            print(f"the disk is short: {n:,} rows instead")
        for count in (n // 100, n // 10, n):
            measure(Path(folder) / "predictions.csv", count)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        read(Path(sys.argv[2]), sys.argv[3])
    else:
        main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 100_000_000)
