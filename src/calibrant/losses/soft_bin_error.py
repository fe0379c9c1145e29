"""The calibration error of bins with soft edges as a loss: value and gradient in one pass."""

from dataclasses import dataclass

import torch

from calibrant.lenses.class_lenses import Lens
from calibrant.losses.class_rows import ClassRows
from calibrant.losses.fused_error import EventRows, FusedError, ValueAndSlope, event_lens, rooted
from calibrant.losses.soft_binned import UNSEEN


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
