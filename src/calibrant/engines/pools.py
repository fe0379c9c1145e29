"""Pools that are no executors, as engines: those of multiprocessing and Ray, and joblib's ``Parallel``."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

from calibrant._validate import InputError


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
