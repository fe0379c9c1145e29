from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from calibrant._pairwise import Pairwise
from calibrant.kernels import Gaussian

KERNEL = Gaussian(1.0)


@pytest.mark.parametrize("n", [1, 2, 5, 16, 17, 40])
@pytest.mark.parametrize("tile", [1, 3, 16, 100])
def test_reductions_against_the_stored_matrix(n, tile, xp, rng):
    x = rng.normal(size=(n, 2))
    matrix = KERNEL(x, x)
    off = matrix - np.diag(np.diagonal(matrix))
    pairs = Pairwise(lambda a, b: KERNEL(a.x, b.x), _Rows(xp.asarray(x)), tile)
    moments = pairs.moments()
    assert np.asarray(moments.row_sums) == pytest.approx(off.sum(axis=1), rel=1e-12, abs=1e-15)
    assert float(moments.sum_of_squares) == pytest.approx((off**2).sum(), rel=1e-12, abs=1e-15)
    assert np.asarray(moments.diagonal) == pytest.approx(np.diagonal(matrix), rel=1e-13)
    assert float(moments.total) == pytest.approx(off.sum(), rel=1e-12, abs=1e-15)
    v = rng.normal(size=(n, 3))
    assert np.asarray(pairs.matmul(xp.asarray(v))) == pytest.approx(matrix @ v, rel=1e-11, abs=1e-14)
    assert np.asarray(pairs.matmul(xp.asarray(v), diagonal=False)) == pytest.approx(off @ v, rel=1e-11, abs=1e-14)


class _Rows:
    """Rows of any library; the strict one wants every axis named and no slice beyond the end."""

    def __init__(self, x):
        self.x = x

    def __len__(self):
        return self.x.shape[0]

    def __getitem__(self, rows):
        return _Rows(self.x[rows, :])


def test_block_sums(rng):
    x = rng.normal(size=(11, 2))
    sums = Pairwise(KERNEL, x).block_sums(4)
    expected = [KERNEL(x[i : i + 4], x[i : i + 4]).sum() - 4 for i in (0, 4)]
    assert sums == pytest.approx(expected, rel=1e-12)


def test_digits_do_not_depend_on_the_engine(rng):
    x = rng.normal(size=(100, 2))
    alone = Pairwise(KERNEL, x, 16).moments()
    with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(2, get_context("spawn")) as processes:
        for engine in (threads, processes):
            other = Pairwise(KERNEL, x, 16, engine).moments()
            assert np.array_equal(other.row_sums, alone.row_sums)
            assert other.sum_of_squares == alone.sum_of_squares
