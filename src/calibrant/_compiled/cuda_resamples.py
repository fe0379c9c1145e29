"""Triton: kernels added up over pairs of rows with the same label, for many resamples of the labels.

A tile of the kernel is made once and stays in registers while all resamples pass by.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
import triton
import triton.language as tl

from calibrant._compiled.cuda_launch import Shape, place, shape_of
from calibrant._compiled.cuda_memory import SPAN, filled, scaled, step_of, upright
from calibrant._compiled.cuda_moments import kernel_of, matmul, square_distances


@triton.jit
def same_label_sums(
    x_ptr, weights_ptr, labels_ptr, out_ptr, n, resamples, D: tl.constexpr, STEP: tl.constexpr,
    GAUSSIAN: tl.constexpr, DIAGONAL: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, SPAN: tl.constexpr,
):  # fmt: skip
    """``sum_{i < j} w_i w_j k_ij [y_i = y_j]`` of each resample of the labels ``(resamples, n)``."""
    first, start = tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS
    if DIAGONAL:
        start += first // SPAN * SPAN
    elif first // SPAN >= start // SPAN:
        return
    rows, columns = first + tl.arange(0, ROWS), start + tl.arange(0, COLUMNS)
    k = kernel_of(square_distances(x_ptr, x_ptr, n, rows, columns, D, STEP), GAUSSIAN)
    k *= tl.load(weights_ptr + rows)[:, None] * tl.load(weights_ptr + columns)[None, :]
    if DIAGONAL:
        k = tl.where(rows[:, None] < columns[None, :], k, 0.0)
    left, right = labels_ptr + rows, labels_ptr + columns
    for resample in range(resamples):
        same = tl.load(left).to(tl.int32)[:, None] == tl.load(right).to(tl.int32)[None, :]
        total = tl.sum(tl.sum(tl.where(same, k, 0.0), axis=0), axis=0)
        tl.atomic_add(out_ptr + resample, total.to(tl.float64), sem="relaxed")
        left += n
        right += n


@dataclass(frozen=True, eq=False)
class LabelSums:
    """``sum_{i != j} w_i w_j k_ij <r_i, r_j>`` with ``r = e_y - p``, for stacks of resampled labels.

    The inner product has four terms. That of two predictions is the same for all resamples, those of a label and a prediction
    are sums over rows, once ``K p`` is known; that of two labels is the sum of kernels over pairs of the same label.
    O(n^2 (d + classes)) time once, O(n^2) per resample, O(n (classes + resamples)) memory.
    """

    x: torch.Tensor
    probabilities: torch.Tensor
    weights: torch.Tensor
    lengthscale: float
    gaussian: bool
    dtype: torch.dtype = torch.float32

    def __call__(self, labels: torch.Tensor) -> torch.Tensor:
        """The sum for each resample of the labels ``(m, n)``."""
        met, fixed = self._met
        index = labels.long()
        cross = torch.stack([self.weights @ met.gather(1, y[:, None])[:, 0] for y in index])
        return fixed - 2 * cross + 2 * self._same(labels)

    def diagonal(self, labels: torch.Tensor) -> torch.Tensor:
        """``sum_i w_i^2 |r_i|^2`` for each resample."""
        p = self.probabilities.double()
        squares, w = 1 + (p * p).sum(dim=1), self.weights**2
        return torch.stack([w @ (squares - 2 * p.gather(1, y[:, None])[:, 0]) for y in labels.long()])

    @cached_property
    def _met(self) -> tuple[torch.Tensor, torch.Tensor]:
        """``sum_{j != i} k_ij w_j p_j`` of each row, and the term of two predictions."""
        v = self.probabilities.double() * self.weights[:, None]
        met = matmul(self.x, v, self.lengthscale, self.gaussian, self.dtype) - v
        return met, (met * v).sum()

    @cached_property
    def _laid(self) -> tuple[torch.Tensor, torch.Tensor]:
        points = scaled(self.x, self.lengthscale, self.gaussian, self.dtype)
        return upright(points, step_of(points.shape[1])), filled(self.weights[:, None].to(self.dtype))[
            :, 0
        ].contiguous()

    def _same(self, labels: torch.Tensor) -> torch.Tensor:
        """The sum of kernels over pairs ``i < j`` of the same label, for each resample."""
        a, w = self._laid
        n, y = a.shape[1], torch.nn.functional.pad(labels.int(), (0, a.shape[1] - labels.shape[1])).contiguous()
        constants = {"D": len(a), "STEP": step_of(self.x.shape[1]), "GAUSSIAN": self.gaussian, "SPAN": SPAN}

        def run(shape: Shape, rows: int) -> torch.Tensor:
            out = torch.zeros(len(y), dtype=torch.float64, device=a.device)
            sizes = {"ROWS": shape.rows, "COLUMNS": shape.columns}
            with place(a):
                for diagonal, columns in ((False, n), (True, SPAN)):
                    grid = rows // shape.rows, columns // shape.columns
                    same_label_sums[grid](
                        a, w, y, out, n, len(y), DIAGONAL=diagonal, **sizes, **constants, **shape.options
                    )
            return out

        shape = shape_of("resamples", f"{len(a)} {a.dtype}", a, n, lambda shape: run(shape, 512))
        return run(shape, n)
