"""Tasks of engines: how they are sent, how rows are cut into them, and what they carry."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from calibrant._array import is_array, is_recorded, to_numpy
from calibrant._validate import InputError
from calibrant.typing import Array, Engine

PIECES = 32
"""Pieces of the rows that tasks are made of where nobody says how many. The number of workers does not matter."""

MAX_PIECE_ROWS = 1 << 14
"""Rows of a piece at most, so that a task that is lost costs seconds; there are more pieces then."""

UNIT = 128
"""Rows that compiled code takes together."""

Mapping: TypeAlias = Callable[..., Iterator[Any]]
"""The map of an executor: a function, and its arguments one column each."""


def mapping(engine: Engine | None) -> Mapping:
    """The map of an engine, or that of Python without one; what is no engine is refused.

    >>> list(mapping(None)(pow, [2, 3], [2, 2]))
    [4, 9]
    >>> mapping("threads:2")
    Traceback (most recent call last):
    ...
    calibrant._validate.InputError: engine is the text 'threads:2': give engines.connect('threads:2')
    """
    if engine is None:
        return map
    if isinstance(engine, str):
        raise InputError(f"engine is the text {engine!r}: give engines.connect({engine!r})")
    if is_pool(engine) or is_parallel(engine) or is_client(engine):
        raise InputError(
            f"engine is a {type(engine).__name__}, whose map is not that of an executor: give engines.connect(...) of it"
        )
    if not isinstance(engine, Engine) or not callable(engine.map):
        raise InputError(f"engine must have the map of an executor, see engines.connect; got {engine!r}")
    return engine.map


def elsewhere(engine: Engine | None) -> Engine | None:
    """The engine, unless it works here, one task after the other, to show progress: compiled code has threads of its own."""
    return None if getattr(engine, "is_here", False) else engine


def check_plain(x: Array) -> Array:
    """The array, unless gradients are recorded through it: they would be lost between here and a worker."""
    if is_recorded(x):
        raise InputError("gradients are not recorded by engines: leave the engine out, or give it y_pred.detach()")
    return x


def is_pool(engine: object) -> bool:
    """Whether this has the methods of ``multiprocessing.Pool``, whose map takes a single column; executors can submit, too."""
    return callable(getattr(engine, "starmap", None)) and not callable(getattr(engine, "submit", None))


def is_parallel(engine: object) -> bool:
    """Whether this is joblib's ``Parallel``, which nobody can have who has not imported it."""
    return _is_named(engine, "joblib.parallel.Parallel")


def is_client(engine: object) -> bool:
    """Whether this is a client of Dask, whose map gives futures."""
    return _is_named(engine, "distributed.client.Client")


def _is_named(engine: object, name: str) -> bool:
    return any(f"{kind.__module__}.{kind.__qualname__}" == name for kind in type(engine).__mro__)


def sharing(engine: Engine | None) -> Callable[[Any], Any]:
    """How a value comes to be among the tasks of an engine: by reference where it can ``share``, else as it is.

    >>> sharing(None)([1, 2])
    [1, 2]
    """
    share: Callable[[Any], Any] = getattr(engine, "share", lambda value: value)
    return share


def pieces(n: int, unit: int, count: int = PIECES, most: int = MAX_PIECE_ROWS) -> list[slice]:
    """Consecutive slices of whole units of n rows: so many, or more of at most ``most`` rows.

    >>> [(cut.start, cut.stop) for cut in pieces(100, 10, 4)]
    [(0, 30), (30, 60), (60, 90), (90, 100)]
    """
    return cuts(n, unit * max(1, min(-(-n // (count * unit)), most // unit)))


def cuts(n: int, size: int) -> list[slice]:
    """Consecutive slices of at most so many rows, none beyond the end.

    >>> cuts(5, 3)
    [slice(0, 3, None), slice(3, 5, None)]
    """
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def by_pieces(
    work: Callable[..., tuple[Any, ...]], rows: Sequence[np.ndarray], shared: Sequence[Any], engine: Engine | None
) -> tuple[Any, ...]:
    """``work(*rows, *shared)``, arrays with a row each; by an engine from pieces of the rows, with ``threads=1``.

    Pieces are whole blocks of compiled code, so that no digit changes. Arrays that a worker has moved to its GPU come back.

    >>> by_pieces(lambda x, y, **threads: (x + y, x * y), (np.arange(3),), (2,), None)
    (array([2, 3, 4]), array([0, 2, 4]))
    """
    engine = elsewhere(engine)
    if engine is None:
        return work(*rows, *shared)
    some = pieces(len(rows[0]), UNIT)
    there = [sharing(engine)(value) for value in shared]
    columns = [*([array[cut] for cut in some] for array in rows), *([value] * len(some) for value in there)]
    found = mapping(engine)(partial(_on_host, work), *columns)
    return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))


def _on_host(work: Callable[..., Any], *arguments: Any) -> Any:
    return work(*(to_numpy(x) if is_array(x) else x for x in arguments), threads=1)
