from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import ClassVar

import numpy as np
import pytest
from scipy.special import softmax

from calibrant._array import to_numpy
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


class TestLogmatmul:
    """H holds logarithms of weights; here it is not symmetric, and differs from row to row by a constant."""

    @staticmethod
    def logs(a, b):
        return a[:, :1] + a[:, 1:] @ b[:, 1:].T

    @classmethod
    def stored(cls, x, v, diagonal):
        matrix = cls.logs(x, x)
        matrix = matrix if diagonal else np.where(np.eye(len(x)) == 1, -np.inf, matrix)
        weights = softmax(matrix, axis=1)
        return np.log(np.exp(matrix).sum(axis=1)), weights @ v, (weights**2).sum(axis=1), weights**2 @ v

    @staticmethod
    def values(found):
        return found.log_sum, found.mean, found.squares, found.mean_of_squares

    @pytest.mark.parametrize("diagonal", [True, False])
    @pytest.mark.parametrize("tile", [1, 3, 16, 100])
    @pytest.mark.parametrize("n", [2, 5, 16, 17, 40])
    def test_averages_against_the_stored_matrix(self, n, tile, diagonal, rng):
        x, v = rng.normal(size=(n, 3)), rng.normal(size=(n, 2))
        found = Pairwise(self.logs, x, tile).logmatmul(v, diagonal=diagonal)
        for values, expected in zip(self.values(found), self.stored(x, v, diagonal), strict=True):
            assert values == pytest.approx(expected, rel=1e-12, abs=1e-14)

    @pytest.mark.parametrize("diagonal", [True, False])
    def test_every_library_gives_the_same_numbers(self, diagonal, xp, rng):
        x, v = rng.normal(size=(7, 3)), rng.normal(size=(7, 2))
        rows = _Rows(xp.asarray(x))
        found = Pairwise(lambda a, b: self.logs(a.x, b.x), rows, 3).logmatmul(xp.asarray(v), diagonal=diagonal)
        for values, expected in zip(self.values(found), self.stored(x, v, diagonal), strict=True):
            assert to_numpy(values) == pytest.approx(expected, rel=1e-12, abs=1e-14)

    @pytest.mark.parametrize("tile", [2, 100])
    def test_rows_see_their_own_group_only(self, tile, rng):
        group, v = np.array([0, 1, 0, 2, 1, 0]), rng.normal(size=(6, 2))
        form = Pairwise(lambda a, b: np.where(a[:, None] == b, 0.0, -np.inf), group, tile)
        found = form.logmatmul(v, diagonal=False)
        assert found.mean[[1, 4]] == pytest.approx(v[[4, 1]], rel=1e-15)
        assert found.mean[2] == pytest.approx(v[[0, 5]].mean(axis=0), rel=1e-15)
        assert found.is_empty.tolist() == [False, False, False, True, False, False]
        assert found.log_sum.tolist() == pytest.approx([np.log(2), 0, np.log(2), -np.inf, 0, np.log(2)], rel=1e-15)
        assert not np.concatenate([found.mean[3], found.squares[3:4], found.mean_of_squares[3]]).any()

    @pytest.mark.parametrize("tile", [1, 2])
    def test_a_single_row_has_no_neighbours(self, tile):
        found = Pairwise(self.logs, np.ones((1, 3)), tile).logmatmul(np.ones((1, 1)), diagonal=False)
        assert [value.ravel().tolist() for value in self.values(found)] == [[-np.inf], [0.0], [0.0], [0.0]]

    @pytest.mark.parametrize("tile", [2, 100])
    @pytest.mark.parametrize("diagonal", [True, False])
    def test_gradients_are_finite_differences(self, tile, diagonal, rng):
        torch = pytest.importorskip("torch")

        def values(x, v):
            return self.values(Pairwise(self.logs, x, tile).logmatmul(v, diagonal=diagonal))

        x, v = (torch.tensor(rng.normal(size=(5, k)), requires_grad=True) for k in (3, 2))
        assert torch.autograd.gradcheck(values, (x, v))

    def test_digits_do_not_depend_on_the_engine(self, rng):
        x, v = rng.normal(size=(50, 3)), rng.normal(size=(50, 2))
        alone = Pairwise(self.logs, x, 16).logmatmul(v, diagonal=False)
        with ThreadPoolExecutor(2) as threads:
            other = Pairwise(self.logs, x, 16, threads).logmatmul(v, diagonal=False)
        for values, expected in zip(self.values(other), self.values(alone), strict=True):
            assert np.array_equal(values, expected)


class TestTasks:
    class Sharing:
        """Counts what is sent."""

        def __init__(self):
            self.shared, self.tasks = [], []

        def share(self, value):
            self.shared.append(value)
            return len(self.shared) - 1

        def map(self, fn, *columns):
            for task in zip(*columns, strict=True):
                self.tasks.append(task)
                yield fn(*(None if x is None else self.shared[x] for x in task))

    def test_each_panel_is_sent_once_and_tasks_name_two_of_them(self, rng):
        x, engine = rng.normal(size=(100, 2)), self.Sharing()
        there, alone = Pairwise(KERNEL, x, 4, engine).moments(), Pairwise(KERNEL, x, 4).moments()
        assert np.array_equal(there.row_sums, alone.row_sums)
        assert sum(map(len, engine.shared)) == 100
        count = len(engine.shared)
        assert count >= 13
        assert engine.tasks == [(i, None if i == j else j) for i in range(count) for j in range(i, count)]

    def test_many_rows_make_more_panels_rather_than_larger_ones(self, monkeypatch, rng):
        monkeypatch.setattr("calibrant._pairwise.MAX_PIECE_ROWS", 4)
        engine = self.Sharing()
        Pairwise(KERNEL, rng.normal(size=(100, 1)), 2, engine).moments()
        assert {len(panel) for panel in engine.shared} == {4}


class TestProducts:
    def test_digits_do_not_depend_on_the_engine(self, rng, travelling):
        x, v = rng.normal(size=(103, 2)), rng.normal(size=(103, 3))
        alone = Pairwise(KERNEL, x, 2).matmul(v)
        assert np.array_equal(Pairwise(KERNEL, x, 2, travelling).matmul(v), alone)
        assert len(travelling.sizes) == 26

    def test_rows_are_sent_once_for_all_products(self, rng):
        class Sharing:
            shared: ClassVar[list] = []

            def share(self, value):
                self.shared.append(value)
                return ("shared", len(self.shared) - 1)

            def map(self, fn, *columns):
                tasks = zip(*columns, strict=True)
                return [fn(*(self.shared[x[1]] if isinstance(x, tuple) else x for x in task)) for task in tasks]

        x, some = rng.normal(size=(50, 2)), rng.normal(size=(3, 50, 1))
        engine = Sharing()
        pairs = Pairwise(KERNEL, x, 4, engine)
        for v in some:
            assert np.array_equal(pairs.matmul(v), Pairwise(KERNEL, x, 4).matmul(v))
        assert [len(value) for value in engine.shared] == [50] * 4
        assert sum(value is x for value in engine.shared) == 1
