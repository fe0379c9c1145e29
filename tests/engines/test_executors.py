"""Whatever the executor, the digits are the same."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.pool import ThreadPool

import numpy as np
import pytest

from calibrant import (
    ECE,
    KDE,
    SKCE,
    AggregatedTest,
    Bootstrap,
    Brier,
    Categorical,
    ExactTest,
    Normal,
    TopLabel,
    Variational,
    evaluate,
)
from calibrant.checks import check_engine
from calibrant.engines import DevicePool, connect
from calibrant.inference import BlockTest, GammaTest, Jackknife, WildBootstrapTest
from calibrant.kernels import Exponential

MISSING = "is not installed: the executors that were tried are in docs/guide/clusters.md"


def data():
    rng = np.random.default_rng(3)
    predictions = Categorical(rng.dirichlet(np.ones(3), 2100))
    return predictions.sample(rng, 1)[0].astype(np.int64), predictions.matrix


def answers(engine):
    """Numbers of everything that takes an engine."""
    y, p = data()
    mu = np.linspace(-1, 1, 200)
    some, few = (y[:800], p[:800]), (y[:150], p[:150])
    estimates = [
        SKCE()(y, p, engine=engine),
        SKCE()(mu + np.sin(40 * mu), Normal(mu, 1.0), engine=engine),
        SKCE(Exponential(0.3, power=1.5))(*some, engine=engine),
        SKCE(block=30)(*some, engine=engine),
        SKCE(block=2050)(y, p, engine=engine),
        KDE(bandwidth=0.1)(y, p, engine=engine),
        Variational()(*some, engine=engine),
        Bootstrap(Brier(), 99)(*some, engine=engine),
        Jackknife(Brier())(*few, engine=engine),
    ]
    tests = [
        ExactTest(ECE(lens=TopLabel()), 99)(*some, engine=engine),
        AggregatedTest(n_resamples=49)(*few, engine=engine),
        BlockTest()(*some, engine=engine),
        WildBootstrapTest(n_resamples=49)(*few, engine=engine),
        GammaTest()(*few, engine=engine),
    ]
    found = [x for e in estimates for x in (e.value, e.standard_error or 0.0, *(e.interval or ())) if np.isfinite(x)]
    found += [x for test in tests for x in (test.statistic, test.pvalue)]
    return found + [number.value for number in evaluate(*few, n_resamples=99, engine=engine).numbers]


class Strict:
    """The map of Python, for sequences alone."""

    def map(self, fn, *tasks):
        assert all(isinstance(column, list | tuple | range) for column in tasks)
        return map(fn, *tasks)


@pytest.fixture(scope="module")
def alone():
    return answers(Strict())


@contextmanager
def reusable(module, library):
    pool = pytest.importorskip(module, reason=f"{library} {MISSING}").get_reusable_executor(max_workers=2)
    try:
        yield pool
    finally:
        pool.shutdown()


@contextmanager
def parallel():
    with pytest.importorskip("joblib", reason=f"joblib {MISSING}").Parallel(2) as some:
        yield some


@contextmanager
def mpi():
    with pytest.importorskip("mpi4py.futures", reason=f"mpi4py {MISSING}").MPIPoolExecutor(max_workers=2) as pool:
        yield pool


@contextmanager
def ray():
    ray = pytest.importorskip("ray", reason=f"Ray {MISSING}")
    ray.init(num_cpus=2, include_dashboard=False, configure_logging=False)
    try:
        with pytest.importorskip("ray.util.multiprocessing").Pool(2) as pool:
            yield pool
    finally:
        ray.shutdown()


def devices():
    pytest.importorskip("torch", reason=f"torch {MISSING}")
    return DevicePool(["cpu", "cpu"])


EXECUTORS = {
    "threads": lambda: ThreadPoolExecutor(2),
    "threads of a pool": lambda: ThreadPool(2),
    "processes": lambda: connect("processes:2"),
    "processes of a pool": lambda: get_context("spawn").Pool(2),
    "joblib's loky": lambda: reusable("joblib.externals.loky", "joblib"),
    "joblib's Parallel": parallel,
    "loky": lambda: reusable("loky", "loky"),
    "devices": devices,
    "mpi4py": mpi,
    "Ray's pool": ray,
}


@pytest.mark.parametrize("name", EXECUTORS)
def test_digits(name, alone):
    with EXECUTORS[name]() as pool:
        engine = connect(pool)
        check_engine(engine)
        assert answers(engine) == pytest.approx(alone, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("name", ["threads", "processes"])
@pytest.mark.parametrize("estimator", [SKCE(Exponential(0.3)), KDE(bandwidth=0.1)], ids=["pairs", "averages"])
def test_compiled_sums_have_the_same_digits_to_the_last(name, estimator):
    alone = estimator(*data())
    with EXECUTORS[name]() as pool:
        there = estimator(*data(), engine=connect(pool))
    assert (there.value, there.standard_error) == (alone.value, alone.standard_error)


def test_digits_of_a_cluster(engine, alone):
    assert answers(engine) == pytest.approx(alone, rel=1e-12, abs=1e-15)


def test_digits_of_the_executor_of_a_cluster(engine, alone):
    with engine.client.get_executor(pure=False) as pool:
        check_engine(connect(pool))
        assert answers(pool) == pytest.approx(alone, rel=1e-12, abs=1e-15)


def test_no_engine_has_the_same_digits(alone):
    assert answers(None) == pytest.approx(alone, rel=1e-12, abs=1e-15)
