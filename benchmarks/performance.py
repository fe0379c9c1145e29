"""The page ``docs/performance.md``: what work costs, beside other libraries and beside what the machine can do.

``OMP_NUM_THREADS=1 python benchmarks/performance.py`` measures the processor and writes the page and its picture; some of its
peers are skipped where they are not installed. The part of the GPU is read from what ``python benchmarks/gpu.py`` left in
``benchmarks/results`` on a machine that has one.
"""

import json
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from harness import best, classes, in_turns
from pairwise import in_tiles
from peers import REASONS, Measured, binary, comparisons, forecasts, on_edges
from peers import classes as peer_classes

from calibrant import CRPS, ECE, KDE, SKCE, ClassWise, ExactTest, LogLoss, Normal, Sweep, evaluate
from calibrant._compiled.compiling import aligned, borrowing
from calibrant._compiled.cpu import BLOCK, STRIP, _products
from calibrant.distributions import Ensemble, Quantiles
from calibrant.distributions.reading.conversion import as_problem
from calibrant.kernels import Exponential
from calibrant.recalibration import Temperature
from calibrant.streams import StreamMetric

ROOT = Path(__file__).parent.parent
PAGE, PICTURE = ROOT / "docs" / "performance.md", ROOT / "docs" / "images" / "performance.png"
RECORDS = Path(__file__).parent / "results"

BYTES = {
    "ECE of the confidence, 15 bins, 10 classes": 48,
    "CRPS, normal": 24,
    "CRPS, 50 members": 408,
    "CRPS, 50 members, fair": 408,
    "mean error of 98 quantiles": 24,
}
"""What a row has to be read for, of jobs that read it once; scores of two classes with their targets are 16."""

PAIRS = {"MMCE": 0.0, "squared kernel error": 0.0, "its test: p-value": 0.0}
"""Jobs whose work is not reading."""


def _normals(y: np.ndarray, mean: np.ndarray, spread: np.ndarray, _: np.ndarray) -> tuple[Any, ...]:
    return as_problem(y, Normal(mean, spread))


def _members(y: np.ndarray, _: np.ndarray, __: np.ndarray, members: np.ndarray) -> tuple[Any, ...]:
    return as_problem(y, Ensemble(members))


CHECKS: dict[str, tuple[Callable[[int], tuple[Any, ...]], Callable[..., tuple[Any, ...]]]] = {
    "ECE of the confidence, 15 bins, 10 classes": (peer_classes, as_problem),
    "ECE, 10 bins, scores on edges": (on_edges, as_problem),
    "ECE, 15 bins": (binary, as_problem),
    "CRPS, normal": (forecasts, _normals),
    "CRPS, 50 members": (forecasts, _members),
    "mean error of 98 quantiles": (forecasts, _normals),
}
"""The input of a job, and what looks at it."""


def check_time(what: str, n: int) -> str:
    """What it takes to look at the input of a job, in words."""
    if what not in CHECKS:
        return ""
    data, check = CHECKS[what]
    given = data(n)
    ((seconds, _),) = in_turns([lambda: check(*given)], 5, process_time)
    return f"; the checks of the input alone take {_time(seconds)}"


@borrowing
def _multiplied(rows: np.ndarray, out: np.ndarray, times: int) -> None:
    """Inner products of a strip and a block of the same few rows, so many times."""
    for _ in range(times):
        _products(rows, rows, out)


@dataclass(frozen=True)
class Machine:
    """What one thread reads and multiplies in a second."""

    bandwidth: float
    flops: float

    @classmethod
    def measured(cls) -> "Machine":
        """From a copy of a large array, and the faster of a product of matrices by BLAS and multiply-adds in the cache.

        BLAS may know the processor worse than the compiler does.
        """
        source = np.ones(1 << 25)
        target = np.empty_like(source)
        copied, _ = best(lambda: np.copyto(target, source), 5, clock=process_time)
        a = np.random.default_rng(0).normal(size=(1200, 1200))
        multiplied, _ = best(lambda: a @ a, 5, clock=process_time)
        features, times = 100, 1000
        rows, out = aligned(features * BLOCK), aligned(STRIP * BLOCK)
        looped, _ = best(lambda: _multiplied(rows, out, times), 5, clock=process_time)
        looped /= times * features * STRIP * BLOCK
        return cls(2 * source.nbytes / copied, 2 / min(multiplied / 1200**3, looped))

    def least(self, size: float, operations: float = 0.0) -> float:
        """Seconds that reading so many bytes, or so many operations, take at least."""
        return max(size / self.bandwidth, operations / self.flops)


