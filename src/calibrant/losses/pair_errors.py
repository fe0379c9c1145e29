"""Kernel errors of whole probability vectors, over all pairs of a batch or from a few of its rows."""

import math
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from calibrant.kernels.metrics import MAX_ROWS
from calibrant.losses.class_rows import ClassRows
from calibrant.losses.fused_error import FusedError, joined, panels, square_root
from calibrant.losses.line_sums import SPAN, LineSums

ROUNDING = 1e-15
"""Of squared distances from inner products of probabilities: those below are taken for zero."""

NEAREST = 1e-9
"""Distances below do not count as directions."""


@dataclass(frozen=True)
class KernelLaw:
    """``exp(-d / l)``, or ``exp(-d^2 / (2 l^2))``; an open length scale is the median distance of the rows.

    >>> law, points = KernelLaw(False, 0.5), torch.tensor([[0.0, 1.0], [1.0, 0.0]]).double()
    >>> law.over(points, points, law.unit(points))[0].round(decimals=4).tolist()
    [[1.0, 0.0591], [0.0591, 1.0]]
    """

    is_gaussian: bool
    lengthscale: float | None

    def unit(self, p: Tensor) -> Tensor | float:
        """The length scale; a median stays on the device."""
        return median_of_pairs(p) if self.lengthscale is None else self.lengthscale

    def fits(self, n: int) -> bool:
        """Whether the length scale of n rows is fused."""
        return self.lengthscale is not None or 2 <= n <= MAX_ROWS

    def over(self, a: Tensor, b: Tensor, unit: Tensor | float) -> tuple[Tensor, Tensor | float]:
        """The kernel of all pairs ``(n, m)``, and what it is divided by for its slope: ``dk / dx = -k (x - y) / that``."""
        if self.is_gaussian:
            return (squared_distances(a, b).clamp_(min=0) * (-0.5 / unit**2)).exp_(), unit**2
        d = squared_distances(a, b).clamp_(min=NEAREST**2).sqrt_()
        return (d * (-1 / unit)).exp_(), d.mul_(unit)


@dataclass(frozen=True)
class FusedSKCE(FusedError):
    """The mean of ``k(p_i, p_j) <r_i, r_j>`` over pairs, with itself or without; or the root of that with itself."""

    law: KernelLaw
    unbiased: bool = True
    is_root: bool = False

    def fits(self, n: int, k: int) -> bool:
        """Whether the length scale is given, or few rows have a median."""
        return self.law.fits(n)

    def __call__(self, rows: ClassRows, *, wants_gradient: bool) -> tuple[Tensor, Tensor | None]:
        """O(n^2 k) time; two classes on a line with the exponential kernel O(n log n)."""
        n = len(rows)
        pairs = n * (n - 1) if self.unbiased else n * n
        if rows.k == 2 and self._is_on_a_line():
            total, slope = self._on_a_line(rows)
        else:
            total, slope = self._over_pairs(rows, wants_gradient)
        value = total / pairs
        if not self.is_root:
            return value, None if slope is None else slope / pairs
        root, factor = square_root(value)
        return root, None if slope is None else slope * (factor / pairs)

    def _is_on_a_line(self) -> bool:
        unit = self.law.lengthscale
        return not self.law.is_gaussian and unit is not None and math.sqrt(2) / unit < SPAN

    def _on_a_line(self, rows: ClassRows) -> tuple[Tensor, Tensor]:
        """Residuals are ``(-e, e)``, and distances the root of two times those of the probabilities of class 1."""
        assert self.law.lengthscale is not None
        q = rows.p[:, 1]
        e = rows.observed[:, 1] - q
        sums = LineSums.of(q, e, math.sqrt(2) / self.law.lengthscale)
        product = sums.product - e if self.unbiased else sums.product
        slope = 4 * (e * sums.slope - product)
        return 2 * (e * product).sum(), torch.stack([torch.zeros_like(q), q * slope], dim=1)

    def _over_pairs(self, rows: ClassRows, wants_gradient: bool) -> tuple[Tensor, Tensor | None]:
        """``sum_ij k r_i r_j``; its gradient from the products of the kernel with residuals, and of its slopes with points."""
        p, r = rows.p, rows.observed - rows.p
        unit, points = self.law.unit(p), torch.cat([p, torch.ones_like(p[:, :1])], dim=1)
        met, moved = [], []
        for cut in panels(len(rows), p.device):
            kernel, divisor = self.law.over(p[cut], p, unit)
            kernel.diagonal(cut.start).fill_(0)  # rounding would give pairs of a row with itself a slope
            met.append(kernel @ r)
            if wants_gradient:
                moved.append((kernel.mul_(r[cut] @ r.T) / divisor) @ points)
        product = joined(met) if self.unbiased else joined(met) + r
        total = torch.dot(r.view(-1), product.view(-1))
        if not wants_gradient:
            return total, None
        pull = joined(moved)
        slope = torch.addcmul(pull[:, :-1] - product, pull[:, -1:], p, value=-1)
        return total, slope.mul_(p).mul_(2)


