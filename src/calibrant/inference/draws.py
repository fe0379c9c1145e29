"""Random work in chunks: the same digits whatever the number of workers."""

from collections.abc import Callable, Iterator

import numpy as np

from calibrant._tasks import mapping
from calibrant._validate import InputError
from calibrant.typing import Engine, Seed

CHUNK = 1 << 22
"""Numbers drawn at a time (redraws times rows): enough to be fast, few enough to stay in memory."""

WAVE = 4
"""Chunks that are sent to an engine together where drawing may stop early."""

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
    return np.concatenate(list(_chunks(task, n_draws, size, rng, engine, None)))


def draw_until(
    task: Task, n_draws: int, reached: Callable[[np.ndarray], np.ndarray], hits: int,
    *, width: int, rng: Seed, engine: Engine | None,
) -> np.ndarray:  # fmt: skip
    """Draws up to the one with the last of so many hits, at most ``n_draws``; chunks of them are made ahead."""
    size = max(1, min(n_draws // 20, CHUNK // max(width, 1)))
    made = np.zeros(0)
    for chunk in _chunks(task, n_draws, size, rng, engine, WAVE):
        made = np.concatenate([made, chunk])
        count = np.cumsum(reached(made))
        if count[-1] >= hits:
            return made[: int(np.argmax(count >= hits)) + 1]
    return made


def _chunks(
    task: Task, n_draws: int, size: int, rng: Seed, engine: Engine | None, wave: int | None
) -> Iterator[np.ndarray]:
    """Results of chunks of draws, each with its own seed; in waves of so many, or all at once."""
    sizes = [min(size, n_draws - done) for done in range(0, n_draws, size)]
    seeds = as_seed_sequence(rng).spawn(len(sizes))
    step = len(sizes) if wave is None else wave
    for start in range(0, len(sizes), step):
        yield from mapping(engine)(task, seeds[start : start + step], sizes[start : start + step])
