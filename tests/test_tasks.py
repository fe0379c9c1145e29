"""How tasks are sent and cut."""

from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool

import numpy as np
import pytest

from calibrant import ECE, SKCE, ExactTest
from calibrant._tasks import MAX_PIECE_ROWS, cuts, is_parallel, is_pool, mapping, pieces, sharing
from calibrant._validate import InputError


@pytest.mark.parametrize("n", [0, 1, 7, 512, 100_000])
@pytest.mark.parametrize("unit", [1, 50, 512])
def test_pieces_are_whole_units_and_hold_every_row_once(n, unit):
    found = pieces(n, unit)
    rows = np.concatenate([np.zeros(0, int), *(np.arange(n)[cut] for cut in found)])
    assert rows.tolist() == list(range(n))
    assert all((cut.stop - cut.start) % unit == 0 for cut in found[:-1])


def test_many_rows_make_more_pieces_rather_than_larger_ones():
    assert len(pieces(320, 1)) == 32
    assert max(cut.stop - cut.start for cut in pieces(10**7, 512)) == MAX_PIECE_ROWS
    assert len(pieces(10**5, 2 * MAX_PIECE_ROWS)) == 4, "a unit is never cut"
    assert cuts(0, 5) == []


def test_values_are_shared_where_that_can_be():
    class Sharing:
        def share(self, value):
            return ("there", value)

    assert sharing(Sharing())(3) == ("there", 3)
    assert sharing(None)(3) == 3


@pytest.mark.parametrize("work", [SKCE(), SKCE(block=2), ExactTest(ECE(), 19)], ids=["pairs", "blocks", "resamples"])
def test_what_is_no_engine_is_refused_wherever_it_is_handed_in(work):
    y, p = np.array([1, 0, 1, 0]), np.array([[0.8, 0.2], [0.3, 0.7], [0.4, 0.6], [0.5, 0.5]])
    with ThreadPool(1) as pool:
        for engine, message in (
            ("threads:2", r"engine is the text 'threads:2': give engines.connect\('threads:2'\)"),
            (pool, r"engine is a ThreadPool, whose map is not that of an executor: give engines.connect\(...\) of it"),
            (2, "engine must have the map of an executor, see engines.connect; got 2"),
        ):
            with pytest.raises(InputError, match=message):
                work(y, p, engine=engine)


def test_executors_that_can_starmap_are_no_pools():
    class Executor(ThreadPoolExecutor):
        def starmap(self, fn, tasks):
            raise AssertionError

    with Executor(1) as executor:
        assert not is_pool(executor)
        assert list(mapping(executor)(pow, [2, 3], [2, 2])) == [4, 9]
    assert not is_parallel(map)
