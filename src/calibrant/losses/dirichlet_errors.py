"""Errors by kernel regression on the simplex: values and gradients of all pairs of a batch, a panel at a time."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from calibrant.estimators.simplex.kde import ALONE, EFFECTIVE
from calibrant.lenses.class_lenses import Lens
from calibrant.losses.class_rows import ClassRows
from calibrant.losses.fused_error import EventRows, FusedError, event_lens, panels, rooted
from calibrant.losses.heads import MAX_PROBABILITY, MIN_LOG_PROBABILITY


class Around(NamedTuple):
    """Averages around some rows with weights w that sum to one: ``sum w y``, ``sum w^2 y`` and ``sum w^2``."""

    mean: Tensor
    mean_of_squares: Tensor
    squares: Tensor


class Slopes(NamedTuple):
    """Sums of terms, their derivatives with respect to the averages, and to the probabilities they are compared with."""

    terms: Tensor
    of_mean: Tensor
    of_mean_of_squares: Tensor
    of_squares: Tensor
    of_predicted: Tensor


@dataclass(frozen=True)
class FusedKDE(FusedError):
    """The mean over rows of ``||R - f||_p^p``, or of the squares of R: :class:`~calibrant.KDE` and its sharpness.

    ``p`` is ``None`` for the sharpness. R are frequencies around each row, without itself.
    """

    p: float | None
    bandwidth: float
    debias: bool | str
    lens: Lens | None = None
    root: bool = False

    def fits(self, n: int, k: int) -> bool:
        """Whether the lens asks for whole vectors or a single event."""
        return event_lens(self.lens, k) is not None

    def __call__(self, rows: ClassRows, *, wants_gradient: bool) -> tuple[Tensor, Tensor | None]:
        """O(n^2 k) time; whole vectors, or the points ``(1 - q, q)`` of an event."""
        if self.lens is None and rows.k > 2:
            logs = rows.logs.clamp(min=MIN_LOG_PROBABILITY)
            p = torch.exp(logs)
            value, of_logs, of_points = self._mean(logs, p, rows.observed, 0, wants_gradient)
            if of_logs is None or of_points is None:
                return value, None
            return value, torch.where(rows.logs < MIN_LOG_PROBABILITY, 0.0, of_logs + p * of_points)
        lens = event_lens(self.lens, rows.k)
        assert lens is not None
        event = EventRows.of(lens, rows)
        least = torch.exp(torch.full_like(event.predicted, MIN_LOG_PROBABILITY))
        q = torch.minimum(torch.maximum(event.predicted, least), torch.full_like(least, MAX_PROBABILITY))
        points, observed = torch.stack([1 - q, q], dim=1), torch.stack([1 - event.hit, event.hit], dim=1)
        value, of_logs, of_points = self._mean(torch.log(points), points, observed, 1, wants_gradient)
        if of_logs is None or of_points is None:
            return value, None
        slopes = of_logs / points + of_points
        return value, event.to_logs(torch.where(q == event.predicted, slopes[:, 1] - slopes[:, 0], 0.0), rows)

    def _mean(
        self, logs: Tensor, points: Tensor, observed: Tensor, first: int, wants_gradient: bool
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """The value, and its gradients with respect to logarithms of points and to points, ``(n, K)``.

        ``log k = sum_c (f_c / h) log z_c - sum_c log gamma(f_c / h + 1)`` up to a constant; keys f are rows, queries z columns.
        """
        n = logs.shape[0]
        alpha = points / self.bandwidth
        bias = -torch.lgamma(alpha + 1).sum(dim=1, keepdim=True)
        keys, queries = torch.cat([alpha, bias], dim=1), torch.cat([logs, torch.ones_like(bias)], dim=1)
        labels = observed.argmax(dim=1)
        total, of_queries, of_predicted, of_keys = logs.new_zeros(()), [], [], torch.zeros_like(keys)
        for cut in panels(n, logs.device):
            weights = _weights(keys, queries[cut], cut.start)
            around, whole = self._around(weights, observed)
            slopes = self._slopes(around, points[cut, first:], first, n)
            total = total + slopes.terms
            if wants_gradient:
                pull = self._pull(weights, whole, around, slopes, labels)
                of_queries.append(pull.T @ alpha)
                of_predicted.append(_filled(slopes.of_predicted, first))
                of_keys = of_keys + pull @ queries[cut]
        value, factor = total / n, 1.0
        if self.root and self.p not in (None, 1):
            assert self.p is not None
            value, factor = rooted(value, self.p)
        if not wants_gradient:
            return value, None, None
        of_alpha = of_keys[:, :-1] - of_keys[:, -1:] * torch.digamma(alpha + 1)
        of_points = of_alpha / self.bandwidth + torch.cat(of_predicted)
        return value, torch.cat(of_queries) * (factor / n), of_points * (factor / n)

    @property
    def _has_squares(self) -> bool:
        return self.debias is not False

    def _around(self, weights: Tensor, observed: Tensor) -> tuple[Around, Tensor]:
        """Averages from weights that do not sum to one ``(n, b)``, and their sums ``(b, 1)``."""
        sums = weights.T @ observed
        whole = sums.sum(dim=1, keepdim=True)
        if not self._has_squares:
            return Around(sums / whole, sums, whole), whole
        squares = (weights * weights).T @ observed / whole**2
        return Around(sums / whole, squares, squares.sum(dim=1, keepdim=True)), whole

    def _pull(self, weights: Tensor, whole: Tensor, around: Around, slopes: Slopes, labels: Tensor) -> Tensor:
        """Derivatives with respect to the logarithms of the weights, ``(n, b)``; the weights are used up."""
        centre = (slopes.of_mean * around.mean).sum(dim=1, keepdim=True)
        if not self._has_squares:
            return weights.mul_(((slopes.of_mean - centre) / whole).T.contiguous().index_select(0, labels))
        twice = 2 * (slopes.of_mean_of_squares + slopes.of_squares)
        centre = centre + (twice * around.mean_of_squares).sum(dim=1, keepdim=True)
        first = ((slopes.of_mean - centre) / whole).T.contiguous().index_select(0, labels)
        second = (twice / whole**2).T.contiguous().index_select(0, labels)
        return first.addcmul_(weights, second).mul_(weights)

    def _slopes(self, around: Around, predicted: Tensor, first: int, n: int) -> Slopes:
        """The terms of :class:`~calibrant.estimators.simplex.kde.Ratios` with derivatives, zero for what is not asked for."""
        mean, twofold, s, m = around.mean[:, first:], around.mean_of_squares[:, first:], around.squares, n - 1
        if not self._has_squares:
            terms, of_mean, on_square, of_predicted = self._terms(mean, mean**2, predicted)
            of_mean = _filled(of_mean + 2 * on_square * mean, first)
            return Slopes(terms, of_mean, of_mean, s, of_predicted)
        several = 1 - s > ALONE
        pairs = torch.where(several, 1 - s, 1.0)
        square = torch.where(several, (mean**2 - twofold) / pairs, mean**2)
        is_full = self.debias is True and m >= EFFECTIVE
        scale = torch.where(s * EFFECTIVE <= 1, m / (m - 1), 0.0) if is_full else torch.zeros_like(s)
        shift = scale * (twofold - s * mean)
        terms, on_frequency, on_square, of_predicted = self._terms(mean + shift, square + 4 * mean * shift, predicted)
        on_shift = (on_frequency + 4 * on_square * mean) * scale
        of_mean = on_frequency + on_square * (2 * mean / pairs + 4 * shift) - on_shift * s
        of_twofold = on_shift - torch.where(several, on_square / pairs, 0.0)
        of_s = torch.where(several, on_square * square / pairs, 0.0) - on_shift * mean
        of_s = of_s.sum(dim=1, keepdim=True)
        return Slopes(terms, _filled(of_mean, first), _filled(of_twofold, first), of_s, of_predicted)

    def _terms(self, frequency: Tensor, square: Tensor, predicted: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Their sum, and the derivatives with respect to frequencies, squares and predictions."""
        if self.p is None:
            return square.sum(), torch.zeros_like(square), torch.ones_like(square), torch.zeros_like(square)
        if self.p == 2:
            terms = square - 2 * predicted * frequency + predicted**2
            return terms.sum(), -2 * predicted, torch.ones_like(square), 2 * (predicted - frequency)
        gap = frequency - predicted
        size = gap.abs()
        slope = torch.sign(gap) if self.p == 1 else self.p * size ** (self.p - 1) * torch.sign(gap)
        return (size if self.p == 1 else size**self.p).sum(), slope, torch.zeros_like(square), -slope


def _weights(keys: Tensor, queries: Tensor, start: int) -> Tensor:
    """Weights of all rows around some, ``(n, b)``: the largest is one, and that of a row itself is zero."""
    logs = keys @ queries.T
    logs.diagonal(-start).fill_(-torch.inf)
    return logs.sub_(logs.amax(dim=0)).exp_()


def _filled(slope: Tensor, first: int) -> Tensor:
    """With zeros for the classes that are not asked for."""
    return slope if first == 0 else torch.cat([torch.zeros_like(slope[:, :first]), slope], dim=1)
