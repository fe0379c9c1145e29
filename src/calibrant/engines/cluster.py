"""A Dask cluster as an engine: values sent once, results in order, work of dead workers done again; engines by name."""

import pickle
import platform
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context
from typing import Any, Self, TypeAlias

import numpy as np

import calibrant
from calibrant._compiled.choice import precision_in_force, tell_of_shortening
from calibrant._tasks import MAX_PIECE_ROWS, is_client, is_parallel, is_pool
from calibrant._validate import InputError, check_count
from calibrant.engines.devices import PANEL, DevicePool, on_gpu
from calibrant.typing import Engine

Versions = dict[str, str | None]
"""What is installed, by name; ``None`` where it is not."""


def versions_here() -> Versions:
    """What this process has.

    >>> sorted(versions_here())
    ['NumPy', 'Python', 'calibrant']
    """
    return {"Python": platform.python_version(), "calibrant": calibrant.__version__, "NumPy": np.__version__}


def asking() -> Callable[[], Versions]:
    """A function that says what its process has, also where calibrant is not installed.

    A function inside a function travels as code. One of this module would travel as its name, and could not be found there.
    """

    def installed() -> Versions:
        import importlib
        import platform

        found: Versions = {"Python": platform.python_version()}
        for name, module in (("calibrant", "calibrant"), ("NumPy", "numpy")):
            try:
                found[name] = importlib.import_module(module).__version__
            except ImportError:
                found[name] = None
        return found

    return installed


@contextmanager
def explained(client: Any, *known: type[Exception]) -> Iterator[None]:
    """Errors of work on a cluster, of which a worker that came later and lacks what it needs is the likeliest cause.

    Errors in words of our own, of connections, and those that are ``known`` are handed on.
    """
    try:
        yield
    except Exception as error:
        if not isinstance(error, (InputError, OSError, CancelledError, *known)):
            check_versions(client.run(asking()))
        raise


def check_versions(workers: Mapping[str, Any]) -> None:
    """Refuse workers without calibrant, of another version of it, or of another minor version of Python or NumPy.

    >>> check_versions({"tcp://10.0.0.7:4000": {**versions_here(), "calibrant": None}})
    Traceback (most recent call last):
    ...
    calibrant._validate.InputError: worker tcp://10.0.0.7:4000 has no calibrant: pip install calibrant==... there, ...
    """
    here = versions_here()
    for address, found in workers.items():
        for name, mine in here.items():
            there = found.get(name)
            if there is None:
                remedy = f"pip install {name.lower()}=={mine} there, and start it again"
                raise InputError(f"worker {address} has no {name}: {remedy}{_others(workers, name, None)}")
            if not _agree(name, str(mine), there):
                raise InputError(
                    f"worker {address} has {name} {there}, and {mine} is here: install the same on both"
                    f"{_others(workers, name, there)}"
                )


def _agree(name: str, mine: str, there: str) -> bool:
    """The same, or of Python and NumPy the same but for the last number."""
    return mine == there if name == "calibrant" else mine.split(".")[:2] == there.split(".")[:2]


def _others(workers: Mapping[str, Any], name: str, there: str | None) -> str:
    """How many other workers are alike."""
    count = sum(found.get(name) == there for found in workers.values()) - 1
    return f" (and {count:,} more)" if count else ""


MAX_BYTES_PER_TASK = 1 << 16
"""Bytes of a function or an argument beyond which it is sent to the workers once, rather than with every task."""

SENDINGS = 5
"""Times that a value is sent before giving up."""

LOOK = 2.0
"""Seconds after which a result that has not come makes us look whether there are workers."""


Send: TypeAlias = Callable[[bool], Any]
"""Sends a task to the cluster and gives its future; ``True`` where it was lost before."""


