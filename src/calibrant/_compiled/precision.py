"""The number format in which pairs of rows are computed on a GPU."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from calibrant._compiled.choice import note
from calibrant._validate import InputError

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
    if name not in PRECISIONS:
        raise InputError(f"precision must be one of {', '.join(map(repr, PRECISIONS))}; got {name!r}")
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
