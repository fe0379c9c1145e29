"""How far mean claims lie from what happened, in the standard errors of a calibrated model."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Leaning:
    """A mean claim, how often it came true, and how many standard errors of a calibrated model lie between them."""

    claimed: float
    happened: float
    z: float

    @classmethod
    def of(cls, probability: np.ndarray, happened: np.ndarray, weights: np.ndarray | None) -> "Leaning":
        """From claims and outcomes of the same shape.

        >>> round(Leaning.of(np.array([0.5, 0.5, 0.9, 0.9]), np.array([1, 0, 0, 1]), None).z, 4)
        0.9701
        """
        p = probability.astype(np.float64)
        w = np.ones(len(p)) if weights is None else weights
        w = np.broadcast_to(w.reshape(-1, *[1] * (p.ndim - 1)), p.shape) / (w.sum() * p[0].size)
        spread = float(np.sqrt((w**2 * p * (1 - p)).sum()))
        claimed, seen = float((w * p).sum()), float((w * happened).sum())
        return cls(claimed, seen, _score(claimed - seen, spread))

    @property
    def is_high(self) -> bool:
        """Whether more was claimed than happened."""
        return self.claimed > self.happened


@dataclass(frozen=True, eq=False)
class Cells:
    """Groups of claims: weight, mean claim, how many came true, the standard errors between them, and the range of claims.

    Standard errors allow for one row more, so that a group stands out by several rows at least.
    """

    weight: np.ndarray
    claimed: np.ndarray
    happened: np.ndarray
    z: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(
        cls, probability: np.ndarray, happened: np.ndarray, weights: np.ndarray | None, cell: np.ndarray, n_cells: int
    ) -> "Cells":
        """From claims ``(n,)`` and the number of each one's cell; cells without rows hold zeros.

        >>> cells = Cells.of(np.array([0.2, 0.4, 0.9]), np.array([0, 1, 1]), None, np.array([0, 0, 1]), 2)
        >>> cells.claimed, cells.happened
        (array([0.3, 0.9]), array([0.5, 1. ]))
        """
        p = probability.astype(np.float64)
        w = np.ones(len(p)) if weights is None else weights
        total, claims, seen, variance = (
            np.bincount(cell, weights=v, minlength=n_cells) for v in (w, w * p, w * happened, w**2 * p * (1 - p))
        )
        unit = np.where(total > 0, total, 1)
        low, high = np.full(n_cells, np.inf), np.full(n_cells, -np.inf)
        np.minimum.at(low, cell, p)
        np.maximum.at(high, cell, p)
        # One surprise among claims that are nearly certain is no measure of how wrong they are.
        z = (claims - seen) / np.sqrt(variance + _mean_square(w))
        return cls(total, claims / unit, seen / unit, z, low, high)


def _mean_square(w: np.ndarray) -> float:
    return float((w**2).sum() / max(np.count_nonzero(w), 1))


def _score(gap: float, spread: float) -> float:
    """The gap in standard errors; without spread any gap beyond rounding is infinite."""
    if spread > 0:
        return gap / spread
    return 0.0 if abs(gap) < 1e-12 else float(np.sign(gap) * np.inf)


def beyond(of: np.ndarray, given: np.ndarray, probability: np.ndarray, happened: np.ndarray, w: np.ndarray) -> float:
    """Standard errors that one contrast of errors is off beyond what another explains; contrasts are numbers a claim.

    >>> p, y = np.full(8, 0.5), np.array([1, 1, 1, 1, 0, 0, 0, 0])
    >>> round(beyond(np.repeat([1.0, -1.0], 4), np.ones(8), p, y, np.ones(8)), 3)
    -2.828
    """
    variance = w**2 * probability * (1 - probability)
    inner = (variance * given * given).sum()
    rest = of - given * ((variance * of * given).sum() / inner if inner > 0 else 0.0)
    spread = np.sqrt((variance * rest * rest).sum())
    # contrasts that are the same but for rounding leave nothing
    if spread <= 1e-6 * np.sqrt((variance * of * of).sum()):
        return 0.0
    return float((w * rest * (probability - happened)).sum() / spread)
