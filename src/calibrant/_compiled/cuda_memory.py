"""The memory of a GPU: how rows lie in it, one feature after the other, and what is done where it is short.

Coordinates are scaled so that the kernel is ``2^-d`` (exponential) or ``2^-d^2`` (Gaussian) of their distance d. Rows that
fill up the last block have residuals of zero and add nothing; where residuals are read off the coordinates they lie too far
from everything to count.
"""

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch

from calibrant._validate import InputError

SPAN = 128
"""Rows are filled up to a multiple of this; the blocks of all launches divide it."""

FAR = 1e6
"""Distance, in scaled coordinates, from which on kernels are zero."""

LARGEST = 1e17
"""Scaled coordinates stay below, so that squares of distances are finite in single precision."""


def factor(lengthscale: float, gaussian: bool) -> float:
    """What coordinates are multiplied with."""
    return math.sqrt(0.5 * math.log2(math.e)) / lengthscale if gaussian else math.log2(math.e) / lengthscale


def scaled(x: torch.Tensor, lengthscale: float, gaussian: bool, dtype: torch.dtype) -> torch.Tensor:
    """Coordinates ``(n, d)`` around their mean in units of the kernel, rounded once."""
    centred = x.double() - x.double().mean(dim=0)
    largest = float(centred.abs().max()) if len(x) else 0.0
    return (centred * min(factor(lengthscale, gaussian), LARGEST / max(largest, 1e-300))).to(dtype)


def filled(x: torch.Tensor, features: int = 1, rows: int = SPAN) -> torch.Tensor:
    """``(n, d)`` with zeros up to a multiple of so many rows and features."""
    return torch.nn.functional.pad(x, (0, -x.shape[1] % features, 0, -x.shape[0] % rows)).contiguous()


def upright(x: torch.Tensor, features: int = 1) -> torch.Tensor:
    """The same, one feature after the other, ``(d, n)``."""
    return filled(x, features).T.contiguous()


def step_of(features: int) -> int:
    """Features that one turn of a loop takes: all of few, 8 of many."""
    return features if features <= 16 else 8


def in_three(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Two matrices of numbers with 11 bits whose products ``a @ b.T`` are those of x with nearly all 24 bits."""
    high = _rounded(x)
    low = _rounded(x - high)
    return filled(torch.cat([high, high, low], dim=1), 32), filled(torch.cat([high, low, high], dim=1), 32)


def _rounded(x: torch.Tensor) -> torch.Tensor:
    """To the nearest number that has 10 bits after the leading one."""
    return ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


@dataclass(frozen=True, eq=False)
class Sorted:
    """Rows sorted by label, each label filled up to whole blocks: where each row went, and the label of every block."""

    place: torch.Tensor
    labels: torch.Tensor
    starts: torch.Tensor

    @property
    def rows(self) -> int:
        """How many there are, with those that fill up."""
        return SPAN * len(self.labels)

    @property
    def first(self) -> int:
        """Rows of the first label, with those that fill up."""
        return int(self.starts[1])

    def laid(self, x: torch.Tensor, filling: float = 0.0) -> torch.Tensor:
        """Rows ``(n, d)`` in the new order, ``(rows, d)``."""
        out = torch.full((self.rows, x.shape[1]), filling, dtype=x.dtype, device=x.device)
        out[self.place] = x
        return out


def by_label(labels: torch.Tensor, n_labels: int) -> Sorted:
    """Sort rows by label."""
    labels = labels.long()
    order = torch.argsort(labels, stable=True)
    counts = torch.bincount(labels, minlength=n_labels)
    blocks = -(-counts // SPAN)
    starts = torch.cat([blocks.new_zeros(1), blocks.cumsum(0)]) * SPAN
    before = counts.cumsum(0) - counts
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order), device=order.device) + (starts[:-1] - before)[labels[order]]
    names = torch.repeat_interleave(torch.arange(n_labels, device=order.device), blocks)
    return Sorted(place, names.int(), starts.int())


def in_panels(rows: int, first: int, device: torch.device) -> Sorted:
    """Rows of two panels, ``first`` of them in the first, each filled up to whole blocks; of one panel where that is zero."""
    return by_label((torch.arange(rows, device=device) >= first).long(), 2)


def joined(left: tuple[torch.Tensor, ...], right: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    """The arrays of two panels, those of the second after those of the first."""
    return [torch.cat(parts) for parts in zip(left, right, strict=True)]


def far_apart(x: torch.Tensor, sort: Sorted) -> torch.Tensor:
    """Rows in the new order; those that fill up are far from all others and from each other."""
    out = sort.laid(x)
    empty = torch.ones(sort.rows, dtype=torch.bool, device=x.device)
    empty[sort.place] = False
    out[empty, 0] = FAR * torch.arange(1, int(empty.sum()) + 1, dtype=x.dtype, device=x.device)
    return out


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