@dataclass(frozen=True)
class Job:
    """Work of our own; a peer is a plain formulation of the same, and the limit that of bytes read or operations."""

    what: str
    rows: int
    ours: Callable[[], Any]
    peer: Callable[[], Any] | None = None
    peer_name: str = ""
    size: float = 0.0
    operations: float = 0.0
    repeats: int = 2
    goal: float | None = None

    def rows_of(self, machine: Machine) -> tuple[str, str | None]:
        """A row of the table, and what to say where the goal, in seconds or in times of the peer, is not reached."""
        works = [self.ours] if self.peer is None else [self.ours, self.peer]
        times = [time for time, _ in in_turns(works, self.repeats, process_time)]
        ratio = times[1] / times[0] if self.peer is not None else None
        least = machine.least(self.size, self.operations)
        row = _row(self.what, self.rows, times[0], self.peer_name, ratio, least or None)
        if self.goal is None or (times[0] <= self.goal if ratio is None else ratio >= self.goal):
            return row, None
        missed = f"{_time(times[0])} where {_time(self.goal)} was the goal"
        if ratio is not None:
            missed = (
                f"{_times(ratio)} times as fast as {self.peer_name} where {self.goal:g} was the goal; the products "
            )
            missed += f"alone, at the limit of one thread, would be {_times(times[1] / least)} times as fast"
        return row, f"* **{self.what}**: {missed}{WHY.get(self.what, '')}."


WHY = {
    "SKCE, 100 classes": ". Both products are of half the pairs, as the matrix is symmetric. What is above them are rows that come "
    "from the second cache, a root and an exponential a pair, and sums. On two threads by the clock, beside tiles with all threads "
    "of BLAS: `python benchmarks/pairwise.py`, part b",
    "report, 1,000 classes": ". Half of it tries recalibrators on held-out rows, a quarter resamples targets for the verdict, "
    "and the rest makes tables of classes",
}
"""Where the time goes, by a profile."""


def jobs() -> Iterator[Job]:
    """Kernel errors, tests, reports, maps and streams."""
    rng = np.random.default_rng(0)
    for k in (2, 10, 100):
        y, p = classes(k, 10_000)
        work = partial(SKCE(Exponential(0.5)), y, p)
        tiles = None if k == 2 else partial(in_tiles, work)
        flops = 0.0 if k == 2 else 2.0 * 10_000**2 * k
        yield Job(
            f"SKCE, {k} classes",
            10_000,
            work,
            tiles,
            "" if k == 2 else "NumPy tiles",
            160_000.0,
            flops,
            goal=4.0 if k > 2 else None,
        )
    y, p = classes(10, 10_000)
    yield Job("KDE error, 10 classes", 10_000, lambda: KDE(bandwidth=0.1)(y, p), operations=2.0 * 10_000**2 * 10)
    y2, p2 = binary(10_000)
    yield Job("exact test of the ECE, 999 resamples", 10_000, lambda: ExactTest(ECE())(y2, p2))
    yield Job("metric in a loop, a batch", 1_000, partial(_updated, y2[:1_000], p2[:1_000]), size=16_000.0, repeats=5)
    wide = classes(1_000, 3_000)
    yield Job(
        "ECE of the sweep, each of 1,000 classes", 3_000, lambda: ECE(Sweep(), lens=ClassWise())(*wide), size=2.4e7
    )
    y3, p3 = classes(100, 20_000)
    yield Job("temperature, 100 classes", 20_000, lambda: Temperature().fit(y3, p3), size=1.6e7)
    mean, spread = rng.normal(size=800), rng.uniform(0.5, 2, 800)
    outcome = rng.normal(mean, spread)
    yield Job("report on normal forecasts", 800, lambda: evaluate(outcome, Normal(mean, spread)), goal=1.0)
    levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    fan = Quantiles(mean[:400, None] + np.array([-1.64, -0.67, 0, 0.67, 1.64]), levels)
    yield Job("report on five quantiles", 400, lambda: evaluate(outcome[:400], fan), goal=1.0)
    for name, scores in (("far apart", [0.3, 0.6]), ("close together", [0.3, 0.31])):
        tied = np.tile(scores, 20)
        events = (np.random.default_rng(1).random(40) < tied) * 1
        yield Job(f"report on two scores, {name}", 40, partial(evaluate, events, tied))
    yield Job("report, two classes", 10_000, lambda: evaluate(y2, p2))
    yield Job("report, 10 classes", 10_000, lambda: evaluate(y, p), repeats=1)
    few = classes(1_000, 1_000)
    yield Job("report, 1,000 classes", 1_000, lambda: evaluate(*few), size=8e6, repeats=1, goal=5.0)


