"""A Dask cluster gives the digits of this process, whatever happens to its workers."""

import os
import pickle
import signal
import socket
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

from calibrant import ECE, KCE, SKCE, Categorical, ExactTest, Normal, TopLabel
from calibrant._tasks import MAX_PIECE_ROWS
from calibrant._validate import InputError
from calibrant.checks import check_engine
from calibrant.engines import DaskEngine, connect, precision
from calibrant.engines import cluster as home
from calibrant.engines.cluster import MAX_BYTES_PER_TASK, SENDINGS, Shared, _size
from calibrant.engines.devices import PANEL
from calibrant.kernels import Exponential


@pytest.fixture
def classes(rng):
    predictions = Categorical(rng.dirichlet(np.ones(4), 1500))
    return predictions.sample(rng, 1)[0].astype(np.int64), predictions


def assert_same(there, alone):
    """But for the last digit, which BLAS may round otherwise where it has fewer threads."""
    assert abs(there.value - alone.value) < 1e-15
    assert (there.standard_error or 0.0) == pytest.approx(alone.standard_error or 0.0, rel=1e-13)


def test_it_is_an_engine(engine):
    check_engine(engine)


@pytest.mark.parametrize(
    "estimator", [SKCE(), SKCE(unbiased=False), KCE(), SKCE(block=10), ECE(lens=TopLabel())], ids=repr
)
def test_the_digits_are_those_of_this_process(estimator, classes, engine):
    alone, there = estimator(*classes), estimator(*classes, engine=engine)
    assert_same(there, alone)


@pytest.mark.parametrize("kind", ["classes", "weights", "numbers"])
def test_compiled_sums_over_pairs_have_the_digits_of_this_process(kind, rng, engine):
    if kind == "numbers":
        predictions = Normal(rng.normal(size=2500), rng.uniform(0.5, 2, 2500))
        y_true = predictions.sample(rng, 1)[0]
    else:
        predictions = Categorical(rng.dirichlet(np.ones(4), 2500))
        y_true = predictions.sample(rng, 1)[0].astype(np.int64)
    weights = {"sample_weight": rng.uniform(0.5, 2, 2500)} if kind == "weights" else {}
    alone, there = SKCE()(y_true, predictions, **weights), SKCE()(y_true, predictions, engine=engine, **weights)
    assert (there.value, there.standard_error) == (alone.value, alone.standard_error)


def test_resamples_are_those_of_this_process(rng, engine):
    y_pred = rng.random(3000)
    y_true = (rng.random(3000) < y_pred) * 1
    test = ExactTest(ECE(), n_resamples=3000)
    assert (
        test(y_true, y_pred, engine=engine).null_distribution.tolist()
        == test(y_true, y_pred).null_distribution.tolist()
    )


