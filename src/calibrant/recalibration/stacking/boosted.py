"""Boosted trees that start from the predictions, grown by one of several libraries, kept as plain arrays."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax

from calibrant._array import to_numpy
from calibrant._numerics.sums import cell_sums
from calibrant._validate import InputError, check_count, check_one_of
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.recalibration.base import Found, Recalibrator, folds_of_rows, in_rows
from calibrant.recalibration.maps import ClassMap, Map, check_classes
from calibrant.recalibration.nonparametric.shared_spline import floored_logs
from calibrant.recalibration.stacking.default import Default


@dataclass(frozen=True, eq=False)
class Trees:
    """T trees whose values add up. A row goes left at a node where ``x[feature] <= threshold``.

    Nodes ``(m,)`` have a feature, a threshold, and a left and a right child: another node, or the leaf i as ``~i``.
    ``roots``, ``(T,)``, are nodes or leaves. A leaf has ``values``, ``(leaves, width)``, that are added to as many columns
    from its tree's first one on, ``columns``, ``(T,)``. O(n) per level.

    >>> stump = Trees([0], [0.5], [~0], [~1], roots=[0], columns=[1], values=[[-1.0], [1.0]])
    >>> stump(np.array([[0.2], [0.7]]), 2)
    array([[ 0., -1.], [ 0.,  1.]])
    """

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    roots: np.ndarray
    columns: np.ndarray
    values: np.ndarray

    def __post_init__(self) -> None:
        for name in ("feature", "left", "right", "roots", "columns"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.int64))
        for name in ("threshold", "values"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        if self.values.ndim != 2:  # JSON has no shape for no leaves
            object.__setattr__(self, "values", np.empty((0, 1)))
        m, ends = len(self.feature), np.concatenate([self.left, self.right, self.roots])
        if not len(self.threshold) == len(self.left) == len(self.right) == m or len(self.columns) != len(self.roots):
            raise InputError("trees need a threshold and two children a node, and a column a root")
        own = np.arange(m)
        if np.any((self.left >= 0) & (self.left <= own)) or np.any((self.right >= 0) & (self.right <= own)):
            raise InputError("children of trees must come after their parents")
        if len(ends) and (ends.max() >= m or ends.min() < -len(self.values)):
            raise InputError("trees must end in leaves that have values")

    def to_dict(self) -> dict[str, np.ndarray]:
        """The arrays, for JSON."""
        return vars(self)

    @classmethod
    def none(cls, width: int) -> Self:
        """No tree at all."""
        empty = np.empty(0)
        return cls(empty, empty, empty, empty, empty, empty, np.empty((0, width)))

    def __call__(self, x: np.ndarray, n_columns: int) -> np.ndarray:
        """Sums of all trees' values, ``(n, n_columns)``, for features ``(n, d)``."""
        total = np.zeros((len(x), n_columns))
        for root, column in zip(self.roots, self.columns, strict=True):
            total[:, column : column + self.values.shape[1]] += self.values[self._leaf(x, root)]
        return total

    def _leaf(self, x: np.ndarray, root: int) -> np.ndarray:
        """The leaf of each row, ``(n,)``."""
        place = np.full(len(x), root)
        rows = np.arange(len(x)) if root >= 0 else np.arange(0)
        while len(rows):
            node = place[rows]
            is_left = x[rows, self.feature[node]] <= self.threshold[node]
            place[rows] = np.where(is_left, self.left[node], self.right[node])
            rows = rows[place[rows] >= 0]
        return ~place

    def times(self, factor: float) -> "Trees":
        """The same trees with all values multiplied."""
        return Trees(**{**vars(self), "values": factor * self.values})


def joined(several: Sequence[Trees], width: int) -> Trees:
    """All trees in one; none where there are none."""
    if not several:
        return Trees.none(width)
    nodes = np.cumsum([0, *(len(part.feature) for part in several)])
    leaves = np.cumsum([0, *(len(part.values) for part in several)])

    def moved(name: str) -> np.ndarray:
        parts = [getattr(part, name) for part in several]
        return np.concatenate([np.where(x >= 0, x + n, x - m) for x, n, m in zip(parts, nodes, leaves, strict=False)])

    same = {name: np.concatenate([getattr(part, name) for part in several]) for name in SAME}
    return Trees(**same, **{name: moved(name) for name in ("left", "right", "roots")})


