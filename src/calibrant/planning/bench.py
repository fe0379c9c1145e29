"""Rates measured on this machine: every family at a few sizes, and coefficients that fit."""

import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import metadata
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from calibrant._array import as_tensor
from calibrant.distributions.categorical import Categorical
from calibrant.distributions.ensemble import Ensemble
from calibrant.distributions.normal import Normal
from calibrant.planning.families import FAMILIES, MEASURED
from calibrant.planning.family import Family
from calibrant.planning.load import KINDS, Kind, Load
from calibrant.planning.machine import this_machine
from calibrant.planning.rates import Rates, key_of, shipped
from calibrant.recalibration.base import Recalibrator

WIDTHS: dict[Kind, tuple[int, ...]] = {"classes": (3, 20), "binary": (2,), "numbers": (1,), "ensemble": (8, 20)}

FITS = 6
"""Maps that a fit with its held-out scores finds: from all rows, and without each of five folds."""

QUICK = 0.01
"""Seconds below which a run is repeated."""

DRAWN = 0.1
"""Weight of the usual coefficients, beside one for each measurement."""

Sizes: TypeAlias = dict[str, tuple[int, ...]]

LINEAR: Sizes = {"n": (2000, 20_000)}

TRIALS: dict[str, Sizes] = {
    "mean embedding": {"n": (2000, 10_000)},
    "kernel error on a line": {"n": (2000, 200_000)},
    "kernel error of all pairs": {"n": (1000, 5000)},
    "kernel error of blocks": {"n": (500, 15_000), "block": (30, 300)},
    "kernel error by waves": {"n": (500, 5000), "waves": (16, 128)},
    "kernel regression": {"n": (1000, 3500)},
    "test of the binned error": {"n": (2000, 20_000), "redraws": (19, 99)},
    "test of the class-wise error": {"n": (2000, 10_000), "redraws": (19, 99)},
    "test of levels": {"n": (1000, 10_000), "redraws": (9, 49)},
    "kernel test on a line": {"n": (2000, 50_000), "redraws": (19, 99)},
    "kernel test of all pairs": {"n": (300, 800), "redraws": (9, 39)},
    "kernel test by waves": {"n": (400, 2000), "redraws": (9, 39), "waves": (16, 96)},
    "temperature": {"n": (1000, 10_000)},
    "recalibration": {"n": (1000, 5000)},
}
"""Sizes at which each is tried."""

GPU_TRIALS: dict[str, Sizes] = {
    "kernel error of all pairs": {"n": (10_000, 100_000, 400_000)},
    "kernel regression": {"n": (10_000, 100_000)},
    "kernel test of all pairs": {"n": (10_000, 60_000), "redraws": (19, 199)},
}
"""The same on a GPU."""

ON_GPU: tuple[tuple[str, Kind], ...] = (
    *((name, "classes") for name in GPU_TRIALS),
    ("kernel error of all pairs", "numbers"),
)
"""What a GPU has its own ways for."""


def measured(tell: Callable[[str, float, float], None] | None = None) -> Rates:
    """Rates of this machine, in some 20 seconds of a processor that has nothing else to do.

    Processor time is measured, not the clock on the wall: what else runs on the machine matters little.
    """
    work = [(kind, family) for kind in KINDS for family in MEASURED if kind in family.kinds]
    seconds, usual = {}, shipped().seconds
    gpu = this_machine().gpu
    for i, (kind, family) in enumerate(work):
        if tell is not None:
            tell(f"{kind}: {family.name}", i, len(work))
        loads = list(trials(family, kind))
        maps = FITS if isinstance(family.make(loads[0]), Recalibrator) else 1
        found, key = [maps * each for each in timed(family, loads)], key_of(family, loads[0])
        seconds[key] = fitted(family, loads, found, usual.get(key, ()))
    on_gpu = {} if gpu is None else measured_on_gpu()
    return Rates(seconds, machine(), "rates measured here", on_gpu, gpu)


