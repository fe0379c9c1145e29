"""Random work in chunks, the same digits whatever the number of workers; blocks of rows; and ranks among what was drawn."""

from collections.abc import Callable, Iterator

import numpy as np

from calibrant._tasks import mapping
from calibrant._validate import InputError
from calibrant.typing import Engine, Seed

CHUNK = 1 << 22
"""Numbers drawn at a time (resamples times rows): enough to be fast, few enough to stay in memory."""

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
    task: Task, n_draws: int, size: int, rng: Seed, engine: Engine | None, batch: int | None
) -> Iterator[np.ndarray]:
    """Results of chunks of draws, each with its own seed; in batches of so many, or all at once."""
    sizes = [min(size, n_draws - done) for done in range(0, n_draws, size)]
    seeds = as_seed_sequence(rng).spawn(len(sizes))
    step = len(sizes) if batch is None else batch
    for start in range(0, len(sizes), step):
        yield from mapping(engine)(task, seeds[start : start + step], sizes[start : start + step])


ROUNDING = 1e-12
"""Statistics closer than this, relative to the largest, count as ties: rounding must not decide a p-value."""


def at_least(pool: np.ndarray) -> np.ndarray:
    """How many of the pool are at least as large as each.

    >>> at_least(np.array([1.0, 3.0, 3.0, 2.0]))
    array([4, 2, 2, 3])
    """
    ordered, slack = _ordered(pool)
    return len(pool) - np.searchsorted(ordered, pool - slack, side="left")


def at_most(pool: np.ndarray) -> np.ndarray:
    """How many of the pool are at most as large as each."""
    ordered, slack = _ordered(pool)
    return np.searchsorted(ordered, pool + slack, side="right")


def nearer_tail(pool: np.ndarray) -> np.ndarray:
    """The rank of the nearer tail, ranked again, so that a tail that cannot be reached costs nothing."""
    nearer = np.minimum(at_least(pool), at_most(pool))
    return np.searchsorted(np.sort(nearer), nearer, side="right")


def upper_rank(observed: float, null: np.ndarray) -> float:
    """``(1 + #{T* >= T}) / (M + 1)``, the p-value of a statistic among draws of it.

    >>> upper_rank(2.0, np.array([1.0, 2.0, 3.0]))
    0.75
    """
    pool = np.append(null, observed)
    return float(at_least(pool)[-1] / len(pool))


def rounding_of(pool: np.ndarray) -> float:
    """Differences up to this are ties."""
    return ROUNDING * float(np.abs(pool[np.isfinite(pool)]).max(initial=0))


def _ordered(pool: np.ndarray) -> tuple[np.ndarray, float]:
    if missing := int(np.isnan(pool).sum()):
        raise InputError(f"the statistic is not a number for {missing:,} of {len(pool):,} sets of targets")
    return np.sort(pool), rounding_of(pool)


MIN_BLOCKS = 5
"""So few blocks say nothing about a spread."""


def check_blocks(block: int, n: int) -> None:
    """Refuse blocks so long that there are but a few."""
    if block > 1 and n < MIN_BLOCKS * block:
        raise InputError(
            f"block must leave at least {MIN_BLOCKS} blocks; got block={block} for {n:,} rows: at most {n // MIN_BLOCKS} here"
        )


def block_rows(n: int, block: int, rng: np.random.Generator) -> np.ndarray:
    """n row numbers: blocks with random starts, one after the other, the first row following the last.

    >>> block_rows(6, 3, np.random.default_rng(0)).tolist()
    [5, 0, 1, 3, 4, 5]
    """
    starts = rng.integers(0, n, -(-n // block))
    return ((starts[:, None] + np.arange(block)) % n).ravel()[:n]


def shuffled_rows(n: int, block: int, rng: np.random.Generator) -> np.ndarray:
    """All n row numbers: blocks that follow each other from a random row on, the first row after the last, in random order.

    >>> shuffled_rows(6, 2, np.random.default_rng(0)).tolist()
    [3, 4, 5, 0, 1, 2]
    """
    rows = (rng.integers(n) + np.arange(n)) % n
    order = rng.permutation(-(-n // block))
    return np.concatenate([rows[i * block : (i + 1) * block] for i in order])
