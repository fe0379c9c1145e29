"""Sums of events drawn anew from their chances, where only sums of the chances are known."""

import numpy as np


def redrawn_sums(
    mean: np.ndarray, noise: np.ndarray, skew: np.ndarray, n_resamples: int, rng: np.random.Generator
) -> np.ndarray:
    """How many of independent events happen, ``(n_resamples, ...)``, from the mean, variance and third cumulant alone.

    For chances p these are ``sum p``, ``sum p (1 - p)`` and ``sum p (1 - p) (1 - 2 p)``. Such a sum is close to a binomial one of
    ``m`` events of chance ``q``, moved by s: ``q = (1 - skew / noise) / 2``, ``m = noise / (q (1 - q))``, ``s = mean - m q``. This
    is exact where all chances are equal. As sums are whole numbers, s and m are rounded; the mean is kept. Röllin (2007).

    >>> chances = np.array([[0.1] * 1000, [1.0] * 1000])
    >>> sums = chances.sum(1), (chances * (1 - chances)).sum(1), (chances * (1 - chances) * (1 - 2 * chances)).sum(1)
    >>> drawn = redrawn_sums(*sums, 4000, np.random.default_rng(0))
    >>> drawn.mean(axis=0).round(), drawn.var(axis=0).round()
    (array([ 100., 1000.]), array([89.,  0.]))
    """
    chance = (1 - _ratio(skew, noise).clip(-1, 1)) / 2
    whole = _ratio(noise, chance * (1 - chance))
    moved = np.round(mean - whole * chance)
    moved = np.where(mean - moved <= noise, np.ceil(mean - noise) - 1, moved)  # a binomial varies less than its mean
    rest = mean - moved
    events = np.maximum(np.round(_ratio(rest**2, rest - noise)), np.ceil(rest)).clip(1)
    is_sure = noise <= 1e-12 * (1 + mean)
    drawn = rng.binomial(events.astype(np.int64), np.clip(rest / events, 0, 1), (n_resamples, *mean.shape))
    return np.where(is_sure, mean, drawn + moved)


def _ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A share, nothing of nothing."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)
