"""Pools that are no executors."""

from multiprocessing.pool import ThreadPool

import pytest

from calibrant._validate import InputError
from calibrant.checks import check_engine
from calibrant.engines import connect
from calibrant.engines.cluster import ParallelEngine, PoolEngine


def test_a_pool_is_ended_with_its_engine():
    pool = ThreadPool(2)
    with connect(pool) as engine:
        assert isinstance(engine, PoolEngine)
        check_engine(engine)
    with pytest.raises(ValueError, match="Pool not running"):
        engine.map(abs, [1])


def test_joblib_with_threads():
    joblib = pytest.importorskip("joblib", reason="joblib comes with scikit-learn, which is not installed")
    with joblib.Parallel(2, backend="threading") as parallel, connect(parallel) as engine:
        assert isinstance(engine, ParallelEngine)
        check_engine(engine)


def test_pools_take_no_settings():
    with ThreadPool(1) as pool, pytest.raises(InputError, match="retries are settings of a Dask engine"):
        connect(pool, retries=3)


def test_columns_of_unequal_length_are_refused():
    with ThreadPool(1) as pool, pytest.raises(ValueError, match="shorter"):
        connect(pool).map(pow, [1, 2], [1])


def test_generators_of_joblib_keep_the_order_or_are_refused():
    joblib = pytest.importorskip("joblib")
    check_engine(connect(joblib.Parallel(n_jobs=2, backend="threading", return_as="generator")))
    with pytest.raises(InputError, match="Parallel gives results in no order: make it without return_as="):
        connect(joblib.Parallel(n_jobs=2, backend="threading", return_as="generator_unordered"))
