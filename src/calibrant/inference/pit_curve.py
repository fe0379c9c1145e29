"""The distribution function of the levels of targets, with a band for all points at once."""

from dataclasses import dataclass

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import check_count, check_fraction
from calibrant.distributions.conversion import as_weighted_problem
from calibrant.estimators.member_ranks import Prerank
from calibrant.estimators.pit import check_prerank, levels_of, randomised
from calibrant.inference.proportions import equal_rows
from calibrant.inference.simultaneous import curve_band
from calibrant.results import Table
from calibrant.typing import ArrayLike


@dataclass(frozen=True)
class PITCurve:
    """Share of targets up to each level of their predictions: the diagonal where the forecast is calibrated.

    A table with columns ``level``, ``observed``, ``low`` and ``high`` at ``n_points - 1`` levels (no more than there are rows).
    *All* points of a calibrated forecast lie between ``low`` and ``high`` at once with at least the given probability, exactly
    for every n: one point outside is an error beyond chance. It needs no bins; what the histogram shows as height is slope here:
    an S lying on its side says too sure (steep at the ends) or too timid (steep in the middle), a bow to one side too
    high (above the diagonal) or too low. O(n log n). Säilynoja, Bürkner & Vehtari (2022).

    >>> from calibrant import Normal, PITCurve
    >>> y_true = np.random.default_rng(0).normal(1.0, 1.0, 200)
    >>> curve = PITCurve(n_points=4)(y_true, Normal(np.zeros(200), 1.0))  # too low
    >>> curve["observed"], bool(np.all(curve["observed"] < curve["low"]))
    (array([0.04, 0.17, 0.35]), True)
    """

    n_points: int = 100
    level: float = 0.95
    prerank: Prerank | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_count(self.n_points, "n_points", least=2)
        check_fraction(self.level, "level")
        check_prerank(self.prerank, self.seed)

    def __call__(self, y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None) -> Table:
        """The curve with its band.

        With weights the band is that of so many rows of equal weight as tell as much, and holds about so often.
        """
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight)
        levels = randomised(levels_of(predictions, self, self.prerank, self.seed)(to_numpy(targets)), self.seed)
        rows = equal_rows(weights, len(predictions))
        n_points = min(self.n_points, max(rows, 2))
        points = np.arange(1, n_points) / n_points
        order = np.argsort(levels, kind="stable")
        reached = np.searchsorted(levels[order], points, side="right")
        share = (
            reached / len(order)
            if weights is None
            else np.append(0, np.cumsum(weights[order]))[reached] / weights.sum()
        )
        low, high = curve_band(rows, n_points, self.level)
        return Table(level=points, observed=share, low=low, high=high)
