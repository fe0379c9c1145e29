"""Rates of what a GPU has its own ways for, measured on the one of this machine."""

import time
from dataclasses import replace
from functools import partial

from calibrant._array import as_tensor
from calibrant.planning.bench import Sizes, fitted, timed, trials
from calibrant.planning.families import FAMILIES
from calibrant.planning.load import Kind
from calibrant.planning.machine import this_machine
from calibrant.planning.rates import Rates, key_of, shipped

GPU_TRIALS: dict[str, Sizes] = {
    "kernel error of all pairs": {"n": (10_000, 100_000, 400_000)},
    "kernel regression": {"n": (10_000, 100_000)},
    "kernel test of all pairs": {"n": (10_000, 60_000), "redraws": (19, 199)},
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
