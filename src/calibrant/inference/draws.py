"""Random work in chunks: the same digits whatever the number of workers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from calibrant._validate import InputError
from calibrant.typing import Engine, Seed

CHUNK = 1 << 22
"""Numbers drawn at a time (redraws times rows): enough to be fast, few enough to stay in memory."""

Task = Callable[[np.random.SeedSequence, int], np.ndarray]
"""A seed and how many draws to make; the statistics of those draws."""


def as_seed_sequence(rng: Seed) -> np.random.SeedSequence:
    """The seeds behind ``rng``; ``None`` is the fixed seed 0, so that results repeat unless asked otherwise."""
    if isinstance(rng, np.random.SeedSequence):
        return np.random.SeedSequence(rng.entropy, spawn_key=rng.spawn_key)  # as if unused: spawning counts
    if isinstance(rng, np.random.Generator):
        return np.random.SeedSequence(rng.integers(0, 1 << 32, 4).tolist())
    if isinstance(rng, list | tuple) and rng:
        return np.random.SeedSequence(list(rng))
    if rng is None or (isinstance(rng, int | np.integer) and rng >= 0):
        return np.random.SeedSequence(0 if rng is None else int(rng))
    raise InputError(f"rng must be a non-negative integer, a list of those, a numpy Generator or None; got {rng!r}")


def draw(task: Task, n_draws: int, *, width: int, rng: Seed, engine: Engine | None) -> np.ndarray:
    """The results of ``n_draws`` random draws, each over ``width`` numbers, in an order no engine can change."""
    size = max(1, min(n_draws, CHUNK // max(width, 1)))
    sizes = [min(size, n_draws - done) for done in range(0, n_draws, size)]
    seeds = as_seed_sequence(rng).spawn(len(sizes))
    run: Callable[..., Any] = map if engine is None else engine.map
    return np.concatenate(list(run(task, seeds, sizes)))
