"""Boosted trees that start from the predictions."""

from dataclasses import dataclass, field
from numbers import Real
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax

from calibrant._array import to_numpy
from calibrant._validate import InputError, check_count, check_one_of
from calibrant.distributions.base import Distribution
from calibrant.distributions.categorical import Categorical
from calibrant.recalibration.base import ClassMap, Found, Map, Recalibrator, check_classes
from calibrant.recalibration.default import Default
from calibrant.recalibration.folds import folds_of_rows
from calibrant.recalibration.shared_spline import floored_logs
from calibrant.recalibration.tree_libraries import GROWERS, Start
from calibrant.recalibration.trees import Trees, joined
from calibrant.recalibration.weights import in_rows


@dataclass(frozen=True)
class Boosted(Recalibrator):
    """Boosted trees of the logits, on top of another recalibrator or of the predictions themselves. Any number of classes.

    ``log g1 + sum of trees(log g1)``, with g1 from the recalibrator ``first``, fitted by boosting to what g1 leaves over.
    Trees are those of scikit-learn, LightGBM or CatBoost, whichever ``library`` is named and installed. In each of
    ``folds`` the trees of up to ``trees`` rounds are grown on the other folds; the number of rounds is that of least log loss
    on all held-out rows together, and may be 0. The logits of the folds' models are averaged. What they said of held-out
    rows trains the recalibrator ``last``, if there is one. ``first=None, last=Quadratic()``, or ``StructuredMatrix()``,
    is the order of Berta et al. (2026); trees on top of :class:`Default` have less to learn and add less noise.

    Probabilities of g1 below ``1 / 4n`` count as this. Leaves have a ridge of 1 on their curvature: without it trees
    explode on models that are sure. Trees become plain arrays, so the map is saved as JSON and needs no library. The
    order of classes does not matter, but for two classes with LightGBM and CatBoost, which cut log-odds into bins from one
    side. Chen & Guestrin (2016) for ridge and Newton's steps.

    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(3), 2_000)
    >>> truth = np.where(p[:, :1] > p[:, 1:2], [0.7, 0.2, 0.1], [0.1, 0.3, 0.6])
    >>> fitted = Boosted("sklearn").fit([rng.choice(3, p=row) for row in truth], p)
    >>> fitted([[0.5, 0.1, 0.4], [0.1, 0.5, 0.4]]).round(1), bool(fitted.scores["change"][0] < 0)
    (array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]), True)
    """

    library: Literal["sklearn", "lightgbm", "catboost"] = "lightgbm"
    first: Recalibrator | None = field(default_factory=Default)
    last: Recalibrator | None = None
    trees: int = 10
    learning_rate: float | None = None
    folds: int = 8
    seed: int = 0

    def __post_init__(self) -> None:
        check_one_of(self.library, tuple(GROWERS), "library")
        for name in ("first", "last"):
            if not isinstance(getattr(self, name), Recalibrator | None):
                raise InputError(f"{name} must be a recalibrator or None; got {getattr(self, name)!r}")
        check_count(self.trees, "trees")
        check_count(self.folds, "folds", least=2)
        rate = self.learning_rate
        if rate is not None and (isinstance(rate, bool) or not isinstance(rate, Real) or not 0 < rate <= 1):
            raise InputError(f"learning_rate must be a number above 0 and up to 1; got {rate!r}")

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """The first map, trees of every fold, as many rounds as held-out rows want, and the last map."""
        check_classes(predictions, "Boosted")
        assert isinstance(predictions, Categorical)
        w = in_rows(weights, len(targets))
        y, k = targets.astype(np.int64), predictions.n_classes
        first = None if self.first is None else self.first.find(y, predictions, w)
        floor = float(1 / max(4 * w.sum(), 8.0))
        logs = floored_logs(_through(None if first is None else first.map, to_numpy(predictions.matrix)), floor)
        start = Start(features(logs), y, w, starting_logits(logs), k)
        held_out = self._held_out(start)
        rounds = int(np.argmin(held_out.losses))
        trees = [tree for model in held_out.models for tree in model[:rounds]]
        mean = joined(trees, start.logits.shape[1]).times(1 / max(len(held_out.models), 1))
        said = Categorical(as_probabilities(held_out.logits[rounds]))
        last = None if self.last is None else self.last.find(y, said, w)
        others = [found for found in (first, last) if found is not None]
        notes = tuple(dict.fromkeys(note for found in others for note in found.notes))
        maps = [None if found is None else found.map for found in (first, last)]
        found = BoostedMap(k, floor, maps[0], mean, maps[1])
        return Found(found, all(other.is_converged for other in others), notes)

    def _held_out(self, start: Start) -> "_HeldOut":
        """Trees of each fold, and the logits that they give to the rows of the fold."""
        n = len(start.y)
        logits = np.repeat(start.logits[None], self.trees + 1, axis=0)
        models = []
        for rest in _dealt(start.y, min(self.folds, n), self.seed):
            model = self._grown(start, np.flatnonzero(~rest))
            models.append(model)
            for i, tree in enumerate(model):
                logits[i + 1 :, rest] += tree(start.x[rest], start.logits.shape[1])
        losses = [float(start.w @ row_losses(part, start.y)) for part in logits]
        return _HeldOut(models, logits, np.array(losses))

    def _grown(self, start: Start, rows: np.ndarray) -> list[Trees]:
        """The trees of each round, from these rows; none where nothing but one class happened."""
        part = Start(start.x[rows], start.y[rows], start.w[rows], start.logits[rows], start.n_classes)
        if len(np.unique(part.y)) < 2:
            return []
        grow, rate = GROWERS[self.library]
        return grow(part, self.trees, self.learning_rate or rate, self.seed)