SAME = ("feature", "threshold", "columns", "values")
"""What trees keep when they join others."""


LEAVES, DEPTH = 16, 4
"""The size of a tree."""

RIDGE = 1.0
"""Added to the curvature of the loss in a leaf, which else is next to nothing where a model is sure."""

ROWS = 20
"""Rows in a leaf, at least."""


@dataclass(frozen=True, eq=False)
class Start:
    """Rows to learn from: features ``(n, d)``, class numbers, weights, and logits ``(n, m)``, one column for two classes."""

    x: np.ndarray
    y: np.ndarray
    w: np.ndarray
    logits: np.ndarray
    n_classes: int

    @property
    def observed(self) -> np.ndarray:
        """What the logits should have said, ``(n, m)``."""
        classes = np.arange(self.n_classes)[-self.logits.shape[1] :]
        return (self.y[:, None] == classes).astype(np.float64)


Grower = Callable[[Start, int, float, int], list[Trees]]
"""Rows, number of rounds, learning rate and seed to the trees of each round."""


def missing(library: str, package: str) -> InputError:
    """What to say where a library that calibrant does not require is not there."""
    return InputError(f"library={library!r} needs a library that is not installed: pip install {package}")


def grown_by_sklearn(start: Start, rounds: int, rate: float, seed: int) -> list[Trees]:
    """One tree per round for all classes together, split by the residuals and with Newton's steps in its leaves."""
    try:
        from sklearn.tree import DecisionTreeRegressor
    except ImportError as error:
        raise missing("sklearn", "scikit-learn") from error
    logits, observed, found = start.logits, start.observed, []
    for _ in range(rounds):
        p = expit(logits) if logits.shape[1] == 1 else softmax(logits, axis=1)
        rest = observed - p
        least = min(ROWS / start.w.sum(), 0.5)
        fit = DecisionTreeRegressor(max_leaf_nodes=LEAVES, min_weight_fraction_leaf=least, random_state=seed)
        leaf = fit.fit(start.x, rest, sample_weight=start.w).apply(start.x)
        size = fit.tree_.node_count
        slope, bend = (cell_sums(leaf, start.w[:, None] * part, size) for part in (rest, p * (1 - p)))
        found.append(_from_sklearn(fit.tree_, rate * slope / (bend + RIDGE)))
        logits = logits + found[-1](start.x, logits.shape[1])
    return found


def _from_sklearn(tree: Any, values: np.ndarray) -> Trees:
    """Nodes and leaves share numbers there; here each has its own."""
    is_leaf = tree.children_left < 0
    number = np.where(is_leaf, ~(np.cumsum(is_leaf) - 1), np.cumsum(~is_leaf) - 1)
    inner = np.flatnonzero(~is_leaf)
    left, right = (number[child[inner]] for child in (tree.children_left, tree.children_right))
    return Trees(tree.feature[inner], tree.threshold[inner], left, right, number[:1], np.zeros(1), values[is_leaf])


def grown_by_lightgbm(start: Start, rounds: int, rate: float, seed: int) -> list[Trees]:
    """One tree per round and class."""
    try:
        import lightgbm
    except ImportError as error:
        raise missing("lightgbm", "lightgbm") from error
    m = start.logits.shape[1]
    settings = {
        "objective": "binary" if m == 1 else "multiclass",
        **({} if m == 1 else {"num_class": start.n_classes}),
        "learning_rate": rate,
        "num_leaves": LEAVES,
        "lambda_l2": RIDGE,
        "min_sum_hessian_in_leaf": 1e-3,
        "min_data_in_leaf": ROWS,
        "boost_from_average": False,
        "num_threads": 1,
        "deterministic": True,
        "force_col_wise": True,
        "seed": seed,
        "verbosity": -1,
    }
    data = lightgbm.Dataset(
        start.x, start.y, weight=start.w, init_score=start.logits[:, 0] if m == 1 else start.logits, params=settings
    )
    dumped = lightgbm.train(settings, data, rounds).dump_model()["tree_info"]
    return [_from_lightgbm([tree["tree_structure"] for tree in dumped[i : i + m]]) for i in range(0, len(dumped), m)]


