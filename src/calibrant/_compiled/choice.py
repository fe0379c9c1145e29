"""Which loop goes over the pairs of rows, plain or compiled, in which precision, and what results say of it.

Compiled code is loaded for more than :data:`MAX_PLAIN_ROWS` rows of NumPy arrays, and of tensors on a GPU; everything else
is computed by plain array operations, tile by tile.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from calibrant._array import on_gpu
from calibrant._validate import InputError, of_what
from calibrant.typing import Array

MAX_PLAIN_ROWS = 2000
"""Up to so many rows plain tiles take a fraction of a second, less than it takes to load compiled code."""

MAX_ROWS_OF_ONE_THREAD = 3000
"""Pairs of fewer rows are done before threads are started."""

PLAIN = "plain"
NOT_COMPILED = "plain, as nothing is compiled for these kernels and arrays"
SORTED = "running sums over sorted points"
ON_GPU = "compiled, GPU"
BY_ENGINE = "tasks of an engine"

_account: ContextVar["Account | None"] = ContextVar("account", default=None)


def is_long(n: int, most: int | None = None) -> bool:
    """Whether n rows are worth loading compiled code, or more than ``most``.

    >>> is_long(2000), is_long(2001), is_long(2001, most=5000)
    (False, True, False)
    """
    return n > (MAX_PLAIN_ROWS if most is None else most)


def library_of(*arrays: Array) -> Any:
    """The module of compiled code for where the arrays are; ``None`` where there is none.

    >>> library_of(np.ones(2), np.ones(3)).__name__, library_of([1.0])
    ('calibrant._compiled.cpu', None)
    """
    if on_gpu(*arrays):
        return import_module("calibrant._compiled.cuda")
    return import_module("calibrant._compiled.cpu") if all(isinstance(x, np.ndarray) for x in arrays) else None


def has_triton() -> bool:
    """Whether code for a GPU can be compiled."""
    return find_spec("triton") is not None


def threads_for(pairs: int, threads: int | None = None) -> int:
    """The threads that share so many pairs on the CPU: those asked for, one where that is quick, else all that numba may use.

    >>> threads_for(100), threads_for(10**9, 3)
    (1, 3)
    """
    if threads is not None:
        return threads
    if pairs < MAX_ROWS_OF_ONE_THREAD**2:
        return 1
    import numba

    return int(vars(numba.config)["NUMBA_NUM_THREADS"])


def compiled_loop(coords: Array) -> str:
    """The compiled loop over all pairs of rows of these coordinates, in words.

    >>> compiled_loop(np.ones((2500, 1)))
    'compiled, as rows are more than 2,000'
    """
    if not isinstance(coords, np.ndarray):
        return ON_GPU
    return f"compiled, as rows are more than {MAX_PLAIN_ROWS:,}"


@dataclass(frozen=True)
class Account:
    """What results say of how they were computed: the loops that were taken, and notes, each once."""

    loops: list[str]
    notes: list[str]


@contextmanager
def accounted() -> Iterator[Account]:
    """The account of all that is computed inside the block, also by threads that carry its context.

    >>> with accounted() as account:
    ...     tell(PLAIN)
    >>> account.loops
    ['plain']
    """
    token = _account.set(account := Account([], []))
    try:
        yield account
    finally:
        _account.reset(token)


def tell(loop: str) -> None:
    """Say which loop is taken, to whoever listens."""
    account = _account.get()
    if account is not None and loop not in account.loops:
        account.loops.append(loop)


def note(words: str) -> None:
    """Leave a note for the result, if one is being made."""
    account = _account.get()
    if account is not None and words not in account.notes:
        account.notes.append(words)


PRECISIONS = ("float32", "tf32x3", "float64")

WORDS = {"float32": "single precision", "tf32x3": "the precision tf32x3"}

_precision: ContextVar[str] = ContextVar("precision", default="float32")


@contextmanager
def precision(name: str) -> Iterator[None]:
    """Compute pairs of rows on a GPU in this precision inside the block; they are always added up in double precision.

    ``"float32"``, the default, is IEEE arithmetic on differences of coordinates; ``"tf32x3"`` multiplies on tensor cores, three
    products for each, and loses digits where rows nearly coincide; ``"float64"`` is as on the CPU. On an NVIDIA H200, 10^6 rows
    of ten classes with the exponential kernel take 0.91 s in float32, and the U-statistic is off by 1.8e-8 of its value; 0.39 s
    and 6e-6 in tf32x3. Single sums of rows are right within 2e-6 of the sizes of their terms in float32, 5e-3 in tf32x3, 1e-12
    in float64. Where numbers of double precision are computed in less, the result has a note. Arrays that are not on a GPU are
    computed in double precision whatever is said here. It holds in the tasks
    of a :class:`calibrant.engines.DevicePool`, and of Dask workers with ``gpu=True``, that are made inside the block.

    >>> import numpy as np
    >>> from calibrant import SKCE, engines
    >>> from calibrant.kernels import Exponential
    >>> y, p = [0, 1, 2], np.array([[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.1, 0.3, 0.6]])  # or tensors on a GPU
    >>> with engines.precision("tf32x3"):
    ...     estimate = SKCE(Exponential(0.5))(y, p)
    >>> round(estimate.value, 4)
    -0.0456
    """
    if not isinstance(name, str) or name not in PRECISIONS:
        raise InputError(f"precision must be one of {', '.join(map(repr, PRECISIONS))}; got {of_what(name)}")
    token = _precision.set(name)
    try:
        yield
    finally:
        _precision.reset(token)


def precision_in_force() -> str:
    """The one that was chosen last, and is still open.

    >>> precision_in_force()
    'float32'
    """
    return _precision.get()


def tell_of_shortening() -> None:
    """Note that numbers of double precision are computed in less, if they are.

    >>> from calibrant._compiled.choice import accounted
    >>> with accounted() as account:
    ...     tell_of_shortening()
    >>> account.notes
    ['pairs of rows were computed in single precision on the GPU, and added up in double precision: \
engines.precision("float64") computes all in double']
    """
    name = precision_in_force()
    if name != "float64":
        note(
            f"pairs of rows were computed in {WORDS[name]} on the GPU, and added up in double precision: "
            'engines.precision("float64") computes all in double'
        )
