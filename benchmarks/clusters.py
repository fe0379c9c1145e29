"""What a Dask cluster costs and gives: digits, bytes per task, speed of two workers, workers that die, files beyond memory.

Run ``python benchmarks/clusters.py [rows]``. Clusters are processes of one thread on this machine that talk over TCP, so that two
workers need two cores that nobody else uses: the load of the machine is printed beside the speed.
"""

import os
import pickle
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from distributed import LocalCluster
from harness import best, classes

from calibrant import ECE, SKCE, Brier, TopLabel
from calibrant.engines import DaskEngine, connect, stream

LIMIT, WIDTH = 400, 10
"""Megabytes that a worker may hold, and classes in the file."""


def cluster(workers: int, **options: Any) -> LocalCluster:
    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        protocol="tcp",
        dashboard_address=":0",
        silence_logs=50,
        **options,
    )


class Weighed(DaskEngine):
    """Counts the bytes of each task and of each shared value."""

    sizes: ClassVar[list[int]] = []
    shared: ClassVar[list[int]] = []

    def share(self, value: Any) -> Any:
        self.shared.append(len(pickle.dumps(value)))
        return super().share(value)

    def _submit(self, job: Any, again: bool) -> Any:
        self.sizes.append(len(pickle.dumps([getattr(getattr(part, "reference", part), "key", part) for part in job])))
        return super()._submit(job, again)


def digits(n: int) -> None:
    y, p = classes(WIDTH, n)
    alone = SKCE()(y, p)
    with cluster(4) as four, connect(four.get_client()) as engine:
        engine = Weighed(engine.client)
        there = SKCE()(y, p, engine=engine)
    print(f"{n:,} rows of {WIDTH} classes, 4 workers: SKCE {there.value:.15e}, of this process {alone.value:.15e}")
    print(
        f"  difference {abs(there.value - alone.value):.1e}, "
        f"of the standard errors {abs(there.standard_error - alone.standard_error):.1e}"
    )
    slices = 2 * max(engine.shared)
    print(
        f"  {len(engine.sizes)} tasks of {np.mean(engine.sizes):,.0f} bytes (most {max(engine.sizes):,}); "
        f"two slices would be {slices:,}"
    )
    print(f"  {len(engine.shared)} panels, {sum(engine.shared) / 1e6:.1f} MB in all, sent once")


def speed(n: int) -> None:
    """Seconds by the clock, and of the processor of the busiest worker, which others on the machine do not lengthen."""
    y, p = classes(WIDTH, n)
    clock, busy, here = {}, {}, {}
    for workers in (1, 2):
        with cluster(workers) as some, connect(some.get_client()) as engine:
            SKCE()(y, p, engine=engine)  # which compiles
            before, mine = engine.client.run(time.process_time), time.process_time()
            clock[workers], _ = best(lambda engine=engine: SKCE()(y, p, engine=engine), 3, warm=False)
            here[workers] = (time.process_time() - mine) / 3
            after = engine.client.run(time.process_time)
            busy[workers] = max(after[name] - before[name] for name in after) / 3
    load = os.getloadavg()[0]
    print(
        f"{n:,} rows: 1 worker {clock[1]:.2f} s, 2 workers {clock[2]:.2f} s: "
        f"efficiency {clock[1] / clock[2] / 2:.0%} by the clock (load {load:.1f})"
    )
    print(
        f"  processor of the busiest worker {busy[1]:.2f} s, {busy[2]:.2f} s: efficiency {busy[1] / busy[2] / 2:.0%}; "
        f"of client and scheduler {here[1]:.2f} s, {here[2]:.2f} s"
    )


def killed(n: int, after: float = 0.5) -> None:
    y, p = classes(WIDTH, n)
    alone = SKCE()(y, p)
    with cluster(4) as four, connect(four.get_client()) as engine:
        SKCE()(y[:3000], p[:3000], engine=engine)  # which compiles
        before = list(engine.client.run(os.getpid).values())
        moments: list[float] = []

        def kill() -> None:
            for pid in before[:2]:
                os.kill(pid, signal.SIGKILL)
            moments.append(time.perf_counter() - start)

        start = time.perf_counter()
        timer = threading.Timer(after, kill)
        timer.start()
        there = SKCE()(y, p, engine=engine)
        seconds = time.perf_counter() - start
        timer.join()
    print(
        f"{n:,} rows, 2 of 4 workers killed after {moments[0]:.1f} of {seconds:.1f} s: "
        f"difference {abs(there.value - alone.value):.1e}"
    )


def write(path: Path, megabytes: int) -> int:
    """So many megabytes of double precision, as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    n, chunk = megabytes * 1_000_000 // (8 * (WIDTH + 1)), 100_000
    writer = None
    for start in range(0, n, chunk):
        y, p = classes(WIDTH, min(chunk, n - start))
        table = pa.table({"y": y, **{f"p_{k}": p[:, k] + 0.0 for k in range(WIDTH)}})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()
    return n


def beyond_memory() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "predictions.parquet"
        n = write(path, 2 * LIMIT)
        measures = ECE(lens=TopLabel()), Brier()
        start = time.perf_counter()
        with cluster(2, memory_limit=f"{LIMIT}MB") as two, connect(two.get_client()) as engine:
            found = stream(path, *measures, engine=engine)
            memory = engine.client.run(peak)
        seconds = time.perf_counter() - start
        alone = stream(path, *measures)
    same = [a.value == b.value for a, b in zip(found, alone, strict=True)]
    print(f"{n:,} rows, {2 * LIMIT} MB as numbers, 2 workers of {LIMIT} MB: {seconds:.1f} s, same digits: {same}")
    print(f"  peaks of the workers: {', '.join(f'{m:.0f} MB' for m in memory.values())}")


def peak() -> float:
    from pathlib import Path

    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def main(n: int) -> None:
    digits(n)
    speed(n)
    killed(n)
    beyond_memory()


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 40_000)
