"""Quantile recalibration: a monotone map of the levels of real-valued predictions."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.quantiles import fan_of
from calibrant.recalibration.base import Found, Map, Recalibrator
from calibrant.recalibration.normal_scores import check_levels, spread_scores
from calibrant.recalibration.recalibrated import Lines, Recalibrated
from calibrant.recalibration.weights import in_rows

FEWEST = 10
"""Rows beyond the first and last point."""

CLOSE = 1e-6
"""Points whose normal scores are closer than this would make a line of rounding errors."""


@dataclass(frozen=True)
class QuantileRecalibration(Recalibrator):
    """Levels put right: ``R(F(y))`` in place of ``F(y)``, with R the empirical distribution function of the levels of targets.

    A calibrated model has levels ``u_i = F_i(y_i)`` that are uniform. R goes through points of their distribution function
    (ties count half, and one row of the identity is mixed in), joined by straight lines in normal scores: one point after
    each of about ``n^(1/3)`` equal shares of the rows, in the first and last of which further ones halve the rest down to ten
    rows. With a corner at each row, as in the paper, the map would be as right on average but have no density worth
    the name; without normal scores it would leave the tails as they were.
    The result is a :class:`Recalibrated`: distribution function, quantiles, draws, and the density ``R'(F(y)) f(y)``. R is
    the same for all rows: it mends what is wrong on average, not what is wrong of some rows. O(n log n).
    Counts have all levels from ``P(Y < y)`` to ``P(Y <= y)``, in equal shares, and probabilities in place of the density.
    Of quantile forecasts the map has seen the shares of targets between them, and gives new quantiles at the same levels: those
    between and beyond the given ones are taken from straight lines and tails, which held-out pinball losses judge.
    Levels of an ensemble of m are ``(rank + 1/2) / (m + 1)``, which has no density: the CRPS judges.
    Kuleshov, Fenner & Ermon (2018).

    >>> from calibrant import Normal
    >>> rng = np.random.default_rng(0)
    >>> fitted = QuantileRecalibration().fit(rng.normal(0.0, 2.0, 2_000), Normal(np.zeros(2_000), 1.0))
    >>> fitted(Normal([10.0], 1.0)).quantile(np.array([0.1, 0.5, 0.9])).round(1), bool(fitted.scores["change"][0] < 0)
    (array([[ 7.4, 10. , 12.5]]), True)
    """

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """Corners of the distribution function of levels."""
        check_levels(predictions, "QuantileRecalibration")
        scores = spread_scores(predictions, targets.astype(np.float64))
        w = np.tile(in_rows(weights, len(targets)) / len(scores), len(scores))
        z, which = np.unique(scores.ravel(), return_inverse=True)
        rows = np.bincount(which, weights=w)
        n = rows.sum()
        reached = (np.cumsum(rows) - rows / 2) / n
        points = np.unique(np.minimum(np.searchsorted(reached, _shares(n)), len(z) - 1))
        points = points[np.isfinite(z[points])]
        points = points[np.diff(z[points], prepend=-np.inf) > CLOSE]
        extreme = rows[~np.isfinite(z)].sum() / n
        notes = () if extreme == 0 else (f"{extreme:.1%} of targets lie beyond all levels: try VarianceScaling first",)
        values = ndtri((n * reached[points] + ndtr(z[points])) / (n + 1))
        return Found(LevelMap(type(predictions).__name__, z[points], values), notes=notes)


def _shares(n: float) -> np.ndarray:
    """Shares of the rows up to each corner: even ones, halved again and again at both ends."""
    cells = max(2, round(n ** (1 / 3)))
    halvings = np.arange(1, max(0, int(np.log2(max(n / cells / FEWEST, 1)))) + 1)
    ends = 0.5**halvings / cells
    return np.sort(np.concatenate([np.arange(1, cells) / cells, ends, 1 - ends]))


@dataclass(frozen=True, eq=False)
class LevelMap(Map):
    """Points of a map of normal scores, joined by straight lines."""

    family: str
    scores: np.ndarray
    values: np.ndarray

    def __post_init__(self) -> None:
        lines = Lines(self.scores, self.values)
        object.__setattr__(self, "scores", lines.scores)
        object.__setattr__(self, "values", lines.values)

    def apply(self, predictions: Distribution) -> Distribution:
        """The same predictions, seen through the map; of quantile forecasts, new quantiles at the same levels."""
        better = Recalibrated(predictions, self.scores, self.values)
        fan = fan_of(predictions)
        return better if fan is None else type(fan).rearranged(better.quantile(fan.levels), fan.levels, fan.tails)

    def check(self, predictions: Distribution) -> None:
        """Refuse other families."""
        if type(predictions).__name__ != self.family:
            raise InputError(f"this map was fitted on {self.family} predictions; got {type(predictions).__name__}")
