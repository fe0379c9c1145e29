"""Errors of one event per row: MMCE, from sums over all pairs by sorting, and the error of bins with soft edges."""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from calibrant.lenses.class_lenses import Lens, TopLabel
from calibrant.losses.fused_error import (
    ClassRows,
    EventRows,
    FusedError,
    ValueAndSlope,
    event_lens,
    rooted,
    square_root,
)
from calibrant.losses.soft_binned import UNSEEN

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


@dataclass(frozen=True)
class FusedSoftBins(FusedError):
    """``(sum_b s_b |observed_b - predicted_b|^p)^(1/p)`` with memberships ``softmax_b(-(f - c_b)^2 / temperature)``."""

    bins: int
    temperature: float
    p: float
    lens: Lens | None

    def fits(self, n: int, k: int) -> bool:
        """Whether the lens asks for a single event."""
        return event_lens(self.lens, k) is not None

    def __call__(self, rows: ClassRows, *, wants_gradient: bool) -> ValueAndSlope:
        """O(n bins) time."""
        lens = event_lens(self.lens, rows.k)
        assert lens is not None
        event, n = EventRows.of(lens, rows), len(rows)
        error = (event.hit - event.predicted)[:, None]
        centres = (torch.arange(self.bins, dtype=error.dtype, device=error.device) + 0.5) / self.bins
        away = event.predicted[:, None] - centres
        share = torch.softmax(away**2 * (-1 / self.temperature), dim=1) / n
        gap, size = (share * error).sum(dim=0), share.sum(dim=0)
        seen = size >= UNSEEN
        ratio = torch.where(seen, gap.abs() / torch.where(seen, size, 1.0), 0.0)
        power = ratio**self.p
        value, scale = rooted(torch.dot(size, power), self.p)
        if not wants_gradient:
            return ValueAndSlope(value)
        of_gap = self.p * ratio ** (self.p - 1) * torch.sign(gap)
        of_share = of_gap * error - (self.p - 1) * power
        centre = (share * of_share).sum(dim=1, keepdim=True) * n
        moved = share * (of_share - centre) * away * (-2 / self.temperature) - share * of_gap
        return event.found(value, moved.sum(dim=1), scale)