def test_large_values_travel_once_and_tasks_are_small(engine, monkeypatch):
    sizes, submit = [], engine.client.submit

    def weigh(fn, *arguments, **options):
        sizes.append(len(pickle.dumps((fn, [getattr(x, "key", x) for x in arguments]))))
        return submit(fn, *arguments, **options)

    monkeypatch.setattr(engine.client, "submit", weigh)
    rows = np.random.default_rng(0).normal(size=(MAX_BYTES_PER_TASK // 8, 2))
    assert list(engine.map(np.dot, [rows, rows.T], [rows.T[:, :1], rows[:, :1]]))[1].shape == (2, 1)
    assert len(sizes) == 2
    assert max(sizes) < 2000


def test_a_value_that_is_shared_does_not_travel_by_itself(engine):
    shared = engine.share(np.arange(3))
    with pytest.raises(TypeError, match="travels as its reference"):
        pickle.dumps(shared)


def test_values_that_all_workers_lost_are_sent_again(engine):
    shared = engine.share(np.arange(4.0))
    lost = shared.reference.key
    engine.client.cancel([shared.reference], force=True)
    assert list(engine.map(np.sum, [shared, shared])) == [6.0, 6.0]
    assert shared.reference.key != lost


@pytest.mark.parametrize("power", [1.5, 1.0], ids=["tiles", "compiled"])
def test_two_of_four_workers_killed_amid_the_work_change_nothing(rng, engine, power):
    predictions = Categorical(rng.dirichlet(np.ones(4), 4000))
    y_true = predictions.sample(rng, 1)[0].astype(np.int64)
    skce = SKCE(Exponential(0.3, power=power))  # the first is not compiled
    alone = skce(y_true, predictions)
    victims = list(engine.client.run(os.getpid).values())[:2]
    done = []

    class Watched(DaskEngine):
        def _result(self, send, future):
            if len(done) == 3:
                for pid in victims:
                    os.kill(pid, signal.SIGKILL)
            done.append(future.key)
            return super()._result(send, future)

    there = skce(y_true, predictions, engine=Watched(engine.client))
    assert len(done) == 36, "pairs of 8 panels"
    assert_same(there, alone)
    assert power != 1 or (there.value, there.standard_error) == (alone.value, alone.standard_error)
    assert set(victims).isdisjoint(engine.client.run(os.getpid).values())


class Client:
    """What a client says whose cluster is in trouble."""

    status = "running"
    asynchronous = False

    def __init__(self, *results, workers=1):
        self.results, self.workers = list(results), workers

    def nthreads(self):
        return {f"tcp://worker:{i}": 1 for i in range(self.workers)}

    def submit(self, *arguments, **options):
        return self

    def result(self, timeout):
        found = self.results.pop(0) if self.results else TimeoutError()
        if isinstance(found, Exception):
            raise found
        return found

    def done(self):
        return False


def test_a_cluster_whose_workers_are_all_gone_is_not_waited_for_forever():
    with pytest.raises(InputError, match="has had no workers for 0 s: start some, dask worker"):
        list(DaskEngine(Client(workers=0), patience=0.01).map(abs, [1, 2]))


def test_a_task_that_is_lost_again_and_again_ends_with_words():
    client = Client(*[OSError("gone")] * 3, 7)
    with pytest.raises(InputError, match="lost a task 3 times: look at the logs"):
        list(DaskEngine(client, retries=2).map(abs, [1]))
    assert list(DaskEngine(Client(*[OSError("gone")] * 2, 7), retries=2).map(abs, [1])) == [7]


def test_a_task_that_ends_every_worker_says_what_to_do():
    scheduler = pytest.importorskip("distributed.scheduler")
    worker = type("Worker", (), {"address": "tcp://10.0.0.7:1", "__str__": lambda self: self.address})()
    killed = scheduler.KilledWorker("task", worker, 3)
    with pytest.raises(InputError, match="needs more memory.*--memory-limit.*fewer rows"):
        list(DaskEngine(Client(killed)).map(abs, [1]))


def test_a_scheduler_that_goes_away_amid_the_work_is_named():
    pytest.importorskip("distributed")
    client = Client(OSError("closed"))

    class Gone(Client):
        def result(self, timeout):
            self.status = "closed"
            return super().result(timeout)

    client.__class__ = Gone
    with pytest.raises(InputError, match="is gone: start it again"):
        list(DaskEngine(client).map(abs, [1]))


def test_settings_are_checked():
    with pytest.raises(InputError, match="retries must be"):
        DaskEngine(Client(), retries=-1)
    with pytest.raises(InputError, match="patience must be a positive number of seconds; got 0"):
        DaskEngine(Client(), patience=0)
    busy = Client()
    busy.asynchronous = True
    with pytest.raises(InputError, match="client is asynchronous"):
        DaskEngine(busy)


def test_sending_is_tried_again_where_a_worker_goes_away(engine, monkeypatch):
    scatter, calls = engine.client.scatter, []

    def fails_once(*arguments, **options):
        calls.append(1)
        if len(calls) == 1:
            raise OSError("the worker went away")
        return scatter(*arguments, **options)

    monkeypatch.setattr(engine.client, "scatter", fails_once)
    shared = Shared(engine.client, 5)
    assert list(engine.map(abs, [shared])) == [5]
    assert len(calls) == 2


def test_connections_of_others_stay_open(cluster):
    from distributed import Client as DaskClient

    with DaskClient(cluster, set_as_default=False) as client:
        with connect(client) as engine:
            assert list(engine.map(abs, [-1])) == [1]
        assert client.status == "running"


def test_a_closed_connection_is_refused(address):
    with connect(address) as engine:
        pass
    with pytest.raises(InputError, match="is gone"):
        engine.map(abs, [1])


def test_workers_with_gpus_get_larger_panels():
    client = SimpleNamespace(status="running")
    assert DaskEngine(client).panel == MAX_PIECE_ROWS
    assert DaskEngine(client, gpu=True).panel == PANEL > MAX_PIECE_ROWS


def test_the_precision_of_the_caller_travels_to_workers_with_gpus(address, monkeypatch):
    sent = []
    with connect(address, gpu=True) as engine:
        monkeypatch.setattr(DaskEngine, "_light", lambda self, value: sent.append(value) or value)
        with precision("float64"):
            assert list(engine.map(abs, [-1])) == [1]
    assert sent[0].keywords == {"within": "float64"}


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
    monkeypatch.setattr(home, "find_spec", lambda name: None)
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


class Losing:
    """A client whose workers go away while they are sent something."""

    def __init__(self, times):
        self.times, self.asked, self.status = times, 0, "running"

    def scatter(self, values, hash):
        self.asked += 1
        if self.asked <= self.times:
            raise OSError("the worker is gone")
        return values

    def nthreads(self):
        raise OSError("the scheduler is gone")


@pytest.mark.parametrize("times", [0, 1, SENDINGS - 1])
def test_a_value_is_sent_until_a_worker_has_it(times):
    client = Losing(times)
    assert Shared(client, "value").reference == "value"
    assert client.asked == times + 1


def test_a_function_without_a_name_has_a_size():
    assert _size(lambda: None) > 100
    assert _size("text") == 0
