"""Engines by their names, and what is said where there is none."""

import socket
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from calibrant import SKCE
from calibrant._validate import InputError
from calibrant.checks import check_engine
from calibrant.engines import connect, connecting


def test_threads_and_processes_are_executors():
    with connect("threads:3") as threads, connect("threads") as some:
        assert isinstance(threads, ThreadPoolExecutor)
        assert threads._max_workers == 3
        check_engine(threads)
        check_engine(some)
    with connect("processes:1") as processes:
        assert isinstance(processes, ProcessPoolExecutor)
        check_engine(processes)


def test_what_has_map_is_an_engine():
    with ThreadPoolExecutor(1) as pool:
        assert connect(pool) is pool


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("theads:4", "engine 'theads:4' is not known; known: threads:8, processes:4, gpus, gpus:2, dask://host:8786"),
        ("threads:no", "threads takes a positive number, such as threads:4"),
        ("processes:0", "processes takes a positive number, such as processes:4"),
        ("dask:host", "engine 'dask:host' is no address: say dask://host:8786"),
        ("dask://host:port", "is no address"),
        ("dask://", "is no address"),
    ],
)
def test_texts_that_name_nothing_are_refused(text, message):
    with pytest.raises(InputError, match=message):
        connect(text)


def test_values_that_are_no_engines_are_refused():
    with pytest.raises(InputError, match="engine must have the map of an executor, or be a text such as threads:8"):
        connect(4)
    with ThreadPoolExecutor(1) as pool, pytest.raises(InputError, match="retries are settings of a Dask engine"):
        connect(pool, retries=1)
    with pytest.raises(InputError, match="are settings of a Dask engine; threads:.* takes none"):
        connect("threads:2", retries=1)


def test_without_dask_the_remedy_is_named(monkeypatch):
    monkeypatch.setattr(connecting, "find_spec", lambda name: None)
    with pytest.raises(
        InputError, match=r"needs Dask: pip install 'calibrant\[dask\]'; without it there are threads:8"
    ):
        connect("dask://localhost:8786")


def test_nobody_at_an_address_is_told_within_seconds():
    pytest.importorskip("distributed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    start = time.monotonic()
    with pytest.raises(
        InputError, match=f"no Dask scheduler answers at tcp://127.0.0.1:{port} within 0.5 s: start one"
    ):
        connect(f"dask://127.0.0.1:{port}", timeout=0.5)
    assert time.monotonic() - start < 5


def test_a_name_that_no_machine_has_is_told_too():
    pytest.importorskip("distributed")
    with pytest.raises(InputError, match=r"no Dask scheduler answers at tcp://nowhere\.invalid:8786"):
        connect("dask://nowhere.invalid", timeout=0.5)


@contextmanager
def without_calibrant(engine, workers):
    """As if it were not installed there."""

    def hide():
        for name in [name for name in sys.modules if name.split(".")[0] == "calibrant"]:
            sys.modules.pop(name)
        sys.modules["calibrant"] = None

    def show():
        sys.modules.pop("calibrant")

    engine.client.run(hide, workers=workers)
    try:
        yield
    finally:
        engine.client.run(show, workers=workers)


def test_a_worker_without_calibrant_is_named(engine, address):
    worker = next(iter(engine.client.nthreads()))
    with (
        without_calibrant(engine, [worker]),
        pytest.raises(InputError, match=f"worker {worker} has no calibrant: pip install calibrant=="),
    ):
        connect(address)
    connect(address).close()


def test_errors_of_tasks_are_those_of_the_task(engine):
    with pytest.raises(ZeroDivisionError, match="by zero"):
        list(engine.map(divmod, [1, 2], [1, 0]))


def test_a_worker_with_another_calibrant_is_named(engine, address):
    worker = next(iter(engine.client.nthreads()))

    def become(version):
        import calibrant

        before, calibrant.__version__ = calibrant.__version__, version
        return before

    before = engine.client.run(become, "0.0.9", workers=[worker])[worker]
    try:
        with pytest.raises(InputError, match=f"worker {worker} has calibrant 0.0.9, and {before} is here: install"):
            connect(engine.client)
    finally:
        engine.client.run(become, before, workers=[worker])


def test_a_cluster_without_workers_says_how_to_start_one():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0", protocol="tcp", silence_logs=50) as empty,
        pytest.raises(InputError, match="has no workers: start some, dask worker tcp://"),
    ):
        connect(empty.scheduler_address.replace("tcp", "dask"), patience=0.1)


def test_a_client_as_it_is_is_no_engine(engine):
    """Its map gives futures."""
    with pytest.raises(
        InputError, match=r"engine is a Client, whose map is not that of an executor: give engines.connect"
    ):
        SKCE()([0, 1, 2], [[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.1, 0.3, 0.6]], engine=engine.client)


def test_settings_that_are_refused_leave_no_client_behind(address, monkeypatch):
    distributed = pytest.importorskip("distributed")
    made, client = [], distributed.Client
    monkeypatch.setattr(distributed, "Client", lambda *where, **how: made.append(client(*where, **how)) or made[-1])
    with pytest.raises(InputError, match="retries must be a whole number of at least 0; got -1"):
        connect(address, retries=-1)
    assert [one.status for one in made] == ["closed"]