class Shared:
    """A value that workers hold, and that is sent again where they lost it."""

    def __init__(self, client: Any, value: Any) -> None:
        self.client, self.value = client, value
        self.reference = self.sent()

    def sent(self) -> Any:
        """A fresh reference. One worker gets the value, and others get it from each other once they need it.

        Dask's broadcast, which hands it to all at once, never ends where a worker dies during it.
        """
        with explained(self.client):
            for _ in range(SENDINGS - 1):
                with suppress(OSError, TimeoutError):  # the worker that was to have it went away
                    return self.client.scatter([self.value], hash=False)[0]
            return self.client.scatter([self.value], hash=False)[0]

    def renewed(self) -> None:
        """Send the value again if no worker has it any more."""
        if self.reference.status in ("lost", "cancelled") or not any(self.client.who_has([self.reference]).values()):
            self.reference = self.sent()

    def __reduce__(self) -> Any:
        raise TypeError("a shared value travels as its reference: give it to map as an argument of its own")


@dataclass(frozen=True, eq=False)
class DaskEngine:
    """The workers of a Dask cluster, through a ``distributed.Client``.

    :meth:`share` sends a value to the cluster once, and tasks carry references of some hundred bytes. Results come in the order
    of the tasks. What a worker that dies was doing is done by others; shared values that die with the last worker that held them
    are sent again, ``retries`` times. ``gpu=True`` moves shared arrays to the GPU of each worker that has one, and computes there.
    All workers must have the same calibrant, and the same minor versions of Python and NumPy; this is looked up once.

    :func:`calibrant.engines.connect` makes it. A client that it made is closed at the end of a ``with`` block.

    >>> from distributed import Client
    >>> from calibrant import SKCE
    >>> from calibrant.engines import connect
    >>> with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
    ...     estimate = SKCE()([0, 1, 2], [[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.1, 0.3, 0.6]], engine=connect(client))
    >>> round(estimate.value, 4)
    -0.061
    """

    client: Any
    retries: int = 5
    patience: float = 30.0
    gpu: bool = False
    is_owner: bool = False

    def __post_init__(self) -> None:
        check_count(self.retries, "retries", least=0)
        if not self.patience > 0:
            raise InputError(f"patience must be a positive number of seconds; got {self.patience!r}")
        if getattr(self.client, "asynchronous", False):
            raise InputError("client is asynchronous: give one that waits, Client(address)")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def panel(self) -> int:
        """The most rows of a panel."""
        return PANEL if self.gpu else MAX_PIECE_ROWS

    @property
    def address(self) -> str:
        """Where the scheduler is."""
        scheduler = getattr(self.client, "scheduler", None)
        return getattr(scheduler, "address", "that was connected to")

    def check(self) -> Self:
        """This engine, once there are workers and all have the versions of this process."""
        if not self._workers(min(self.patience, 5.0)):
            raise InputError(f"the cluster {self.address} has no workers: start some, dask worker {self.address}")
        check_versions(self.client.run(asking()))
        return self

    def close(self) -> None:
        """Leave the cluster, if the client was made here."""
        if self.is_owner:
            self.client.close()

    def share(self, value: Any) -> Shared:
        """Send a value to the cluster; what is given back stands for it among the tasks of :meth:`map`."""
        self._check_running()
        return Shared(self.client, value)

    def map(self, fn: Callable[..., Any], /, *tasks: Any) -> Iterator[Any]:
        """Apply ``fn`` to each task; all are sent at once, and results come in the order of the tasks."""
        self._check_running()
        if self.gpu:
            tell_of_shortening()
        work = partial(on_gpu, fn, within=precision_in_force()) if self.gpu else fn
        light = self._light(work)
        jobs = [(light, *map(self._light, arguments)) for arguments in zip(*tasks, strict=True)]
        return self._sent([partial(self._submit, job) for job in jobs])

    def compute(self, delayed: Sequence[Any]) -> Iterator[Any]:
        """What delayed values of Dask come to, in their order; workers compute them and what they need."""
        self._check_running()
        return self._sent([partial(self._compute, one) for one in delayed])

    def _light(self, value: Any) -> Any:
        """The value, or where it is large one that is sent once."""
        if isinstance(value, Shared) or _size(value) <= MAX_BYTES_PER_TASK:
            return value
        return self.share(value)

    def _submit(self, job: tuple[Any, ...], again: bool) -> Any:
        shared = [part for part in job if isinstance(part, Shared)]
        for part in shared if again else ():
            part.renewed()
        arguments = [part.reference if isinstance(part, Shared) else part for part in job]
        return self.client.submit(_applied, *arguments, pure=False)

    def _compute(self, delayed: Any, again: bool) -> Any:
        return self.client.compute(delayed)

    def _sent(self, sending: list[Send]) -> Iterator[Any]:
        return self._results(sending, [send(False) for send in sending])

    def _results(self, sending: list[Send], futures: list[Any]) -> Iterator[Any]:
        futures.reverse()  # so that each is let go once its result is here
        for send in sending:
            yield self._result(send, futures.pop())

    def _result(self, send: Send, future: Any) -> Any:
        """The result of one task, sent again where it or what it needs was lost."""
        from distributed.scheduler import KilledWorker

        for _ in range(self.retries + 1):
            try:
                with explained(self.client, KilledWorker):
                    return self._waited(future)
            except KilledWorker as error:
                raise InputError(
                    f"a task of the cluster {self.address} ended with every worker that tried it, the last at "
                    f"{error.last_worker}: most likely it needs more memory than workers may have; "
                    "give them more (--memory-limit), or take fewer rows at a time"
                ) from error
            except (CancelledError, OSError) as error:
                self._check_running(error)
                future = send(True)
        raise InputError(
            f"the cluster {self.address} lost a task {self.retries + 1} times: look at the logs of its workers"
        )

    def _waited(self, future: Any) -> Any:
        """The result, unless all workers have been gone for a while."""
        last = time.monotonic()
        while True:
            try:
                return future.result(timeout=LOOK)
            except TimeoutError:
                if future.done():
                    raise
            if self._workers(0.0):
                last = time.monotonic()
            elif time.monotonic() - last > self.patience:
                raise InputError(
                    f"the cluster {self.address} has had no workers for {self.patience:.0f} s: start some, "
                    f"dask worker {self.address}"
                )

    def _workers(self, seconds: float) -> int:
        """How many workers there are, once there are any or after so many seconds."""
        end = time.monotonic() + seconds
        while True:
            try:
                count = len(self.client.nthreads())
            except (CancelledError, OSError, TimeoutError) as error:
                self._check_running(error)
                raise self._gone() from error
            if count or time.monotonic() > end:
                return count
            time.sleep(0.05)

    def _check_running(self, error: BaseException | None = None) -> None:
        if self.client.status != "running":
            raise self._gone() from error

    def _gone(self) -> InputError:
        return InputError(
            f"the cluster {self.address} is gone: start it again (dask scheduler), and connect to it anew"
        )


