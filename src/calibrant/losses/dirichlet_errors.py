"""Errors by kernel regression on the simplex: values and gradients of all pairs of a batch, a panel at a time."""

import math
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import NamedTuple

import torch
from torch import Tensor

from calibrant.estimators.simplex.kde import ALONE, is_spread
from calibrant.lenses.class_lenses import Lens
from calibrant.losses.fused_error import (
    ClassRows,
    EventRows,
    FusedError,
    ValueAndSlope,
    event_lens,
    joined,
    panels,
    rooted,
)
from calibrant.losses.heads import MAX_PROBABILITY, MIN_LOG_PROBABILITY

MIN_PROBABILITY = math.exp(MIN_LOG_PROBABILITY)
"""As class heads have it."""


class Averages(NamedTuple):
    """Averages around some rows with weights w that sum to one: ``sum w y`` and, unless plain, ``sum w^2 y`` and ``sum w^2``."""

    mean: Tensor
    twofold: Tensor | None = None
    squares: Tensor | None = None


class Slopes(NamedTuple):
    """The sum of terms, and its derivatives with respect to the averages.

    ``of_predicted`` is less that with respect to the probabilities that averages are compared with.
    """

    terms: Tensor
    of_predicted: Tensor
    of_mean: Tensor
    of_twofold: Tensor | None = None
    of_squares: Tensor | None = None


