"""Engines by their names, and pools that are no executors as engines."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing import get_context
from typing import Any, Self

from calibrant._tasks import is_client, is_parallel, is_pool
from calibrant._validate import InputError
from calibrant.engines.cluster import DaskEngine
from calibrant.engines.devices import DevicePool
from calibrant.typing import Engine


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
