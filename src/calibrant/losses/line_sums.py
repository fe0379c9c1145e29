"""Sums of the exponential kernel over all pairs of numbers of a batch, by sorting: O(n log n)."""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from calibrant.lenses.class_lenses import TopLabel
from calibrant.losses.class_rows import ClassRows
from calibrant.losses.fused_error import EventRows, FusedError, ValueAndSlope, square_root

SPAN = 300.0
"""Length scales between two numbers at most: beyond, exponentials leave double precision."""


@dataclass(frozen=True, eq=False)
class LineSums:
    """``product_i = sum_j v_j e^(-rate |x_i - x_j|)``, and its derivative with respect to ``rate x_i``, for x ``(n,)`` in [0, 1].

    Pairs of equal numbers have no slope.

    >>> x, v = torch.tensor([1.0, 0.0]).double(), torch.tensor([1.0, 2.0]).double()
    >>> sums = LineSums.of(x, v, 1.0)  # 1 + 2 / e and 2 + 1 / e
    >>> sums.product.round(decimals=4).tolist(), sums.slope.round(decimals=4).tolist()
    ([1.7358, 2.3679], [-0.7358, 0.3679])
    """

    product: Tensor
    slope: Tensor

    @classmethod
    def of(cls, x: Tensor, v: Tensor, rate: float) -> Self:
        """Running sums from both sides; at most ``SPAN`` length scales ``1 / rate``."""
        x = x.contiguous()
        rising = torch.exp(x * rate)
        falling = torch.reciprocal(rising)
        ordered, order = torch.sort(x)
        up, down = (v * rising).index_select(0, order), (v * falling).index_select(0, order)
        below, above = torch.cumsum(up, 0), torch.cumsum(down.flip(0), 0).flip(0)
        first = torch.searchsorted(ordered, x).clamp_(max=len(x) - 1)  # NaN has no place
        last = torch.searchsorted(ordered, x, right=True) - 1
        right = (above - down).index_select(0, last) * rising
        left = (below - up).index_select(0, first) * falling
        return cls(below.index_select(0, last) * falling + right, right - left)


@dataclass(frozen=True)
class FusedMMCE(FusedError):
    """The root of ``1/n^2 sum_ij v_i v_j e^(-|q_i - q_j| / l)``, with hits less confidences v and confidences q."""

    lengthscale: float

    def __call__(self, rows: ClassRows, *, wants_gradient: bool) -> ValueAndSlope:
        """O(n log n) time."""
        event = EventRows.of(TopLabel(), rows)
        v = event.hit - event.predicted
        sums = LineSums.of(event.predicted, v, 1 / self.lengthscale)
        root, factor = square_root(torch.dot(v, sums.product) / len(rows) ** 2)
        if not wants_gradient:
            return ValueAndSlope(root)
        slope = torch.sub(v * sums.slope, sums.product, alpha=self.lengthscale)
        return event.found(root, slope, factor * (1 / self.lengthscale / len(rows) ** 2))