def measured_on_gpu(device: str = "cuda") -> dict[str, tuple[float, ...]]:
    """Rates of what a GPU has its own ways for, by the clock on the wall; the processor only waits.

    Sizes are some ten times as large as those of a processor.
    """
    move = partial(as_tensor, device=device)
    found, usual = {}, shipped().gpu_seconds
    for name, kind in ON_GPU:
        loads = list(trials(FAMILIES[name], kind, GPU_TRIALS))
        key = key_of(FAMILIES[name], loads[0])
        seconds = timed(FAMILIES[name], loads, time.perf_counter, move)
        found[key] = fitted(FAMILIES[name], loads, seconds, usual.get(key, ()))
    return found


def trials(family: Family, kind: Kind, of: Mapping[str, Sizes] = TRIALS) -> Iterator[Load]:
    """The loads at which a family is tried: every pair of sizes and widths."""
    sizes = of.get(family.name, LINEAR)
    for k, *values in product(WIDTHS[kind], *sizes.values()):
        tried: dict[str, Any] = dict(zip(sizes, values, strict=True))
        yield replace(Load(1, k, kind), **tried)


def timed(
    family: Family,
    loads: Sequence[Load],
    clock: Callable[[], float] = time.process_time,
    move: Callable[[np.ndarray], Any] = np.asarray,
) -> list[float]:
    """Seconds at each load; quick ones of the best of three runs. What has to be compiled is compiled before.

    ``move`` brings predictions to where they are worked on.
    """
    for load in {loads[0], loads[-1]}:
        _work(family, load, move)()
    return [_best(_work(family, load, move), clock) for load in loads]


def _work(family: Family, load: Load, move: Callable[[np.ndarray], Any]) -> Callable[[], object]:
    measure, (y_true, y_pred) = family.make(load), problem(load, move)
    if isinstance(measure, Recalibrator):
        return lambda: measure.fit(y_true, y_pred, folds=0)
    return lambda: measure(y_true, y_pred)


def _best(work: Callable[[], object], clock: Callable[[], float]) -> float:
    first = _run(work, clock)
    return min(first, _run(work, clock), _run(work, clock)) if first < QUICK else first


def _run(work: Callable[[], object], clock: Callable[[], float]) -> float:
    start = clock()
    work()
    return max(clock() - start, 1e-7)


def fitted(
    family: Family, loads: Sequence[Load], seconds: Sequence[float], usual: Sequence[float] = ()
) -> tuple[float, ...]:
    """Coefficients, none negative, with the least relative squared error.

    Where noise hides a term, it is drawn to what is ``usual``: a rate that is lost would make large data free.
    """
    from scipy.optimize import nnls

    terms = np.array([family.terms(load) for load in loads])
    scale = np.maximum(terms.max(axis=0), 1.0)  # a term may be none of this kind's
    relative = terms / scale / np.array(seconds)[:, None]
    known = np.array(usual) if len(usual) else np.zeros(len(scale))
    drawn = np.diag(DRAWN / (known * scale)[known > 0])
    prior = np.zeros((len(drawn), len(scale)))
    prior[:, known > 0] = drawn
    right = np.concatenate([np.ones(len(seconds)), np.full(len(drawn), DRAWN)])
    return tuple((nnls(np.concatenate([relative, prior]), right)[0] / scale).tolist())


def problem(load: Load, move: Callable[[np.ndarray], Any] = np.asarray) -> tuple[np.ndarray, Any]:
    """Calibrated predictions of that many rows, moved to where they are to be, and their targets."""
    rng = np.random.default_rng(0)
    if load.kind == "classes":
        predictions: Any = Categorical(move(rng.dirichlet(np.ones(load.k), load.n)))
    elif load.kind == "binary":
        predictions = Categorical(move(rng.random(load.n)))
    elif load.kind == "numbers":
        predictions = Normal(move(rng.normal(size=load.n)), move(1 + rng.random(load.n)))
    else:
        predictions = Ensemble(move(rng.normal(size=(load.n, 1)) + rng.normal(size=(load.n, load.k))))
    return predictions.sample(rng, 1)[0], predictions


def machine() -> dict[str, str]:
    """What the rates were measured on."""
    versions = {name: metadata.version(name) for name in ("calibrant", "numpy", "scipy", "numba")}
    return {
        "platform": platform.platform(),
        "processor": platform.machine(),
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        **versions,
    }
