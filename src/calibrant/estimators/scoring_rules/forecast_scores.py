"""Scores of forecasts: CRPS, energy score, pinball loss and interval score."""

from dataclasses import dataclass, replace

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError, as_levels, check_count, check_fraction
from calibrant.distributions.base import Distribution
from calibrant.distributions.empirical.ensemble import Ensemble, distance_from, mean_distance
from calibrant.distributions.empirical.quantiles import fan_of, forecast_at
from calibrant.distributions.quadrature import crps_by_cells
from calibrant.estimators.base import Statistic
from calibrant.estimators.scoring_rules.proper_scores import Score
from calibrant.results import Estimate, Table
from calibrant.typing import Array

ROWS = 512
"""Rows at a time, few enough to stay in the cache."""


def shares_of(predictions: Distribution) -> np.ndarray | None:
    """The probabilities of the members of an ensemble that has weights."""
    return predictions.shares if isinstance(predictions, Ensemble) and predictions.weights is not None else None


def members_of(predictions: Distribution, n_draws: int, seed: int) -> np.ndarray:
    """The members of an ensemble, or as many draws of another family, ``(n, m)`` or ``(n, m, d)``."""
    if isinstance(predictions, Ensemble):
        return to_numpy(predictions.members).astype(np.float64)
    return np.moveaxis(predictions.sample(np.random.default_rng(seed), n_draws), 0, 1).astype(np.float64)


def even_members(predictions: Distribution, n_draws: int, seed: int) -> np.ndarray:
    """The same, all equally likely: draws of ensembles that have weights, too."""
    if shares_of(predictions) is None:
        return members_of(predictions, n_draws, seed)
    return np.moveaxis(predictions.sample(np.random.default_rng(seed), n_draws), 0, 1)


def check_fair(predictions: Distribution) -> None:
    """Refuse what a fair score has no meaning for."""
    if not isinstance(predictions, Ensemble):
        raise InputError(
            f"fair=True corrects for the number of members of an Ensemble; got {type(predictions).__name__} predictions"
        )
    if predictions.coincidence.max() > 1 - 1e-12:
        row = int(predictions.coincidence.argmax())
        raise InputError(f"fair=True needs at least 2 members per row; got 1 in row {row}")


@dataclass(frozen=True)
class CRPS(Score):
    """Continuous ranked probability score: mean of ``E|Y - y| - E|Y - Y'| / 2``, in the unit of the targets.

    The same as ``integral (F(x) - [y <= x])^2 dx``, and the absolute error where a prediction has no spread. By the
    family's closed form, else by integration between quantiles (to 1e-9 of the spread of smooth families), else
    by ``n_draws`` draws per row of the given ``seed``, without bias. The score of m members rewards ensembles that are too
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
            if isinstance(predictions, Ensemble) and not predictions.is_vector:
                near, spread = predictions.distances(targets)
                return near - spread / 2
        scores = predictions.crps(targets)
        if scores is NotImplemented:
            scores = crps_by_cells(predictions, targets)
        if scores is NotImplemented:
            return self._by_draws(targets, predictions)
        return to_numpy(scores)

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


@dataclass(frozen=True)
class EnergyScore(Score):
    """Energy score: mean of ``E||Y - y|| - E||Y - Y'|| / 2`` for vectors; the CRPS where they have one coordinate.

    From the members of an :class:`~calibrant.Ensemble`, else from ``n_draws`` draws per row of the given ``seed``, over pairs
    of different ones, without bias. ``fair=True`` does so for members too: it scores the distribution that they were drawn
    from. Coordinates with a large spread count most: standardise them first if they should not. Sees errors of means
    and spreads well, of correlations badly. O(n m^2 d). Gneiting & Raftery (2007); Ferro (2014).

    >>> from calibrant import Ensemble
    >>> from calibrant.estimators import EnergyScore
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


DECILES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class Pinball(Score):
    """Pinball loss: the mean over ``levels`` u of ``([y < q] - u) (q - y)`` with q the predicted quantile at u.

    The score that quantile regression minimises; at 1/2 it is half the absolute error of the median. Twice its mean over
    all levels is the CRPS. Quantile forecasts have the levels that they were given at, and no others. The table has each
    level by itself. O(n) a level. Koenker & Bassett (1978).

    >>> from calibrant import Normal, Pinball
    >>> Pinball([0.5, 0.9])([1.0, -1.0], Normal([0.0, 0.0], 1.0)).table
    level   value
      0.5     0.5
      0.9  0.1282
    """

    name = "Pinball"
    least = 0.0
    reads_quantiles = True

    levels: tuple[float, ...] = DECILES

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", as_levels(self.levels, "levels"))

    def of_levels(self, targets: Array, predictions: Distribution) -> np.ndarray:
        """The loss of each level and row, ``(levels, ..., n)``."""
        u = self._levels(predictions)
        quantiles = forecast_at(predictions, u, self)
        y = to_numpy(targets)
        return np.stack([((y < q) - level) * (q - y) for level, q in zip(u, quantiles.T, strict=True)])

    def _levels(self, predictions: Distribution) -> np.ndarray:
        """Those asked for; where nothing was said, quantile forecasts have their own."""
        fan = fan_of(predictions)
        return np.array(self.levels) if fan is None or self.levels != DECILES else fan.levels

    def losses(self, targets: Array, predictions: Distribution) -> np.ndarray:
        """The mean over levels of each row."""
        return self.of_levels(targets, predictions).mean(axis=0)

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The mean loss, its standard error, and the mean of each level."""
        values = np.average(self.of_levels(targets, predictions), axis=1, weights=weights)
        return replace(
            super().estimate(targets, predictions, weights), table=Table(level=self._levels(predictions), value=values)
        )


def central_interval(predictions: Distribution, level: float, asker: object) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of the interval that leaves ``(1 - level) / 2`` on either side, ``(n,)`` each."""
    tail = (1 - level) / 2
    ends = forecast_at(predictions, [tail, 1 - tail], asker)
    return ends[:, 0], ends[:, 1]


@dataclass(frozen=True)
class IntervalScore(Score):
    """Interval score: the width of the central interval of a ``level``, and a penalty for targets outside.

    ``(high - low) + 2 / (1 - level) max(low - y, y - high, 0)``: least for the true quantiles, so a narrow interval pays only
    if it still holds what it promises. O(n). Winkler (1972); Gneiting & Raftery (2007).

    >>> from calibrant import Normal
    >>> from calibrant.estimators import IntervalScore
    >>> round(IntervalScore(0.8)([0.0, 3.0], Normal([0.0, 0.0], 1.0)).value, 2)  # 2.56 wide; missed by 1.72, times ten
    11.16
    """

    name = "IntervalScore"
    least = 0.0
    reads_quantiles = True

    level: float = 0.9

    def __post_init__(self) -> None:
        check_fraction(self.level, "level")

    def losses(self, targets: Array, predictions: Distribution) -> np.ndarray:
        """The score of each row."""
        low, high = central_interval(predictions, self.level, self)
        y = to_numpy(targets)
        missed = np.maximum(np.maximum(low - y, y - high), 0)
        return high - low + 2 / (1 - self.level) * missed
