"""Kernel errors of whole probability vectors, over all pairs of a batch or from a few of its rows."""

import math
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from calibrant.kernels.metrics import MAX_ROWS
from calibrant.lenses.class_lenses import PositiveClass
from calibrant.losses.event_errors import SPAN, LineSums
from calibrant.losses.fused_error import ClassRows, EventRows, FusedError, ValueAndSlope, joined, panels, square_root

ROUNDING = 1e-15
"""Of squared distances from inner products of probabilities: those below are taken for zero."""

MIN_DISTANCE = 1e-9
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

    def over(self, a: Tensor, b: Tensor, unit: Tensor | float) -> tuple[Tensor, Tensor | None]:
        """The kernel of all pairs ``(n, m)``, and distances, where its slope is divided by them."""
        if self.is_gaussian:
            return (squared_distances(a, b).clamp_(min=0) * (-0.5 / unit**2)).exp_(), None
        d = squared_distances(a, b).clamp_(min=MIN_DISTANCE**2).sqrt_()
        return (d * (-1 / unit)).exp_(), d

    def rate(self, unit: Tensor | float) -> Tensor | float:
        """``dk / dx = -rate k (x - y)``, over the distance for the exponential kernel."""
        return 1 / unit**2 if self.is_gaussian else 1 / unit


@dataclass(frozen=True)
class FusedSKCE(FusedError):
    """The mean of ``k(p_i, p_j) <r_i, r_j>`` over pairs, with itself or without; or the root of that with itself."""

    law: KernelLaw
    unbiased: bool = True
    is_root: bool = False

    def fits(self, n: int, k: int) -> bool:
        """Whether the length scale is given, or few rows have a median."""
        return self.law.fits(n)

    def __call__(self, rows: ClassRows, *, wants_gradient: bool) -> ValueAndSlope:
        """O(n^2 k) time; two classes on a line with the exponential kernel O(n log n)."""
        n = len(rows)
        pairs = n * (n - 1) if self.unbiased else n * n
        on_a_line = rows.k == 2 and self._is_on_a_line()
        total, slope, scale, column = self._on_a_line(rows) if on_a_line else self._over_pairs(rows, wants_gradient)
        if not self.is_root:
            return ValueAndSlope(total / pairs, slope, scale / pairs, column)
        root, factor = square_root(total / pairs)
        return ValueAndSlope(root, slope, scale * factor / (2 * pairs), column)

    def _is_on_a_line(self) -> bool:
        unit = self.law.lengthscale
        return not self.law.is_gaussian and unit is not None and math.sqrt(2) / unit < SPAN

    def _on_a_line(self, rows: ClassRows) -> ValueAndSlope:
        """Residuals are ``(-e, e)``, and distances the root of two times those of the probabilities of class 1."""
        assert self.law.lengthscale is not None
        rate, event = math.sqrt(2) / self.law.lengthscale, EventRows.of(PositiveClass(1), rows)
        e = event.hit - event.predicted
        sums = LineSums.of(event.predicted, e, rate)
        product = sums.product - e if self.unbiased else sums.product
        slope = torch.sub(e * sums.slope, product, alpha=1 / rate)
        return event.found(2 * torch.dot(e, product), slope, 4 * rate)

    def _over_pairs(self, rows: ClassRows, wants_gradient: bool) -> ValueAndSlope:
        """``sum_ij k r_i r_j``; its gradient from the products of the kernel with residuals, and of its slopes with points."""
        p, r = rows.p, rows.observed - rows.p
        unit, points = self.law.unit(p), torch.cat([p, torch.ones_like(p[:, :1])], dim=1)
        met, moved = [], []
        for cut in panels(len(rows), p.device):
            kernel, distance = self.law.over(p, p[cut], unit)
            kernel.diagonal(-cut.start).fill_(0)  # rounding would give pairs of a row with itself a slope
            met.append(r.T @ kernel)  # the narrow matrix first: BLAS is twice as fast
            if wants_gradient:
                pull = kernel.mul_(r @ r[cut].T)
                moved.append(points.T @ (pull if distance is None else pull.div_(distance)))
        product = joined(met).T if self.unbiased else joined(met).T + r
        total = (r * product).sum()
        if not wants_gradient:
            return ValueAndSlope(total)
        pulled, rate = joined(moved).T, self.law.rate(unit)
        slope = torch.addcmul(pulled[:, :-1] - product / rate, pulled[:, -1:], p, value=-1)
        return ValueAndSlope(total, slope * p, 2 * rate)


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

    def __call__(self, rows: ClassRows, *, wants_gradient: bool) -> ValueAndSlope:
        """O(n J k) time for J locations."""
        n, p, observed = len(rows), rows.p, rows.observed
        r, chosen, unit = observed - p, self._rows(len(rows), p.device), self.law.unit(p)
        places, answers = p.index_select(0, chosen), observed.index_select(0, chosen)
        kernel, distance = self.law.over(places, p, unit)
        seen = answers @ r.T
        means = (kernel * seen).sum(dim=1, keepdim=True) / n
        value = (means**2).mean()
        if not wants_gradient:
            return ValueAndSlope(value)
        weighed, rate = kernel * means, self.law.rate(unit)
        pull = weighed * seen
        if distance is not None:
            pull.div_(distance)
        slope = pull.T @ places - (weighed.T @ answers) / rate - pull.sum(dim=0)[:, None] * p
        there = pull @ p - pull.sum(dim=1, keepdim=True) * places
        return ValueAndSlope(value, slope.index_add_(0, chosen, there).mul_(p), 2 * rate / (n * len(places)))

    def _rows(self, n: int, device: torch.device) -> Tensor:
        if torch.compiler.is_compiling():
            return torch.tensor(_drawn(n, self.count, self.seed), device=device)
        found = self.drawn.get((n, str(device)))
        if found is None:
            found = self.drawn[n, str(device)] = torch.tensor(_drawn(n, self.count, self.seed), device=device)
        return found


def _drawn(n: int, count: int, seed: int) -> list[int]:
    """The rows that :class:`SampledLocations` takes."""
    return [int(row) for row in np.random.default_rng(seed).permutation(n)[:count]]


_drawn._dynamo_marked_constant = True  # type: ignore[attr-defined]  # as assume_constant_result does, which loads the compiler


def squared_distances(a: Tensor, b: Tensor) -> Tensor:
    """``|a_i - b_j|^2`` of probabilities less what rounding may have made, ``(n, m)``, by one product; it may be negative."""
    left = [-2 * a, torch.ones_like(a[:, :1]), (a * a).sum(dim=1, keepdim=True) - ROUNDING]
    right = [b, (b * b).sum(dim=1, keepdim=True), torch.ones_like(b[:, :1])]
    return torch.cat(left, dim=1) @ torch.cat(right, dim=1).T


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