def _from_lightgbm(structures: list[dict[str, Any]]) -> Trees:
    """One tree a column."""
    nodes: list[dict[str, Any]] = []
    leaves: list[list[float]] = []
    roots = [_placed(structure, nodes, leaves) for structure in structures]
    columns = np.arange(len(structures))
    feature, threshold, left, right = ([node[name] for node in nodes] for name in _NODE)
    return Trees(feature, threshold, left, right, roots, columns, leaves)  # type: ignore[arg-type]


_NODE = ("split_feature", "threshold", "left", "right")


def _placed(structure: dict[str, Any], nodes: list[dict[str, Any]], leaves: list[list[float]]) -> int:
    """The number of a node, or of a leaf, that is put on the list with all below it."""
    if "split_feature" not in structure:
        leaves.append([structure["leaf_value"]])
        return ~(len(leaves) - 1)
    place, node = len(nodes), {name: structure[name] for name in _NODE[:2]}
    nodes.append(node)
    node["left"], node["right"] = (_placed(structure[f"{side}_child"], nodes, leaves) for side in ("left", "right"))
    return place


def grown_by_catboost(start: Start, rounds: int, rate: float, seed: int) -> list[Trees]:
    """One tree per round for all classes together, with the same question on a level."""
    try:
        import catboost
    except ImportError as error:
        raise missing("catboost", "catboost") from error
    if not np.ptp(start.x, axis=0).any():  # refused by the library: there is nothing to ask of rows that are all alike
        return []
    m = start.logits.shape[1]
    seen, y = np.unique(start.y, return_inverse=True)  # classes that never happen stay as they are: it allows none
    columns = np.arange(1) if m == 1 else seen
    model = catboost.CatBoost(
        {
            "loss_function": "Logloss" if m == 1 else "MultiClass",
            "iterations": rounds,
            "learning_rate": rate,
            "depth": DEPTH,
            "l2_leaf_reg": RIDGE,
            "bootstrap_type": "No",
            "random_strength": 0,
            "random_seed": seed,
            "thread_count": 1,  # more may hang in a forked process
            "allow_writing_files": False,
            "verbose": False,
        }
    )
    data = catboost.Pool(start.x, y, weight=start.w, baseline=start.logits[:, columns])
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.fit(data).save_model(str(path), format="json")
        dumped = json.loads(path.read_text())
    return [_from_catboost(tree, columns, m) for tree in dumped["oblivious_trees"]]


def _from_catboost(tree: dict[str, Any], columns: np.ndarray, width: int) -> Trees:
    """The node of level i after the answers ``b_0, b_1, ...`` is ``2^i - 1 + sum_j b_j 2^j``; so are leaves."""
    splits = tree["splits"] or []
    own = np.array(tree["leaf_values"]).reshape(-1, len(columns))
    values = np.zeros((len(own), width))
    values[:, columns] = own
    if not splits:
        return Trees([], [], [], [], [-1], [0], values)  # type: ignore[arg-type]
    level = np.repeat(np.arange(len(splits)), 2 ** np.arange(len(splits)))
    answers = np.arange(len(level)) - (2**level - 1)
    below = 2 ** (level + 1) - 1 + answers
    left, right = (np.where(child < len(level), child, ~(child - len(level))) for child in (below, below + 2**level))
    feature, border = (np.array([split[name] for split in splits])[level] for name in ("float_feature_index", "border"))
    return Trees(feature, border.astype(np.float32), left, right, [0], [0], values)  # type: ignore[arg-type]


GROWERS: dict[str, tuple[Grower, float]] = {
    "sklearn": (grown_by_sklearn, 0.2),
    "lightgbm": (grown_by_lightgbm, 0.2),
    "catboost": (grown_by_catboost, 0.3),
}
"""How each library grows trees, and its learning rate where none is given."""


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
    (array([[0.6, 0.2, 0.2], [0.1, 0.3, 0.6]]), True)
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
        said = Categorical.trusted(as_probabilities(held_out.logits[rounds]))
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
    if found is None:
        return p.astype(np.float64)
    after = found.apply(Categorical.trusted(p))
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