def _updated(y: np.ndarray, p: np.ndarray) -> None:
    metric = StreamMetric(ECE())
    metric.update(p, y)  # as torchmetrics does


def _row(what: str, rows: int, seconds: float, peer: str, ratio: float | None, least: float | None) -> str:
    beside = "–" if ratio is None else _times(ratio)
    limits = ("–", "–") if least is None else (_time(least), _times(seconds / least))
    return f"| {what} | {rows:,} | {_time(seconds)} | {peer or '–'} | {beside} | {limits[0]} | {limits[1]} |"


def _time(seconds: float) -> str:
    """Two digits, in the unit that suits."""
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds / 1e-9:.3g} ns"


def _times(ratio: float) -> str:
    """Two digits."""
    return f"{ratio:.2g}" if ratio < 99.5 else f"{round(ratio, 1 - int(np.log10(ratio))):,.0f}"


HEADER = """| job | rows | ours | best peer | theirs / ours | limit | ours / limit |
|---|---|---|---|---|---|---|"""


def against_peers(machine: Machine) -> list[str]:
    """A row a job: the fastest of the libraries that do it; then why ours is slower where it is."""
    found: dict[tuple[str, int], Measured] = {}
    for comparison in comparisons():
        measured = comparison.measured()
        print(measured.row(), flush=True)
        key = (comparison.what, comparison.n)
        if key not in found or measured.ratio < found[key].ratio:
            found[key] = measured
    rows, slower = [], []
    for (what, n), fastest in sorted(found.items()):
        least = None if what in PAIRS else machine.least(BYTES.get(what, 16) * n)
        rows.append(_row(what, n, fastest.our_time, fastest.job.library, fastest.ratio, least))
        if fastest.ratio < 1:
            reason = REASONS.get((what, fastest.job.library), "not explained yet")
            slower.append(
                f"* **{what}, {n:,} rows, {fastest.job.library}** ({fastest.ratio:.2g}): {reason}{check_time(what, n)}."
            )
    said = ["", "Below one:", "", *slower] if slower else ["", "None is below one."]
    return [HEADER, *rows, *said]


LINES: dict[str, tuple[Callable[[np.ndarray, np.ndarray], Any], int, Sequence[int]]] = {
    "ECE": (ECE(), 2, (100, 1_000, 10_000, 100_000, 1_000_000)),
    "log loss, 10 classes": (LogLoss(), 10, (100, 1_000, 10_000, 100_000)),
    "SKCE, 2 classes": (SKCE(), 2, (100, 1_000, 10_000, 100_000)),
    "SKCE, 10 classes": (SKCE(), 10, (100, 1_000, 10_000)),
    "KDE error, 10 classes": (KDE(bandwidth=0.1), 10, (100, 1_000, 10_000)),
    "exact test of the ECE": (ExactTest(ECE()), 2, (100, 1_000, 10_000, 100_000)),
}
CLASSES = (2, 10, 100, 1_000)
OVER_CLASSES: dict[str, Callable[[np.ndarray, np.ndarray], Any]] = {
    "ECE of the confidence": ECE(),
    "ECE of each class": ECE(lens=ClassWise()),
    "SKCE": SKCE(),
    "log loss": LogLoss(),
}