def _applied(fn: Callable[..., Any], *arguments: Any) -> Any:
    """What a worker does: references have become values by then."""
    return fn(*arguments)


def _size(value: Any) -> int:
    """Bytes on the wire."""
    if value is None or isinstance(value, int | float | str):
        return 0
    try:
        return len(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))
    except (pickle.PicklingError, AttributeError, TypeError):
        from distributed.protocol.pickle import dumps  # which takes functions without a name, too

        return len(dumps(value))


@dataclass(frozen=True, eq=False)
class PoolEngine:
    """A ``multiprocessing.Pool`` or one like it, such as Ray's, through its ``starmap``, a task at a time.

    :func:`calibrant.engines.connect` makes it. At the end of a ``with`` block the pool is ended, as by its own.

    >>> from multiprocessing.pool import ThreadPool
    >>> with PoolEngine(ThreadPool(2)) as engine:
    ...     list(engine.map(pow, [2, 3], [2, 2]))
    [4, 9]
    """

    pool: Any

    def map(self, fn: Callable[..., Any], /, *tasks: Any) -> Iterator[Any]:
        """Apply ``fn`` to each task; results come in the order of the tasks, once all are there."""
        return iter(self.pool.starmap(fn, list(zip(*tasks, strict=True)), 1))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.pool.terminate()


@dataclass(frozen=True, eq=False)
class ParallelEngine:
    """Joblib's ``Parallel``, with whatever backend it has: loky, threads, Dask, Ray, Spark.

    :func:`calibrant.engines.connect` makes it. Workers stay between calls where ``Parallel`` is in a ``with`` block of its own.
    """

    parallel: Any

    def __post_init__(self) -> None:
        if not getattr(self.parallel, "return_ordered", True):
            raise InputError("Parallel gives results in no order: make it without return_as='generator_unordered'")

    def map(self, fn: Callable[..., Any], /, *tasks: Any) -> Iterator[Any]:
        """Apply ``fn`` to each task; results come in the order of the tasks, once all are there."""
        return iter(list(self.parallel([(fn, task, {}) for task in zip(*tasks, strict=True)])))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Joblib ends its workers by itself."""


PORT = 8786
"""Where Dask's scheduler listens unless told otherwise."""

