"""Several recalibrators as one: their mixture, the best of them, or one for each class against the rest."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.recalibration.base import Found, HeldOut, Recalibrator, folds_of_rows, held_out
from calibrant.recalibration.maps import ClassMap, Map, check_classes
from calibrant.recalibration.margin import check_margin, gain_beyond, spread_of_log_loss

ITERATIONS = 10_000
TOLERANCE = 1e-6
"""How far, in nats per row, the log-likelihood of a mixture may be from its maximum."""


@dataclass(frozen=True)
class Stack(Recalibrator):
    """A mixture of several recalibrators and the predictions as they are: ``g = a_0 f + sum_m a_m g_m``.

    The shares ``a``, not negative and summing to 1, have the largest log-likelihood on held-out rows, where each
    ``g_m`` was fitted on the other ``folds``. Concave; by expectation-maximisation, to 1e-6 nats per row. The
    recalibrators are then fitted on all rows. With fewer rows than folds, one fold per row; a single row changes nothing.
    Breiman (1996); Berta et al. (2026) for log loss as the judge of recalibrators.

    >>> from calibrant.recalibration import SplineScaling
    >>> from calibrant.recalibration import Temperature
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
        mixture = MixtureStack(tuple(one.map for one in found), shares, predictions.n_classes)
        notes = tuple(dict.fromkeys(note for one in found for note in one.notes))
        return Found(mixture, is_converged and all(one.is_converged for one in found), notes)


@dataclass(frozen=True)
class Best(Recalibrator):
    """The one of several recalibrators with the least log loss on held-out rows, fitted on all rows; any family.

    Held out is each of ``folds`` in turn, or only the first ``tries`` of them, at ``tries / folds`` of the cost. With a
    ``margin``, another than the first must be better than it by so many standard errors: the first should be the simplest.
    They are, for classes, at least what rows would show whose outcomes come from the mean of both maps' probabilities: where
    nearly all rows are sure, their own spread tells nothing of the rare one that goes wrong.
    Breiman (1996); log loss as the judge of recalibrators as in Berta et al. (2026).

    >>> from calibrant.recalibration import SplineScaling
    >>> from calibrant.recalibration import Temperature
    >>> rng = np.random.default_rng(0)
    >>> f = rng.beta(0.5, 0.5, 2_000)
    >>> type(Best((Temperature(), SplineScaling())).fit(rng.binomial(1, f**3), f).map).__name__
    'SplineMap'
    """

    recalibrators: Sequence[Recalibrator]
    folds: int = 5
    seed: int = 0
    tries: int | None = None
    margin: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "recalibrators", _checked(self.recalibrators))
        check_count(self.folds, "folds", least=2)
        if self.tries is not None:
            check_count(self.tries, "tries", least=1)
        check_margin(self.margin)

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """The winner's map."""
        fold = _dealt(len(targets), self.folds, self.seed)
        last = fold.max() if self.tries is None else self.tries - 1
        tried = np.where(fold > last, -1, fold)
        logs, spreads = np.zeros((2, len(self.recalibrators), len(targets)))
        first: tuple[HeldOut, ...] = ()
        for i, recalibrator in enumerate(self.recalibrators):
            parts = held_out(recalibrator, targets, predictions, weights, tried)
            first = first or parts
            for before, after in zip(first, parts, strict=True):
                logs[i, after.rows] = to_numpy(after.predictions.log_prob(targets[after.rows]))
                if i and self.margin:
                    spreads[i, after.rows] = _spread(before, after)
        rows = np.flatnonzero(tried >= 0)
        w = np.ones(len(targets)) if weights is None else weights
        winner = self._winner(logs[:, rows], w[rows], spreads[:, rows])
        return self.recalibrators[winner].find(targets, predictions, weights)

    def _winner(self, logs: np.ndarray, w: np.ndarray, spreads: np.ndarray) -> int:
        """The number of the best of those that are better than the first by more than chance, or the first.

        Log probabilities of what happened, and least variances of their changes, are ``(recalibrators, n)``.
        """
        if self.margin == 0 or not w.any():
            return int(np.argmax(logs @ w))
        share = w / w.sum()
        gains = [gain_beyond(self.margin, -logs[0], -after, share, s) for after, s in zip(logs, spreads, strict=True)]
        return int(np.argmax(gains))


