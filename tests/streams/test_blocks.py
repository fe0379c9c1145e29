import numpy as np
import pytest

from calibrant import SKCE, Ensemble
from calibrant._validate import InputError
from calibrant.kernels import Exponential, Gaussian
from calibrant.streams.block_state import BlockState

SETTING = SKCE(Exponential(0.3), block=5)


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2, n), rng.random(n)


@pytest.mark.parametrize("size", [1, 2, 4, 5, 6, 23])
@pytest.mark.parametrize("n", [5, 9, 10, 43])
def test_chunks_of_any_size_in_order(n, size):
    y, p = rows(n)
    state = BlockState(SETTING)
    for start in range(0, n, size):
        state = state.update(y[start : start + size], p[start : start + size])
        assert sum(len(piece[2]) for piece in state.pieces) < 5
    found, whole = state.finalize(), SETTING(y, p)
    assert found.value == pytest.approx(whole.value, rel=1e-12, abs=1e-16)
    assert (found.notes, found.n, found.estimator, found.route) == (whole.notes, n, whole.estimator, whole.route)
    if whole.standard_error is not None:
        assert found.standard_error == pytest.approx(whole.standard_error, rel=1e-11)


def test_at_most_two_incomplete_blocks_a_range():
    y, p = rows(103)
    state = BlockState(SETTING).update(y[3:52], p[3:52], start=3).update(y[71:99], p[71:99], start=71)
    assert [(piece[0], len(piece[2])) for piece in state.pieces] == [(3, 2), (50, 2), (71, 4), (95, 4)]
    assert state.ranges == ((3, 52), (71, 99))


def test_gaps_and_rows_that_come_twice():
    y, p = rows(20)
    state = BlockState(SETTING).update(y[:8], p[:8]).update(y[12:], p[12:], start=12)
    with pytest.raises(InputError, match="rows 8 to 11 are missing: merge the state that has them"):
        state.finalize()
    assert state.update(y[8:12], p[8:12], start=8).finalize().value == pytest.approx(SETTING(y, p).value, rel=1e-12)
    with pytest.raises(InputError, match=r"rows 0 to 7 come twice: .* update\(..., start=row\)"):
        state.merge(BlockState(SETTING).update(y[:8], p[:8]))
    with pytest.raises(InputError, match="rows 0 to 2 are missing"):
        BlockState(SETTING).update(y, p, start=3).finalize()


def test_what_is_refused():
    y, p = rows(4)
    with pytest.raises(InputError, match="block takes no sample_weight"):
        BlockState(SETTING).update(y, p, sample_weight=np.ones(4))
    with pytest.raises(InputError, match="start must be a whole number of at least 0; got -1"):
        BlockState(SETTING).update(y, p, start=-1)
    with pytest.raises(InputError, match="block must not exceed the number of rows, 4; got 5"):
        BlockState(SETTING).update(y, p).finalize()
    with pytest.raises(InputError, match=r"an SKCE with blocks, such as SKCE\(block=100\)"):
        BlockState(SKCE(Exponential(0.3)))


def test_members_must_be_as_many_in_a_block(rng):
    setting = SKCE(Exponential(1.0), Gaussian(1.0), block=2)
    state = BlockState(setting).update([0.0], Ensemble(rng.normal(size=(1, 3))))
    with pytest.raises(InputError, match="rows of different shapes cannot be put together"):
        state.update([0.0], Ensemble(rng.normal(size=(1, 4))))


def test_large_blocks_by_the_faster_paths(rng):
    setting = SKCE(Exponential(0.3), block=2500)
    y, p = rows(5100)
    state = BlockState(setting).update(y[:1300], p[:1300]).update(y[1300:], p[1300:])
    assert state.finalize().value == pytest.approx(setting(y, p).value, rel=1e-11)
