import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from calibrant.inference import Memory


def test_the_correlation_of_neighbours(rng):
    z = rng.normal(size=400)
    off = z - z.mean()
    assert Memory.of(ndtr(z)).correlation == pytest.approx((off[1:] * off[:-1]).sum() / (off**2).sum(), rel=1e-9)


def test_independent_rows_raise_no_alarm(rng):
    """One in a thousand, of 2,000 data sets."""
    alarms = sum(Memory.of(rng.random(100)).is_beyond_chance for _ in range(2000))
    assert alarms <= binom.ppf(0.999, 2000, 0.001)


def test_a_bias_is_no_memory(rng):
    assert not Memory.of(rng.random(500) ** 3).is_beyond_chance


def test_memory_is_told_loudly(rng):
    levels = ndtr(np.repeat(rng.normal(size=100), 4))
    memory = Memory.of(levels)
    assert memory.is_beyond_chance
    assert "p-values and bands are for independent rows and MISLEAD here" in memory.in_words()
    assert f"block={memory.block}" in memory.in_words()


def test_how_long_blocks_should_be():
    assert Memory(0.5, 100).block == 7  # 2^-7 < 1 %
    assert Memory(0.0, 100).block == 2
    assert Memory(1.0, 100).block == 459


def test_rows_that_are_all_alike():
    assert Memory.of(np.full(50, 0.3)).correlation == 0