def _spread(before: HeldOut, after: HeldOut) -> np.ndarray | float:
    """Variances that rows have whichever of two maps is right; of other families than classes nothing is known."""
    both = (before.predictions, after.predictions)
    classes = [to_numpy(one.matrix) for one in both if isinstance(one, Categorical)]
    return spread_of_log_loss(*classes) if len(classes) == 2 else 0.0


@dataclass(frozen=True, eq=False)
class MixtureStack(ClassMap):
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
        rows = Categorical.trusted(p)
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


@dataclass(frozen=True)
class OneVsRest(Recalibrator):
    """A recalibrator of two classes for many: one map per class, of that class against the rest; rows are then normalised.

    Each map sees its own class only, so it can follow what is special to a class, and nothing of what classes share.
    Zadrozny & Elkan (2002).

    >>> from calibrant.recalibration import Platt
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(3), 2_000)
    >>> sharp = p**2 / (p**2).sum(axis=1, keepdims=True)
    >>> fitted = OneVsRest(Platt()).fit([rng.choice(3, p=row) for row in p], sharp)
    >>> fitted([[0.8, 0.1, 0.1]]).round(2)
    array([[0.59, 0.22, 0.19]])
    """

    recalibrator: Recalibrator

    def __post_init__(self) -> None:
        if not isinstance(self.recalibrator, Recalibrator):
            raise InputError(f"OneVsRest takes a recalibrator such as Platt(); got {self.recalibrator!r}")

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """A fit a class."""
        check_classes(predictions, "OneVsRest")
        assert isinstance(predictions, Categorical)
        p = to_numpy(predictions.matrix).astype(np.float64)
        fits = [
            self.recalibrator.find((targets == c).astype(np.int64), Categorical.trusted(np.minimum(two, 1.0)), weights)
            for c, two in enumerate(_against_rest(p))
        ]
        names = predictions.class_names
        notes = tuple(f"class {name}: {note}" for name, fit in zip(names, fits, strict=True) for note in fit.notes)
        maps = OneVsRestMap(len(fits), tuple(fit.map for fit in fits))
        return Found(maps, all(fit.is_converged for fit in fits), notes if len(notes) <= 5 else _counted(notes, names))


def _counted(notes: tuple[str, ...], names: tuple[str, ...]) -> tuple[str, ...]:
    """The first notes, and how many more there are."""
    return (*notes[:3], f"{len(notes) - 3:,} more notes on other classes of the {len(names):,}")


def _against_rest(p: np.ndarray) -> list[np.ndarray]:
    """For each class, the probabilities of all others together and of itself, ``(n, 2)``; sums, not 1 - p, keep small tails.

    Rows may miss one, by rounding; the two of a class do not.
    """
    p = p / p.sum(axis=1, keepdims=True)
    edge = np.zeros((len(p), 1))
    before = np.concatenate([edge, np.cumsum(p[:, :-1], axis=1)], axis=1)
    after = np.concatenate([np.cumsum(p[:, :0:-1], axis=1)[:, ::-1], edge], axis=1)
    return [np.stack([before[:, c] + after[:, c], p[:, c]], axis=1) for c in range(p.shape[1])]


@dataclass(frozen=True)
class OneVsRestMap(ClassMap):
    """A map of two classes for each class; rows that all maps send to 0 stay as they are."""

    n_classes: int
    maps: Any

    def __post_init__(self) -> None:
        maps = tuple(part if isinstance(part, Map) else Map.from_dict(part) for part in self.maps)
        if len(maps) != self.n_classes or not all(isinstance(m, ClassMap) and m.n_classes == 2 for m in maps):
            raise InputError(f"OneVsRestMap must hold {self.n_classes} maps of two classes; got {len(maps)} maps")
        object.__setattr__(self, "maps", maps)

    def probabilities(self, p: np.ndarray) -> np.ndarray:
        """One column a map, divided by their sum."""
        pairs = zip(self.maps, _against_rest(p), strict=True)
        new = np.stack([m.probabilities(two)[:, 1] for m, two in pairs], axis=1)
        total = new.sum(axis=1, keepdims=True)
        return np.where(total > 0, new / np.where(total > 0, total, 1), p)
