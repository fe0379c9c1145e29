"""What is done where the memory of a GPU is short: smaller parts, with a warning, or words that say what to do."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch

from calibrant._validate import InputError

Result = TypeVar("Result")

OutOfMemoryError = torch.cuda.OutOfMemoryError


class GPUMemoryError(InputError):
    """The GPU cannot hold what a computation needs."""


@contextmanager
def memory_for(what: str, rows: int | None = None) -> Iterator[None]:
    """Where the GPU has no memory for the work inside, say what to do about it."""
    try:
        yield
    except OutOfMemoryError as error:
        raise GPUMemoryError(
            f"the GPU has no memory for {what}{'' if rows is None else f' of {rows:,} rows'}: free what other tensors hold there "
            "(del, torch.cuda.empty_cache()), take fewer rows, or give arrays of the CPU, y_pred.cpu()"
        ) from error


def in_smaller(work: Callable[[int], Result], size: int, least: int, parts: str) -> Result:
    """``work(size)``, the size halved with a warning as often as the GPU has no memory for parts of it.

    >>> in_smaller(lambda size: size, 8, 1, "tiles of {:,} rows")
    8
    """
    while True:
        try:
            return work(size)
        except OutOfMemoryError:
            if size <= least:
                raise
        smaller = max(least, size // 2)
        torch.cuda.empty_cache()
        warnings.warn(f"the GPU has no memory for {parts.format(size)}: {smaller:,} now", RuntimeWarning, stacklevel=3)
        size = smaller
