"""Blocks of rows after each other, for outcomes that depend on those shortly before."""

import numpy as np

from calibrant._validate import InputError

FEWEST = 5
"""So few blocks say nothing about a spread."""


def check_blocks(block: int, n: int) -> None:
    """Refuse blocks so long that there are but a few."""
    if block > 1 and n < FEWEST * block:
        raise InputError(
            f"block must leave at least {FEWEST} blocks; got block={block} for {n:,} rows: at most {n // FEWEST} here"
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
