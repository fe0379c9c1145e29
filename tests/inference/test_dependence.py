import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from calibrant import InputError, Normal
from calibrant.inference import Memory, time_blocks
from calibrant.inference.dependence import TimeBlocks


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
    assert f"--block {memory.block}, in Python evaluate(..., block={memory.block})" in memory.in_words()


def test_how_long_blocks_should_be():
    r = 0.5 + 0.01
    assert Memory(0.5, 10_000).block == np.ceil(10 * 2 * r / (1 - r**2))  # a tenth of the variance is lost
    r = 0.5 + 0.1
    assert Memory(0.5, 100).block == np.ceil(5 * 2 * r / (1 - r**2))  # a fifth, as there would be fewer than 20 blocks
    assert Memory(0.0, 10_000).block == 2
    assert Memory(1.0, 100).block == np.ceil(5 * 2 * 0.99 / (1 - 0.99**2))


def test_a_fading_correlation_loses_so_much_of_the_variance_of_blocks():
    """Of ``sum over i, j of r^|i - j|``, against that of as many rows of an endless series."""
    r, b = 0.5, 40
    inside = sum(r ** abs(i - j) for i in range(b) for j in range(b))
    assert 1 - inside / (b * (1 + r) / (1 - r)) == pytest.approx(2 * r / (1 - r**2) / b, rel=1e-6)


def test_blocks_are_in_the_order_of_time_and_keep_rows_of_one_time_together(rng):
    time = rng.permutation(np.repeat(np.arange(30), 3))
    labels = time_blocks(rng.integers(0, 2, 90), np.full(90, 0.5), time, block=4)
    assert (labels == np.minimum(time // 4, 6)).all()


@pytest.mark.parametrize("as_time", [str, np.datetime64, lambda x: np.datetime64(x).astype("datetime64[s]")])
def test_times_may_be_dates(as_time):
    days = ["2024-02-01", "2023-12-31", "2024-01-01", "2023-12-30"]
    assert time_blocks([1, 0, 1, 0], [0.5] * 4, [as_time(day) for day in days], block=2).tolist() == [1, 0, 1, 0]


def test_blocks_are_longer_where_errors_fade_slowly(rng):
    y_pred, z = np.full(600, 0.5), rng.normal(size=150)
    slow, quick = (np.repeat(z, 4) > 0) * 1, (rng.normal(size=600) > 0) * 1
    lengths = [np.bincount(time_blocks(y, y_pred)).min() for y in (slow, quick)]
    assert lengths[0] > 10 > lengths[1] >= 2


def test_errors_whose_size_is_alike_are_memory_too(rng):
    size = np.repeat(np.exp(rng.normal(size=200)), 10)
    found = TimeBlocks.of(size * rng.normal(size=2000), Normal(np.zeros(2000), 1.0))
    assert found.memory.is_beyond_chance


@pytest.mark.parametrize(
    ("time", "words"),
    [
        (["31/5/2024", "1/6/2024", "2/6/2024"], r"time must be numbers or dates such as 2024-05-31.*got '31/5/2024'"),
        ([1.0, np.nan, 2.0], "time has 1 missing or infinite values, first in row 1: drop these rows"),
        ([1, 2], "time.*y_true"),
        ([[1, 2]] * 3, r"time must be one value per row; got shape \(3, 2\)"),
    ],
)
def test_times_that_cannot_be_used(time, words):
    with pytest.raises(InputError, match=words):
        time_blocks([1, 0, 1], [0.5] * 3, time)


def test_rows_that_are_all_alike():
    assert Memory.of(np.full(50, 0.3)).correlation == 0


@pytest.mark.parametrize(("times", "unit"), [(None, "rows"), (np.repeat(np.arange(100), 3), "steps in time")])
def test_what_is_said_of_blocks(times, unit, rng):
    y = np.cumsum(rng.normal(size=300))
    blocks = TimeBlocks.of(y, Normal(np.zeros(300), np.full(300, 9.0)), times, 7)
    said = blocks.in_words()
    assert f"a correlation of {blocks.memory.correlation:+.2f} with the next ones: blocks of 7 {unit} are" in said
    assert len(np.unique(blocks.labels)) == (300 // 7 if times is None else 100 // 7)


def test_blocks_are_no_longer_than_the_series(rng):
    walk = np.cumsum(rng.normal(size=300))
    found = TimeBlocks.of(walk, Normal(np.zeros(300), 10.0))
    assert found.memory.block > 300
    assert found.length == 300
    assert (found.labels == 0).all()
