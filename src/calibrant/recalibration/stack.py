"""Several recalibrators as one: their mixture, or the best of them, by rows they were not fitted on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution
from calibrant.distributions.categorical import Categorical
from calibrant.recalibration.base import ClassMap, Found, Map, Recalibrator, check_classes
from calibrant.recalibration.folds import folds_of_rows
from calibrant.recalibration.held_out import held_out

ITERATIONS = 10_000
TOLERANCE = 1e-6
"""How far, in nats a row, the log-likelihood of a mixture may be from its maximum."""


@dataclass(frozen=True)
class Stack(Recalibrator):
    """A mixture of several recalibrators and the predictions as they are: ``g = a_0 f + sum_m a_m g_m``.

    The shares ``a``, not negative and summing to 1, have the largest log-likelihood on held-out rows, where each
    ``g_m`` was fitted on the other ``folds``. Concave; by expectation-maximisation, to 1e-6 nats a row. The
    recalibrators are then fitted on all rows. With fewer rows than folds, a fold a row; one row changes nothing.
    Breiman (1996); Berta et al. (2026) for log loss as the judge of recalibrators.

    >>> from calibrant.recalibration.spline import SplineScaling
    >>> from calibrant.recalibration.temperature import Temperature
    >>> rng = np.random.default_rng(0)
    >>> f = rng.beta(0.5, 0.5, 2_000)
    >>> y = rng.binomial(1, f**3)
    >>> fitted = Stack((Temperature(), SplineScaling())).fit(y, f)
    >>> fitted.map.shares.round(1)
    array([0., 0., 1.])
    """

    recalibrators: Sequence[Recalibrator]
    folds: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "recalibrators", _checked(self.recalibrators))
        check_count(self.folds, "folds", least=2)

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """Shares from held-out rows, maps from all rows."""
        check_classes(predictions, "Stack")
        assert isinstance(predictions, Categorical)
        fold = _dealt(len(targets), self.folds, self.seed)
        chances = np.exp(held_out_log_chances(self.recalibrators, targets, predictions, weights, fold))
        unchanged = np.exp(to_numpy(predictions.log_prob(targets)))
        w = np.ones(len(targets)) if weights is None else weights
        shares, is_converged = np.eye(len(chances) + 1)[0], True
        if len(targets) > 1:
            shares, is_converged = _shares(np.vstack([unchanged, chances]), w / w.sum())
        found = [one.find(targets, predictions, weights) for one in self.recalibrators]
        mixture = Mixture(tuple(one.map for one in found), shares, predictions.n_classes)
        notes = tuple(dict.fromkeys(note for one in found for note in one.notes))
        return Found(mixture, is_converged and all(one.is_converged for one in found), notes)


@dataclass(frozen=True)
class Best(Recalibrator):
    """The one of several recalibrators with the least log loss on held-out rows, fitted on all rows; any family.

    Held out is each of ``folds`` in turn, or only the first ``tries`` of them, at ``tries / folds`` of the cost.
    Breiman (1996); log loss as the judge of recalibrators as in Berta et al. (2026).

    >>> from calibrant.recalibration.spline import SplineScaling
    >>> from calibrant.recalibration.temperature import Temperature
    >>> rng = np.random.default_rng(0)
    >>> f = rng.beta(0.5, 0.5, 2_000)
    >>> type(Best((Temperature(), SplineScaling())).fit(rng.binomial(1, f**3), f).map).__name__
    'SplineMap'
    """

    recalibrators: Sequence[Recalibrator]
    folds: int = 5
    seed: int = 0
    tries: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "recalibrators", _checked(self.recalibrators))
        check_count(self.folds, "folds", least=2)
        if self.tries is not None:
            check_count(self.tries, "tries", least=1)

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """The winner's map."""
        fold = _dealt(len(targets), self.folds, self.seed)
        last = fold.max() if self.tries is None else self.tries - 1
        tried = np.where(fold > last, -1, fold)
        logs = held_out_log_chances(self.recalibrators, targets, predictions, weights, tried)
        score = logs @ (np.ones(len(targets)) if weights is None else weights)
        return self.recalibrators[int(np.argmax(score))].find(targets, predictions, weights)


@dataclass(frozen=True, eq=False)
class Mixture(ClassMap):
    """Shares of the predictions as they are and of each of several maps."""

    maps: Sequence[Map]
    shares: np.ndarray
    n_classes: int

    def __post_init__(self) -> None:
        maps = [part if isinstance(part, Map) else Map.from_dict(part) for part in self.maps]
        object.__setattr__(self, "maps", tuple(maps))
        if self.shares.shape != (len(maps) + 1,) or not (self.shares >= 0).all() or abs(self.shares.sum() - 1) > 1e-9:
            raise InputError(f"{len(maps)} maps need {len(maps) + 1} shares that sum to 1; got {self.shares!r}")

    def probabilities(self, p: np.ndarray) -> np.ndarray:
        """The mixture's; a map without a share is not asked."""
        rows = Categorical(p)
        mixed: np.ndarray = self.shares[0] * p
        for share, part in zip(self.shares[1:], self.maps, strict=True):
            if share > 0:
                found = part.apply(rows)
                assert isinstance(found, Categorical)
                mixed = mixed + share * to_numpy(found.matrix)
        return mixed


def held_out_log_chances(
    recalibrators: Sequence[Recalibrator],
    targets: np.ndarray,
    predictions: Distribution,
    weights: np.ndarray | None,
    fold: np.ndarray,
) -> np.ndarray:
    """The log probability of what happened by each map fitted on other folds, ``(recalibrators, n)``; 0 in folds below 0."""
    logs = np.zeros((len(recalibrators), len(targets)))
    for i, recalibrator in enumerate(recalibrators):
        for part in held_out(recalibrator, targets, predictions, weights, fold):
            logs[i, part.rows] = to_numpy(part.predictions.log_prob(targets[part.rows]))
    return logs


def _dealt(n: int, n_folds: int, seed: int) -> np.ndarray:
    """The fold of each of n rows, no more folds than rows; of one row, none."""
    return np.array([-1]) if n == 1 else folds_of_rows(n, min(n_folds, n), seed)


def _checked(recalibrators: Sequence[Recalibrator]) -> tuple[Recalibrator, ...]:
    """A tuple of recalibrators, at least one."""
    several = tuple(recalibrators)
    if not several or not all(isinstance(one, Recalibrator) for one in several):
        raise InputError(
            f"recalibrators must be a list of recalibrators, such as [Temperature()]; got {recalibrators!r}"
        )
    return several


def _shares(chances: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, bool]:
    """Shares of largest ``sum_i w_i log sum_m a_m chances_mi``, and whether they were reached."""
    possible = np.flatnonzero((chances.max(axis=0) > 0) & (w > 0))
    shares = np.full(len(chances), 1 / len(chances))
    if not len(possible):
        return shares, True
    chances, w = chances[:, possible], w[possible] / w[possible].sum()
    for _ in range(ITERATIONS):
        gain = (chances / (shares @ chances)) @ w
        if gain.max() - 1 < TOLERANCE:  # by concavity no mixture is better by more
            return _rounded(shares), True
        shares = shares * gain / (shares @ gain)
    return _rounded(shares), False


def _rounded(shares: np.ndarray) -> np.ndarray:
    """Without shares too small to matter."""
    kept = np.where(shares > TOLERANCE, shares, 0)
    return kept / kept.sum()