@dataclass(frozen=True)
class FusedUCME(FusedError):
    """The mean square of the embedding at some rows of the batch, which are drawn with a seed."""

    law: KernelLaw
    count: int
    seed: int
    drawn: dict[tuple[int, str], Tensor] = field(default_factory=dict, compare=False, repr=False)
    """Rows that were drawn before: copying them to a GPU would wait for it."""

    def fits(self, n: int, k: int) -> bool:
        """Whether the length scale is given, or few rows have a median."""
        return self.law.fits(n)

    def __call__(self, rows: ClassRows, *, wants_gradient: bool) -> tuple[Tensor, Tensor | None]:
        """O(n J k) time for J locations."""
        n, p = len(rows), rows.p
        r, chosen = rows.observed - p, self._rows(len(rows), p.device)
        places, answers = p[chosen], rows.observed[chosen]
        kernel, divisor = self.law.over(places, p, self.law.unit(p))
        seen = answers @ r.T
        means = (kernel * seen).sum(dim=1, keepdim=True) / n
        value = (means**2).mean()
        if not wants_gradient:
            return value, None
        weighed = kernel * (means * (2 / (n * len(places))))
        slope = -(weighed.T @ answers)
        pull = weighed * seen / divisor
        slope = slope + pull.T @ places - pull.sum(dim=0)[:, None] * p
        there = pull @ p - pull.sum(dim=1, keepdim=True) * places
        return value, p * slope.index_add(0, chosen, there)

    def _rows(self, n: int, device: torch.device) -> Tensor:
        if torch.compiler.is_compiling():
            return torch.tensor(_drawn(n, self.count, self.seed), device=device)
        found = self.drawn.get((n, str(device)))
        if found is None:
            found = self.drawn[n, str(device)] = torch.tensor(_drawn(n, self.count, self.seed), device=device)
        return found


@torch._dynamo.assume_constant_result  # type: ignore[no-untyped-call, untyped-decorator]
def _drawn(n: int, count: int, seed: int) -> list[int]:
    """The rows that :class:`SampledLocations` takes."""
    return [int(row) for row in np.random.default_rng(seed).permutation(n)[:count]]


def squared_distances(a: Tensor, b: Tensor) -> Tensor:
    """``|a_i - b_j|^2`` of probabilities less what rounding may have made, ``(n, m)``, by one product; it may be negative."""
    ones = torch.ones_like(a[:, :1])
    left = torch.cat([-2 * a, ones, (a * a).sum(dim=1, keepdim=True) - ROUNDING], dim=1)
    right = torch.cat([b, (b * b).sum(dim=1, keepdim=True), torch.ones_like(b[:, :1])], dim=1)
    return left @ right.T


def median_of_pairs(p: Tensor) -> Tensor:
    """The median distance of different rows, a scalar; where it is zero the mean of the positive ones, or 1.

    >>> round(median_of_pairs(torch.tensor([[0.0], [1.0], [3.0]]).double()).item(), 12)
    2.0
    """
    n = p.shape[0]
    d = squared_distances(p, p).clamp_(min=0).sqrt_()
    d.diagonal().fill_(torch.inf)
    pairs = n * (n - 1)
    flat = d.flatten()
    if flat.device.type == "cpu":  # on a GPU it looks at all numbers with few threads
        middle = (flat.kthvalue(pairs // 2).values + flat.kthvalue(pairs // 2 + 1).values) / 2
    else:
        middle = flat.sort().values[pairs // 2 - 1 : pairs // 2 + 1].mean()
    apart = (d > 0) & (d < torch.inf)
    count = apart.sum()
    mean = torch.where(apart, d, 0.0).sum() / count.clamp(min=1)
    return torch.where(middle > 0, middle, torch.where(count > 0, mean, 1.0))
