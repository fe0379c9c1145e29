"""The choice of the loop over pairs of rows, and what results say of it."""

import numpy as np
import pytest

from calibrant import ECE, KDE, SKCE, ExactTest
from calibrant._compiled import choice
from calibrant.kernels import Exponential, Matern


def problem(rng, n, k=3):
    p = rng.dirichlet(np.ones(k), n)
    return (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), p


@pytest.mark.parametrize(
    ("n", "k", "kernel", "route"),
    [
        (100, 3, Exponential(0.3), "features; plain"),
        (2001, 3, Exponential(0.3), "features; compiled, as rows are more than 2,000"),
        (2001, 3, Matern(1.5, 0.3), "features; plain, as nothing is compiled for these kernels and arrays"),
        (2001, 2, Exponential(0.3), "features; running sums over sorted points"),
    ],
)
def test_a_kernel_error_says_by_which_loop_it_came(n, k, kernel, route, rng):
    assert SKCE(kernel)(*problem(rng, n, k)).route == route


def test_blocks_say_it_too(rng):
    assert SKCE(Exponential(0.3), block=10)(*problem(rng, 100)).route == "features; plain"


@pytest.mark.parametrize(("n", "route"), [(100, "plain"), (2001, "compiled, as rows are more than 2,000")])
def test_so_does_kernel_regression(n, route, rng):
    assert KDE(bandwidth=0.1)(*problem(rng, n)).route == route


def test_all_threads_of_numba_share_many_pairs(rng, monkeypatch):
    import numba

    monkeypatch.setitem(vars(numba.config), "NUMBA_NUM_THREADS", 2)
    monkeypatch.setattr(choice, "MAX_ROWS_OF_ONE_THREAD", 50)
    monkeypatch.setattr(choice, "MAX_PLAIN_ROWS", 40)
    assert SKCE(Exponential(0.3))(*problem(rng, 60)).route == "features; compiled, as rows are more than 40"
    assert (choice.threads_for(60**2), choice.threads_for(10**2), choice.threads_for(60**2, 3)) == (2, 1, 3)


def test_an_engine_is_told_and_results_are_equal(rng, travelling):
    y, p = problem(rng, 60)
    here, there = SKCE(Exponential(0.3))(y, p), SKCE(Exponential(0.3))(y, p, engine=travelling)
    assert there.route == "features; tasks of an engine"
    assert here == there


def test_estimates_without_pairs_say_nothing(rng):
    y, p = problem(rng, 60)
    assert ECE()(y, p).route is None
    assert ExactTest(SKCE(), 9)(y, p).estimate.route == "features; plain"


def test_a_loop_is_named_once():
    with choice.accounted() as outer:
        choice.tell(choice.PLAIN)
        with choice.accounted() as inner:
            choice.tell(choice.SORTED)
        choice.tell(choice.PLAIN)
    choice.tell(choice.PLAIN)  # nobody listens
    assert (outer.loops, inner.loops) == ([choice.PLAIN], [choice.SORTED])
