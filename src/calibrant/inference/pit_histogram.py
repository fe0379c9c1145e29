"""The histogram of the levels of targets, with a band for all bins at once."""

from dataclasses import dataclass

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import check_count, check_fraction
from calibrant.distributions.conversion import as_weighted_problem
from calibrant.estimators.member_ranks import Prerank
from calibrant.estimators.pit import check_prerank, levels_of, randomised, share_upto
from calibrant.inference.proportions import equal_rows
from calibrant.inference.simultaneous import histogram_band
from calibrant.results import Table
from calibrant.typing import ArrayLike


@dataclass(frozen=True)
class PITHistogram:
    """Histogram of the levels ``F_i(y_i)`` of targets, flat where the forecast is calibrated.

    A table with the share of rows in each of ``n_bins`` equal bins, and a band from ``low`` to ``high`` that holds *all* bins of a
    calibrated forecast at once with at least the given probability, exactly for every n. A U says too sure, a hump too
    timid, a slope too low (up) or too high (down). Levels are those of :class:`~calibrant.estimators.pit.PIT`. With
    ``randomise=False`` a value with a probability of its own counts for a part in every bin it touches: no randomness, and
    less of it than the band allows for. O(n). Gneiting, Balabdaoui & Raftery (2007); Czado, Gneiting & Held (2009).

    >>> from calibrant import Normal, PITHistogram
    >>> y_true = np.random.default_rng(0).normal(0.0, 2.0, 200)
    >>> PITHistogram(n_bins=4)(y_true, Normal(np.zeros(200), 1.0))  # half as wide as it should be
    lower  upper  observed    low   high
        0   0.25      0.35  0.175  0.325
     0.25    0.5      0.14  0.175  0.325
      0.5   0.75     0.115  0.175  0.325
     0.75      1     0.395  0.175  0.325
    """

    n_bins: int = 10
    level: float = 0.95
    randomise: bool = True
    prerank: Prerank | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_count(self.n_bins, "n_bins", least=2)
        check_fraction(self.level, "level")
        check_prerank(self.prerank, self.seed)

    def __call__(self, y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None) -> Table:
        """The histogram with its band, as shares of the rows.

        With weights the band is that of so many rows of equal weight as tell as much, and holds about so often.
        """
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight)
        levels = levels_of(predictions, self, self.prerank, self.seed)(to_numpy(targets))
        if self.randomise:
            levels = (randomised(levels, self.seed),) * 2
        edges = np.arange(self.n_bins + 1) / self.n_bins
        reached = np.array([np.average(share_upto(levels, edge), weights=weights) for edge in edges[1:-1]])
        rows = equal_rows(weights, len(predictions))
        return histogram_table(np.diff(reached, prepend=0.0, append=1.0), rows, self.level)


def histogram_table(shares: np.ndarray, n: int, level: float) -> Table:
    """Shares of n rows in equal bins, with the band of uniform levels."""
    edges = np.arange(len(shares) + 1) / len(shares)
    low, high = histogram_band(n, len(shares), level)
    ends = {"low": np.full(len(shares), low / n), "high": np.full(len(shares), high / n)}
    return Table({"lower": edges[:-1], "upper": edges[1:], "observed": shares, **ends})
