"""The calibration error of bins with soft edges, which has a gradient."""

from dataclasses import dataclass

import numpy as np

from calibrant._array import as_double, as_number, matched, namespace
from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution
from calibrant.estimators.base import BaseEstimator, View, check_lens
from calibrant.lenses.class_lenses import Event, Lens, TopLabel
from calibrant.results import Estimate
from calibrant.typing import Array

UNSEEN = 1e-100
"""Bins with less weight than this count as empty."""


@dataclass(frozen=True)
class SoftBinnedECE(BaseEstimator):
    """Calibration error over bins that share every row: membership is ``softmax_b(-(f - c_b)^2 / temperature)``.

    ``(sum_b s_b |observed_b - predicted_b|^p)^(1/p)`` with the share s of each bin and centres c of bins of equal width.
    As the temperature falls it becomes the ECE of equal-width bins. Biased upwards like that, and it changes with the
    number of bins. O(n bins). Several events are averaged. Karandikar et al. (2021).

    >>> from calibrant import ECE, EqualWidth
    >>> y_true, y_pred = [1, 0, 1, 1], [0.9, 0.2, 0.7, 0.6]
    >>> soft = SoftBinnedECE(bins=5, temperature=1e-6, p=1, lens=None)(y_true, y_pred)
    >>> round(soft.value, 6) == round(ECE(EqualWidth(5))(y_true, y_pred).value, 6)
    True
    """

    bins: int = 15
    temperature: float = 0.01
    p: float = 2
    lens: Lens | None = TopLabel()  # noqa: RUF009  # frozen

    least = 0.0
    most = 1.0

    def __post_init__(self) -> None:
        check_lens(self.lens)
        check_count(self.bins, "bins", least=1)
        if not 0 < self.temperature < np.inf:
            raise InputError(f"temperature must be a positive number; got {self.temperature!r}")
        if not 1 <= self.p < np.inf:
            raise InputError(f"p must be a number of at least 1; got {self.p!r}")

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The mean over the events of the lens."""
        view = View.of(self.lens, predictions)
        values = [self._error(event, targets, weights) for event in view.events]
        value = as_number(sum(values[1:], start=values[0]) / len(values))
        return Estimate("SoftBinnedECE", value, len(predictions), self, view.name)

    def _error(self, event: Event, targets: Array, weights: np.ndarray | None) -> Array:
        observed, _ = event.problem(targets)
        f = as_double(event.predicted)
        xp = namespace(f)
        w = xp.ones_like(f) if weights is None else xp.astype(matched(weights, f), f.dtype)
        w = w / xp.sum(w)
        share = w[:, None] * self._membership(f)
        size = xp.sum(share, axis=0)
        gap = xp.sum(share * (xp.astype(observed, f.dtype) - f)[:, None], axis=0)
        is_empty = size < UNSEEN
        power = xp.abs(gap) ** self.p / xp.where(is_empty, xp.ones_like(size), size) ** (self.p - 1)
        return self._root(xp.sum(xp.where(is_empty, xp.zeros_like(power), power)))

    def _membership(self, f: Array) -> Array:
        """How much each row belongs to each bin, ``(n, bins)``."""
        xp = namespace(f)
        centres = matched((np.arange(self.bins) + 0.5) / self.bins, f)
        logs = -((f[:, None] - centres[None, :]) ** 2) / self.temperature
        weights = xp.exp(logs - xp.max(logs, axis=1, keepdims=True))
        return weights / xp.sum(weights, axis=1, keepdims=True)

    def _root(self, total: Array) -> Array:
        """The root; flat at zero, where it has no derivative."""
        if self.p == 1:
            return total
        xp = namespace(total)
        is_zero = total == 0
        root = xp.where(is_zero, xp.ones_like(total), total) ** (1 / self.p)
        return xp.where(is_zero, xp.zeros_like(total), root)