KNOWN = "threads:8, processes:4, gpus, gpus:2, dask://host:8786"


def connect(engine: Any, *, timeout: float = 5.0, **settings: Any) -> Any:
    """The engine of a text, of a Dask client, or of anything that is one already.

    ``"threads:8"`` and ``"processes:4"`` are executors of the standard library (without a number, as many as there are cores);
    ``"gpus"`` and ``"gpus:2"`` are a :class:`DevicePool` of all GPUs of this machine, or of the first two;
    ``"dask://host:8786"`` and a ``distributed.Client`` are a :class:`DaskEngine`, ``settings`` its settings. The scheduler must
    answer within ``timeout`` seconds. Whatever has the ``map`` of an executor (loky, mpi4py, ``client.get_executor()``) is given
    back as it is. Pools of multiprocessing and Ray, and joblib's ``Parallel``, become engines. All are closed by ``with``.

    >>> from calibrant import SKCE
    >>> with connect("threads:2") as engine:
    ...     estimate = SKCE()([0, 1, 2], [[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.1, 0.3, 0.6]], engine=engine)
    >>> round(estimate.value, 4)
    -0.061
    """
    if isinstance(engine, str):
        return _named(engine, timeout, settings)
    if is_client(engine):
        return DaskEngine(engine, **settings).check()
    if settings:
        raise _without_settings(settings, type(engine).__name__)
    if is_pool(engine):
        return PoolEngine(engine)
    if is_parallel(engine):
        return ParallelEngine(engine)
    if not isinstance(engine, Engine):
        raise InputError(f"engine must have the map of an executor, or be a text such as {KNOWN}; got {engine!r}")
    return engine


def _named(text: str, timeout: float, settings: dict[str, Any]) -> Any:
    kind, _, rest = text.partition(":")
    if kind == "dask":
        return _dask(text, timeout, settings)
    pools: dict[str, Callable[[int | None], Any]] = {
        "threads": ThreadPoolExecutor,
        "processes": _processes,
        "gpus": _gpus,
    }
    if kind not in pools:
        raise InputError(f"engine {text!r} is not known; known: {KNOWN}")
    if settings:
        raise _without_settings(settings, text)
    if rest and not (rest.isdecimal() and int(rest)):
        raise InputError(f"engine {text!r}: {kind} takes a positive number, such as {kind}:4")
    return pools[kind](int(rest) if rest else None)


def _without_settings(settings: dict[str, Any], name: str) -> InputError:
    return InputError(f"{', '.join(settings)} are settings of a Dask engine; {name} takes none")


def _processes(count: int | None) -> ProcessPoolExecutor:
    """Fresh processes: copies of one that has threads, as compiled code does, may hang."""
    return ProcessPoolExecutor(count, get_context("spawn"))


def _gpus(count: int | None) -> DevicePool:
    return DevicePool(None if count is None else [f"cuda:{number}" for number in range(count)])


def _dask(text: str, timeout: float, settings: dict[str, Any]) -> DaskEngine:
    found = re.fullmatch(r"dask://([^/:\s]+|\[[0-9a-fA-F:]+\])(?::(\d+))?/?", text)
    if found is None:
        raise InputError(
            f"engine {text!r} is no address: say dask://host:{PORT}, as dask scheduler does when it starts"
        )
    if find_spec("distributed") is None:
        raise InputError(
            f"engine {text!r} needs Dask: pip install 'calibrant[dask]'; without it there are threads:8, processes:4"
        )
    from distributed import Client

    address = f"tcp://{found[1]}:{found[2] or PORT}"
    try:
        client: Any = Client(address, timeout=timeout, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(
            f"no Dask scheduler answers at {address} within {timeout:g} s: start one there (dask scheduler), "
            "and see that its address and port are right and no firewall is in between"
        ) from error
    try:
        return DaskEngine(client, is_owner=True, **settings).check()
    except BaseException:
        client.close()
        raise
