"""The choice of the loop over pairs of rows, and what results say of it."""

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import numpy as np
import pytest

from calibrant import ECE, KDE, SKCE, ExactTest, engines
from calibrant._compiled import choice
from calibrant._compiled.choice import accounted, precision_in_force, tell_of_shortening
from calibrant._validate import InputError
from calibrant.engines import precision
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


def test_it_holds_inside_the_block_alone():
    assert precision_in_force() == "float32"
    with engines.precision("tf32x3"):
        assert precision_in_force() == "tf32x3"
        with precision("float64"):
            assert precision_in_force() == "float64"
        assert precision_in_force() == "tf32x3"
    assert precision_in_force() == "float32"


def test_errors_end_it_too():
    with pytest.raises(KeyError), precision("float64"):
        raise KeyError
    assert precision_in_force() == "float32"


def test_other_threads_have_their_own():
    with precision("float64"), ThreadPoolExecutor(1) as pool:
        assert pool.submit(precision_in_force).result() == "float32"
        assert pool.submit(copy_context().run, precision_in_force).result() == "float64"


@pytest.mark.parametrize("name", ["bf16", None, 32])
def test_an_unknown_precision_is_refused(name):
    with (
        pytest.raises(InputError, match=f"precision must be one of 'float32', 'tf32x3', 'float64'; got {name!r}"),
        precision(name),
    ):
        pass


def test_what_is_shortened_is_noted_once_and_by_threads_too():
    with accounted() as account, ThreadPoolExecutor(1) as pool:
        tell_of_shortening()
        pool.submit(copy_context().run, tell_of_shortening).result()
        with precision("tf32x3"):
            tell_of_shortening()
        with precision("float64"):
            tell_of_shortening()
    assert [note[: note.index(" on the GPU")] for note in account.notes] == [
        "pairs of rows were computed in single precision",
        "pairs of rows were computed in the precision tf32x3",
    ]
    tell_of_shortening()  # to nobody
    assert len(account.notes) == 2