@dataclass(frozen=True)
class FusedKDE(FusedError):
    """The mean over rows of ``||R - f||_p^p``, or of the squares of R: :class:`~calibrant.KDE` and its sharpness.

    ``p`` is ``None`` for the sharpness. R are frequencies around each row, without itself; ``debias`` is as there.
    """

    p: float | None
    bandwidth: float
    debias: bool | str
    lens: Lens | None = None
    root: bool = False

    def fits(self, n: int, k: int) -> bool:
        """Whether the lens asks for whole vectors or a single event."""
        return event_lens(self.lens, k) is not None

    def __call__(self, rows: ClassRows, *, wants_gradient: bool) -> ValueAndSlope:
        """O(n^2 k) time; whole vectors, or the points ``(1 - q, q)`` of an event."""
        if self.lens is None and rows.k > 2:
            logs = rows.logs.clamp(min=MIN_LOG_PROBABILITY)
            value, slopes = self._mean(logs.T, rows.p.T, rows.observed.T, 0, wants_gradient)
            if slopes is None:
                return ValueAndSlope(value)
            return ValueAndSlope(value, slopes[0].T.masked_fill(rows.logs < MIN_LOG_PROBABILITY, 0), slopes[1])
        lens = event_lens(self.lens, rows.k)
        assert lens is not None
        event = EventRows.of(lens, rows)
        q = event.predicted.clamp(min=MIN_PROBABILITY, max=MAX_PROBABILITY)
        points, observed = torch.stack([1 - q, q]), torch.stack([1 - event.hit, event.hit])
        value, slopes = self._mean(torch.log(points), points, observed, 1, wants_gradient)
        if slopes is None:
            return ValueAndSlope(value)
        of_points = slopes[0] / points
        return event.found(value, (of_points[1] - of_points[0]).masked_fill_(q != event.predicted, 0), slopes[1])

    def _mean(
        self, logs: Tensor, points: Tensor, observed: Tensor, first: int, wants_gradient: bool
    ) -> tuple[Tensor, tuple[Tensor, Tensor | float] | None]:
        """The value; its gradient with respect to logarithms of points, ``(K, n)``, and the factor that this lacks.

        ``log k = sum_c (f_c / h) log z_c - sum_c log gamma(f_c / h + 1)`` up to a constant; keys f are rows, queries z columns.
        Classes come first everywhere: BLAS is twice as fast with the narrow matrix first.
        """
        n = logs.shape[1]
        alpha = points / self.bandwidth
        raised = alpha + 1
        keys = torch.cat([alpha, torch.lgamma(raised).sum(dim=0, keepdim=True)])
        queries = torch.cat([logs, torch.full_like(logs[:1], -1)])
        labels = observed.argmax(dim=0)
        totals, of_queries, of_predicted, of_keys = [], [], [], []
        for cut in panels(n, logs.device):
            weights = _weights(keys, queries[:, cut], cut.start)
            around, whole = self._around(weights, observed)
            slopes = self._slopes(around, points[first:, cut], first, n)
            totals.append(slopes.terms)
            if wants_gradient:
                pull = self._pull(weights, whole, around, slopes, labels)
                of_queries.append(alpha @ pull)
                of_predicted.append(_filled(slopes.of_predicted, first))
                of_keys.append(queries[:, cut] @ pull.T)
        value = reduce(add, totals) / n
        factor: Tensor | float = 1.0
        if self.root and self.p not in (None, 1):
            assert self.p is not None
            value, factor = rooted(value, self.p)
        if not wants_gradient:
            return value, None
        pulled = reduce(add, of_keys)
        of_alpha = torch.addcmul(pulled[:-1], pulled[-1:], torch.digamma(raised))
        slope = torch.addcmul(joined(of_queries), of_alpha, alpha).addcmul_(joined(of_predicted), points, value=-1)
        return value, (slope, factor / n)

    def _around(self, weights: Tensor, observed: Tensor) -> tuple[Averages, Tensor]:
        """Averages from weights that do not sum to one ``(n, b)``, and their sums ``(1, b)``."""
        sums = observed @ weights
        whole = sums.sum(dim=0, keepdim=True)
        if self.debias is False or not (self._has_squares or self._is_full(observed.shape[1])):
            return Averages(sums / whole), whole
        twofold = observed @ (weights * weights) / whole**2
        return Averages(sums / whole, twofold, twofold.sum(dim=0, keepdim=True)), whole

    def _pull(self, weights: Tensor, whole: Tensor, around: Averages, slopes: Slopes, labels: Tensor) -> Tensor:
        """Derivatives with respect to the logarithms of the weights, ``(n, b)``; the weights are used up."""
        centre = (slopes.of_mean * around.mean).sum(dim=0, keepdim=True)
        if slopes.of_twofold is None or slopes.of_squares is None or around.twofold is None:
            return weights.mul_(((slopes.of_mean - centre) / whole).index_select(0, labels))
        twice = 2 * (slopes.of_twofold + slopes.of_squares)
        centre = centre + (twice * around.twofold).sum(dim=0, keepdim=True)
        first = ((slopes.of_mean - centre) / whole).index_select(0, labels)
        second = (twice / whole**2).index_select(0, labels)
        return first.addcmul_(weights, second).mul_(weights)

    def _slopes(self, around: Averages, predicted: Tensor, first: int, n: int) -> Slopes:
        """The terms of :class:`~calibrant.estimators.simplex.kde.Ratios` with derivatives, zero for what is not asked for."""
        mean, s = around.mean[first:], around.squares
        if around.twofold is None or s is None:
            terms, of_predicted, of_mean = self._terms(mean, mean**2 if self._has_squares else mean, predicted)
            return Slopes(terms, of_predicted, _filled(of_mean + 2 * mean if self._has_squares else of_mean, first))
        twofold = around.twofold[first:]
        full = self._is_full(n)
        scale = is_spread(s, n - 1).to(s.dtype) * ((n - 1) / (n - 2)) if full else torch.zeros_like(s)
        shift = scale * (twofold - s * mean)
        if not self._has_squares:
            terms, of_predicted, of_mean = self._terms(mean + shift, mean, predicted)
            of_shift = of_mean * scale
            of_mean, of_twofold, of_s = of_mean - of_shift * s, of_shift, -of_shift * mean
        else:
            several = 1 - s > ALONE
            pairs = torch.where(several, 1 - s, 1.0)
            square = torch.where(several, (mean**2 - twofold) / pairs, mean**2)
            terms, of_predicted, of_mean = self._terms(mean + shift, square + 4 * mean * shift, predicted)
            of_shift = (of_mean + 4 * mean) * scale
            of_mean = of_mean + 2 * mean / pairs + 4 * shift - of_shift * s
            of_twofold = of_shift - torch.where(several, 1 / pairs, 0.0)
            of_s = torch.where(several, square / pairs, 0.0) - of_shift * mean
        return Slopes(
            terms, of_predicted, _filled(of_mean, first), _filled(of_twofold, first), of_s.sum(dim=0, keepdim=True)
        )

    def _terms(self, frequency: Tensor, square: Tensor, predicted: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Their sum, and its derivatives: less that with respect to predictions, that to frequencies; that to squares is 1 or 0."""
        if self.p is None:
            return square.sum(), torch.zeros_like(predicted), torch.zeros_like(predicted)
        if self.p == 2:
            terms = square - 2 * predicted * frequency + predicted**2
            return terms.sum(), 2 * (frequency - predicted), -2 * predicted
        gap = frequency - predicted
        if self.p == 1:
            slope = torch.sign(gap)
            return gap.abs().sum(), slope, slope
        size = gap.abs()
        slope = self.p * size ** (self.p - 1) * torch.sign(gap)
        return (size**self.p).sum(), slope, slope

    @property
    def _has_squares(self) -> bool:
        """Whether terms have squares of frequencies, which have a bias of their own."""
        return self.p is None or self.p == 2

    def _is_full(self, n: int) -> bool:
        """Whether the bias of ratios is removed."""
        return self.debias is True and n > 2


def _weights(keys: Tensor, queries: Tensor, start: int) -> Tensor:
    """Weights of all rows around some, ``(n, b)``: the largest is one, and that of a row itself is zero."""
    logs = keys.T @ queries
    logs.diagonal(-start).fill_(-torch.inf)
    return logs.sub_(logs.amax(dim=0)).exp_()


def _filled(slope: Tensor, first: int) -> Tensor:
    """With zeros for the classes that are not asked for."""
    return slope if first == 0 else torch.cat([torch.zeros_like(slope[:first]), slope])
