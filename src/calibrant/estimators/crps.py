"""The continuous ranked probability score."""

from dataclasses import dataclass

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution
from calibrant.distributions.cells import crps_by_cells
from calibrant.distributions.ensemble import Ensemble
from calibrant.distributions.member_distances import distance_from, mean_distance
from calibrant.estimators.members import check_fair, members_of
from calibrant.estimators.scores import Score
from calibrant.typing import Array


@dataclass(frozen=True)
class CRPS(Score):
    """Continuous ranked probability score: mean of ``E|Y - y| - E|Y - Y'| / 2``, in the unit of the targets.

    The same as ``integral (F(x) - [y <= x])^2 dx``, and the absolute error where a prediction has no spread. By the
    family's closed form, else by integration between quantiles (to 1e-9 of the spread of smooth families), else
    by ``n_draws`` draws a row of the given ``seed``, without bias. The score of m members rewards ensembles that are too
    narrow, the more the fewer they are; ``fair=True`` takes pairs of different members alone, and so scores the distribution
    that the members were drawn from. O(n) or O(n m log m). Gneiting & Raftery (2007); Ferro (2014).

    >>> from calibrant import CRPS, Normal
    >>> round(CRPS()([0.0, 3.0], Normal([0.0, 0.0], 1.0)).value, 4)
    1.3351
    """

    name = "CRPS"

    fair: bool = False
    n_draws: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        check_count(self.n_draws, "n_draws", least=2)
        check_count(self.seed, "seed", least=0)

    def losses(self, targets: Array, predictions: Distribution) -> np.ndarray:
        """The score of each row."""
        if self.fair:
            check_fair(predictions)
        scores = predictions.crps(targets)
        if scores is NotImplemented:
            scores = crps_by_cells(predictions, targets)
        if scores is NotImplemented:
            return self._by_draws(targets, predictions)
        scores = to_numpy(scores)
        if not self.fair:
            return scores
        assert isinstance(predictions, Ensemble)
        members = members_of(predictions, self.n_draws, self.seed)
        return scores - predictions.coincidence * mean_distance(members, predictions.shares) / 2

    def _by_draws(self, targets: Array, predictions: Distribution) -> np.ndarray:
        one = predictions[:1].sample(np.random.default_rng(self.seed), 1)
        if one.dtype.kind != "f":
            raise InputError(
                f"CRPS scores numbers; got {type(predictions).__name__} predictions: use Brier() for classes"
            )
        if one.ndim > 2:
            raise InputError(
                f"CRPS scores numbers and {type(predictions).__name__} predicts vectors: use EnergyScore()"
            )
        members = members_of(predictions, self.n_draws, self.seed)
        return distance_from(members, to_numpy(targets)) - mean_distance(members) / 2
