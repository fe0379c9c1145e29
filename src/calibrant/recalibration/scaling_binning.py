"""Scaling-binning: Platt scaling made discrete, so that its calibration error can be verified."""

from dataclasses import dataclass

import numpy as np

from calibrant._validate import check_count
from calibrant.distributions.base import Distribution
from calibrant.recalibration.base import ClassMap, Found, Recalibrator
from calibrant.recalibration.binary import pools_of
from calibrant.recalibration.histogram import BinnedMap, in_bins, mass_edges
from calibrant.recalibration.scaling import Platt


@dataclass(frozen=True)
class ScalingBinning(Recalibrator):
    """Platt scaling, then its mean over each of ``n_bins`` bins with as many rows each; two classes.

    Outcomes are used by the two numbers of Platt scaling only, hence the variance of a parametric fit; the output has
    few values, hence an error that can be measured. Platt scaling is monotone, so that bins of its outputs are bins of the
    scores, and the map is a table of both. All rows serve both steps, where the paper splits them.
    Kumar, Liang & Ma (2019).

    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2_000)
    >>> y = rng.random(2_000) < 1 / (1 + (1 / p - 1) ** 0.5)
    >>> fitted = ScalingBinning(10).fit(y, p)
    >>> len(set(fitted(p))), bool(fitted.scores["change"][0] < 0)
    (10, True)
    """

    n_bins: int = 15

    def __post_init__(self) -> None:
        check_count(self.n_bins, "n_bins")

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """Means of the scaled scores over equal-mass bins."""
        pools = pools_of(targets, predictions, weights, "ScalingBinning")
        scaling = Platt().find(targets, predictions, weights)
        assert isinstance(scaling.map, ClassMap)
        scaled = scaling.map.probabilities(np.stack([1 - pools.scores, pools.scores], axis=1))[:, 1]
        edges = mass_edges(pools, self.n_bins)
        values = in_bins(pools, edges, scaled) / in_bins(pools, edges, np.ones_like(scaled))
        return Found(BinnedMap(edges, np.clip(values, 0, 1)), scaling.is_converged, scaling.notes)