def picture() -> None:
    """Seconds against rows, and against classes of 2,000 rows, on logarithmic axes."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 5), sharey=True, layout="constrained")
    for name, (work, k, sizes) in LINES.items():
        left.plot(sizes, [_seconds(work, k, n) for n in sizes], marker="o", markersize=4, label=name)
    for name, work in OVER_CLASSES.items():
        right.plot(CLASSES, [_seconds(work, k, 2_000) for k in CLASSES], marker="o", markersize=4, label=name)
    left.set(xscale="log", yscale="log", xlabel="rows", ylabel="processor seconds", title="against rows")
    right.set(xscale="log", xlabel="classes", title="against classes, 2,000 rows")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(visible=True, color="0.9", linewidth=0.7)
        axes.legend(
            frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2
        )  # off the lines
    figure.savefig(PICTURE, dpi=150)


def _seconds(work: Callable[[np.ndarray, np.ndarray], Any], k: int, n: int) -> float:
    return best(partial(work, *classes(k, n)), 3, clock=process_time)[0]


def on_gpu(path: Path) -> list[str]:
    """The times of a record, beside the limit of the arithmetic and tiles of torch."""
    record = json.loads(path.read_text())
    rows = [f"## {record['environment']['device']}", ""]
    rows += [
        f"torch {record['environment']['torch']}, triton {record['environment']['triton']}; by `python benchmarks/gpu.py`.",
        "",
        HEADER.replace("| rows ", "", 1).replace("---|", "", 1),
    ]
    for name, found in record["times"].items():
        peer = found.get("torch tiles")
        cells = ("torch tiles", _times(peer / found["seconds"])) if peer else ("–", "–")
        limit = found["limit"]
        limits = (_time(limit), _times(found["seconds"] / limit)) if limit else ("–", "–")
        rows.append(f"| {name} | {_time(found['seconds'])} | {' | '.join((*cells, *limits))} |")
    return [*rows, ""]


def main() -> None:
    """Measure, and write the page."""
    CRPS()(forecasts(100)[0], Normal(0.0 * forecasts(100)[1], 1.0))  # loads what all need
    machine = Machine.measured()
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba"))
    peers = against_peers(machine)
    own, missed = [HEADER], list[str]()
    for job in jobs():
        row, told = job.rows_of(machine)
        own.append(row)
        missed += [] if told is None else [told]
        print(row, told or "", flush=True)
    picture()
    text = [
        "# Performance",
        "",
        "What work costs, beside the fastest other library that does it and beside what the machine can do. Made by "
        "`OMP_NUM_THREADS=1 python benchmarks/performance.py`: processor seconds, the least of several runs that take turns in one "
        f"process (Python {platform.python_version()}, {versions}).",
        "",
        "*Theirs / ours*: above 1 calibrant is faster. *Limit*: what one thread of this machine needs at least to read the input "
        f"once ({machine.bandwidth / 1e9:.0f} GB/s, by a copy), or for the multiplications of all pairs "
        f"({machine.flops / 1e9:.0f} Gflop/s in double precision, the faster of a product of matrices and of a compiled loop in "
        "the cache); small jobs are mostly checks of what they are given.",
        "",
        "## Beside other libraries",
        "",
        *peers,
        "",
        "All libraries one by one, with the values: [beside other libraries](peers.md).",
        "",
        "## Further jobs",
        "",
        *own,
        *(["", "Goals that are not reached:", "", *missed] if missed else []),
        "",
        "## Against rows and classes",
        "",
        "![Processor seconds against rows and against classes](images/performance.png)",
        "",
        *[line for path in sorted(RECORDS.glob("gpu-*.json")) for line in on_gpu(path)],
    ]
    PAGE.write_text("\n".join(text).rstrip() + "\n")


if __name__ == "__main__":
    main()