class _HeldOut(NamedTuple):
    """Trees of each fold and round; logits after 0, 1, ... rounds, ``(rounds + 1, n, m)``, of rows held out; their losses."""

    models: list[list[Trees]]
    logits: np.ndarray
    losses: np.ndarray


@dataclass(frozen=True, eq=False)
class BoostedMap(ClassMap):
    """What :class:`Boosted` found: a map that comes first, trees, and a map that comes last."""

    n_classes: int
    floor: float
    first: Map | None
    trees: Trees
    last: Map | None

    def __post_init__(self) -> None:
        for name in ("first", "last"):
            if isinstance(getattr(self, name), dict):
                object.__setattr__(self, name, Map.from_dict(getattr(self, name)))
        if isinstance(self.trees, dict):
            object.__setattr__(self, "trees", Trees(**self.trees))
        if not 0 < self.floor < 0.5:
            raise InputError(f"floor must be a number between 0 and 1/2; got {self.floor!r}")
        m = 1 if self.n_classes == 2 else self.n_classes
        if self.trees.feature.max(initial=0) >= m or self.trees.columns.max(initial=0) >= m:
            raise InputError(f"trees of {self.n_classes} classes have {m} features and columns")

    def probabilities(self, p: np.ndarray) -> np.ndarray:
        """Logits of the first map, moved by the trees, through the last map."""
        logs = floored_logs(_through(self.first, p), self.floor)
        logits = starting_logits(logs)
        return _through(self.last, as_probabilities(logits + self.trees(features(logs), logits.shape[1])))


def _through(found: Map | None, p: np.ndarray) -> np.ndarray:
    """Probabilities as a map makes them, or as they are."""
    after = Categorical(p) if found is None else found.apply(Categorical(p))
    assert isinstance(after, Categorical)
    return to_numpy(after.matrix).astype(np.float64)


def features(logs: np.ndarray) -> np.ndarray:
    """What trees see of logarithms of probabilities: the log-odds of two classes, else logarithms less their mean.

    In single precision, which is all that some libraries look at.
    """
    x = logs[:, 1:] - logs[:, :1] if logs.shape[1] == 2 else logs - logs.mean(axis=1, keepdims=True)
    return x.astype(np.float32).astype(np.float64)


def starting_logits(logs: np.ndarray) -> np.ndarray:
    """Where trees start: log-odds ``(n, 1)`` of two classes, else logarithms ``(n, k)``."""
    return logs[:, 1:] - logs[:, :1] if logs.shape[1] == 2 else logs


def as_probabilities(logits: np.ndarray) -> np.ndarray:
    """Probabilities ``(n, k)``; both columns of two classes by themselves, so that no tail is lost."""
    if logits.shape[1] > 1:
        return softmax(logits, axis=1)
    return np.concatenate([expit(-logits), expit(logits)], axis=1)


def row_losses(logits: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The log loss of each row."""
    if logits.shape[1] == 1:
        return -log_expit(np.where(y == 1, logits[:, 0], -logits[:, 0]))
    return -log_softmax(logits, axis=1)[np.arange(len(y)), y]


def _dealt(y: np.ndarray, n_folds: int, seed: int) -> list[np.ndarray]:
    """Which rows each fold has; none of a single row."""
    if n_folds < 2:
        return []
    fold = folds_of_rows(len(y), n_folds, seed)
    return [fold == i for i in range(n_folds)]
