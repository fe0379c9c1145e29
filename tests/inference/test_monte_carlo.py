from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from calibrant._validate import InputError
from calibrant.inference import monte_carlo
from calibrant.inference.monte_carlo import MIN_BLOCKS, as_seed_sequence, check_blocks, draw


def normals(seed, size):
    return np.random.default_rng(seed).normal(size=size)


def test_chunks_and_workers_leave_the_digits_alone():
    alone = draw(normals, 1000, width=20_000, rng=3, engine=None)
    with ThreadPoolExecutor(3) as pool:
        together = draw(normals, 1000, width=20_000, rng=3, engine=pool)
    assert np.array_equal(alone, together)
    assert len(np.unique(alone)) == 1000


def test_memory_is_bounded_by_the_chunk():
    sizes = []
    draw(lambda seed, size: sizes.append(size) or np.zeros(size), 100, width=monte_carlo.CHUNK // 7, rng=0, engine=None)
    assert sum(sizes) == 100
    assert max(sizes) == 7
    sizes.clear()
    draw(lambda seed, size: sizes.append(size) or np.zeros(size), 3, width=10 * monte_carlo.CHUNK, rng=0, engine=None)
    assert sizes == [1, 1, 1]


def test_no_seed_is_seed_zero():
    assert as_seed_sequence(None).entropy == 0
    assert as_seed_sequence(np.int64(7)).entropy == 7


def test_a_seed_sequence_can_be_used_again():
    seeds = np.random.SeedSequence(3)
    first, second = (draw(normals, 5, width=1, rng=seeds, engine=None) for _ in range(2))
    assert np.array_equal(first, second)


def test_any_generator_will_do():
    assert len(draw(normals, 5, width=1, rng=np.random.Generator(np.random.Philox(key=3)), engine=None)) == 5


def test_a_generator_moves_on():
    generator = np.random.default_rng(1)
    first, second = (draw(normals, 5, width=1, rng=generator, engine=None) for _ in range(2))
    assert not np.array_equal(first, second)
    assert np.array_equal(first, draw(normals, 5, width=1, rng=np.random.default_rng(1), engine=None))


@pytest.mark.parametrize("seed", [-1, 1.5, "a"])
def test_other_seeds_are_refused(seed):
    with pytest.raises(
        InputError, match="rng must be a non-negative integer, a list of those, a numpy Generator or None; got"
    ):
        as_seed_sequence(seed)


@pytest.mark.parametrize("block", [2, 3, 10])
def test_blocks_must_leave_a_few(block):
    """Five, also of blocks of two rows; single rows are no blocks."""
    check_blocks(1, 5)
    check_blocks(block, MIN_BLOCKS * block)
    with pytest.raises(InputError, match=f"block must leave at least {MIN_BLOCKS} blocks; got block={block} for"):
        check_blocks(block, MIN_BLOCKS * block - 1)
