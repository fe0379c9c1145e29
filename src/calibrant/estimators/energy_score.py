"""The energy score: the ranked probability score of vectors."""

from dataclasses import dataclass

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution
from calibrant.distributions.ensemble import Ensemble
from calibrant.distributions.member_distances import distance_from, mean_distance
from calibrant.estimators.base import Statistic
from calibrant.estimators.members import check_fair, members_of, shares_of
from calibrant.estimators.scores import Score
from calibrant.typing import Array


@dataclass(frozen=True)
class EnergyScore(Score):
    """Energy score: mean of ``E||Y - y|| - E||Y - Y'|| / 2`` for vectors; the CRPS where they have one coordinate.

    From the members of an :class:`~calibrant.Ensemble`, else from ``n_draws`` draws a row of the given ``seed``, over pairs
    of different ones, without bias. ``fair=True`` does so for members too: it scores the distribution that they were drawn
    from. Coordinates with a large spread count most: standardise them first if they should not. Sees errors of means
    and spreads well, of correlations badly. O(n m^2 d). Gneiting & Raftery (2007); Ferro (2014).

    >>> from calibrant import Ensemble, EnergyScore
    >>> EnergyScore()([[0.0, 0.0]], Ensemble([[[3.0, 4.0], [-3.0, -4.0]]])).value  # 5 - 10 / 4
    2.5
    """

    name = "EnergyScore"

    fair: bool = False
    n_draws: int = 50
    seed: int = 0

    def __post_init__(self) -> None:
        check_count(self.n_draws, "n_draws", least=2)
        check_count(self.seed, "seed", least=0)

    def losses(self, targets: Array, predictions: Distribution) -> np.ndarray:
        """The score of each row."""
        return self._prepared(predictions, np.ones(len(predictions))).losses(targets)

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """Distances of members from each other are found once."""
        return self._prepared(predictions, np.ones(len(predictions)) if weights is None else weights)

    def _prepared(self, predictions: Distribution, weights: np.ndarray) -> "_Members":
        if self.fair:
            check_fair(predictions)
        elif predictions[:1].sample(np.random.default_rng(self.seed), 1).dtype.kind != "f":
            kind, instead = type(predictions).__name__, "Brier" if hasattr(predictions, "squared_error") else "CRPS"
            raise InputError(f"EnergyScore scores real numbers and vectors; got {kind} predictions: use {instead}()")
        members = members_of(predictions, self.n_draws, self.seed)
        shares = shares_of(predictions)
        different = 1 - predictions.coincidence if isinstance(predictions, Ensemble) and not self.fair else 1.0
        return _Members(members, shares, different * mean_distance(members, shares), weights)


@dataclass(frozen=True, eq=False)
class _Members:
    members: np.ndarray
    shares: np.ndarray | None
    spread: np.ndarray
    weights: np.ndarray

    def losses(self, targets: Array) -> np.ndarray:
        return distance_from(self.members, to_numpy(targets).astype(np.float64), self.shares) - self.spread / 2

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        return self.losses(targets) @ self.weights / self.weights.sum()
