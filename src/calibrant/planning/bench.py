"""Rates measured on this machine and its GPU: every family at a few sizes, and coefficients that fit."""

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
from calibrant.distributions.continuous.location_scale import Normal
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.empirical.ensemble import Ensemble
from calibrant.planning.families import FAMILIES, KINDS, MEASURED, Family, Kind, Load
from calibrant.planning.machine import Rates, key_of, shipped, this_machine
from calibrant.recalibration.base import Recalibrator

WIDTHS: dict[Kind, tuple[int, ...]] = {"classes": (3, 20), "binary": (2,), "numbers": (1,), "ensemble": (8, 20)}

FITS = 6
"""Maps that a fit with its held-out scores finds: from all rows, and without each of five folds."""

BUDGET = 20.0
"""Seconds by the clock that measuring takes; a little more where the machine is slow, or busy."""

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
    "test of the binned error": {"n": (2000, 20_000), "resamples": (19, 99)},
    "test of the class-wise error": {"n": (2000, 10_000), "resamples": (19, 99)},
    "test of levels": {"n": (1000, 10_000), "resamples": (9, 49)},
    "kernel test on a line": {"n": (2000, 50_000), "resamples": (19, 99)},
    "kernel test of all pairs": {"n": (300, 800), "resamples": (9, 39)},
    "kernel test by waves": {"n": (400, 2000), "resamples": (9, 39), "waves": (16, 96)},
    "temperature": {"n": (1000, 10_000)},
    "recalibration": {"n": (1000, 5000)},
    "binary: recalibration": {"n": (5000, 200_000)},
    "numbers: recalibration": {"n": (5000, 200_000)},
}
"""Sizes at which each is tried, whatever the predictions or of one kind."""


def measured(tell: Callable[[str, float, float], None] | None = None, budget: float = BUDGET) -> Rates:
    """Rates of this machine, in about so many seconds by the clock, which families share by what they usually take.

    Processor time is what is measured: what else runs on the machine matters little, but for how much gets done. Loads that no
    time is left for are taken to be as much slower or faster than usual as the smaller ones of their family.
    """
    work = [(kind, family) for kind in KINDS for family in MEASURED if kind in family.kinds]
    tried = [sorted(trials(family, kind), key=partial(usually, family)) for kind, family in work]
    maps = [FITS if isinstance(family.make(tried[i][0]), Recalibrator) else 1 for i, (_, family) in enumerate(work)]
    expected = [sum(usually(work[i][1], load) for load in loads) / maps[i] for i, loads in enumerate(tried)]
    seconds, usual, end = {}, shipped().seconds, time.perf_counter() + budget
    for i, ((kind, family), loads) in enumerate(zip(work, tried, strict=True)):
        if tell is not None:
            tell(f"{kind}: {family.name}", i, len(work))
        share = (end - time.perf_counter()) * expected[i] / sum(expected[i:])
        found, key = [maps[i] * each for each in timed(family, loads, share)], key_of(family, loads[0])
        seconds[key] = fitted(family, loads, completed(family, loads, found), usual.get(key, ()))
    return Rates(seconds, machine(), "rates measured here")


def usually(family: Family, load: Load) -> float:
    """Seconds by the rates that are built in."""
    return shipped().predicted(family, load)


def completed(family: Family, loads: Sequence[Load], seconds: Sequence[float]) -> list[float]:
    """Seconds of all loads from those of the first few, all as much slower or faster than usual."""
    expected = [usually(family, load) for load in loads]
    pace = float(np.median(np.array(seconds) / expected[: len(seconds)]))
    return [*seconds, *(pace * each for each in expected[len(seconds) :])]


def trials(family: Family, kind: Kind, of: Mapping[str, Sizes] = TRIALS) -> Iterator[Load]:
    """The loads at which a family is tried: every pair of sizes and widths."""
    sizes = of.get(f"{kind}: {family.name}") or of.get(family.name, LINEAR)
    for k, *values in product(WIDTHS[kind], *sizes.values()):
        tried: dict[str, Any] = dict(zip(sizes, values, strict=True))
        yield replace(Load(1, k, kind), **tried)


def timed(
    family: Family,
    loads: Sequence[Load],
    share: float = np.inf,
    *,
    seconds: Callable[[], float] = time.process_time,
    move: Callable[[np.ndarray], Any] = np.asarray,
) -> list[float]:
    """Processor seconds at each load, or at the first few where those take more than a share of the time by the clock.

    Quick ones are the best of three runs. What has to be compiled is compiled before. ``move`` brings predictions to where they
    are worked on.
    """
    start = time.perf_counter()
    _work(family, loads[0], move)()
    is_early = time.perf_counter() - start <= share / 4
    if is_early:
        _work(family, loads[-1], move)()
    found: list[float] = []
    for load in loads:
        if found and not (is_early and time.perf_counter() - start <= share):
            break
        found.append(_best(_work(family, load, move), seconds))
    return found


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


GPU_TRIALS: dict[str, Sizes] = {
    "kernel error of all pairs": {"n": (10_000, 100_000, 400_000)},
    "kernel regression": {"n": (10_000, 100_000)},
    "kernel test of all pairs": {"n": (10_000, 60_000), "resamples": (19, 199)},
}
"""Sizes at which each is tried, some ten times as large as those of a processor."""

ON_GPU: tuple[tuple[str, Kind], ...] = (
    *((name, "classes") for name in GPU_TRIALS),
    ("kernel error of all pairs", "numbers"),
)
"""What a GPU has its own ways for."""


def with_gpu(rates: Rates) -> Rates:
    """The rates, and those of the GPU where torch can use one."""
    gpu = this_machine().gpu
    return rates if gpu is None else replace(rates, gpu_seconds=measured_on_gpu(), gpu_name=gpu)


def measured_on_gpu(device: str = "cuda") -> dict[str, tuple[float, ...]]:
    """Rates by the clock on the wall: the processor only waits. Half a minute where kernels have to be compiled first."""
    move = partial(as_tensor, device=device)
    found, usual = {}, shipped().gpu_seconds
    for name, kind in ON_GPU:
        loads = list(trials(FAMILIES[name], kind, GPU_TRIALS))
        key = key_of(FAMILIES[name], loads[0])
        seconds = timed(FAMILIES[name], loads, seconds=time.perf_counter, move=move)
        found[key] = fitted(FAMILIES[name], loads, seconds, usual.get(key, ()))
    return found
