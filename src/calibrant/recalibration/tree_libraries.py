"""Boosted trees of several libraries, each grown on top of given logits and turned into plain arrays."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from calibrant._validate import InputError
from calibrant.recalibration.trees import Trees

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
    def happened(self) -> np.ndarray:
        """What the logits should have said, ``(n, m)``."""
        classes = np.arange(self.n_classes)[-self.logits.shape[1] :]
        return (self.y[:, None] == classes).astype(np.float64)


Grower = Callable[[Start, int, float, int], list[Trees]]
"""Rows, number of rounds, learning rate and seed to the trees of each round."""


def missing(library: str, package: str) -> InputError:
    """What to say where a library that calibrant does not require is not there."""
    return InputError(f"library={library!r} needs a library that is not installed: pip install {package}")


def grown_by_sklearn(start: Start, rounds: int, rate: float, seed: int) -> list[Trees]:
    """One tree a round for all classes together, split by the residuals and with Newton's steps in its leaves."""
    try:
        from sklearn.tree import DecisionTreeRegressor
    except ImportError as error:
        raise missing("sklearn", "scikit-learn") from error
    logits, happened, found = start.logits, start.happened, []
    for _ in range(rounds):
        p = expit(logits) if logits.shape[1] == 1 else softmax(logits, axis=1)
        rest = happened - p
        least = min(ROWS / start.w.sum(), 0.5)
        fit = DecisionTreeRegressor(max_leaf_nodes=LEAVES, min_weight_fraction_leaf=least, random_state=seed)
        leaf = fit.fit(start.x, rest, sample_weight=start.w).apply(start.x)
        size = fit.tree_.node_count
        slope, bend = (_sums(leaf, start.w[:, None] * part, size) for part in (rest, p * (1 - p)))
        found.append(_from_sklearn(fit.tree_, rate * slope / (bend + RIDGE)))
        logits = logits + found[-1](start.x, logits.shape[1])
    return found


def _sums(leaf: np.ndarray, x: np.ndarray, size: int) -> np.ndarray:
    """Sums of x over the rows of each leaf, ``(size, m)``."""
    return np.stack([np.bincount(leaf, column, minlength=size) for column in x.T], axis=1)


def _from_sklearn(tree: Any, values: np.ndarray) -> Trees:
    """Nodes and leaves share numbers there; here each has its own."""
    is_leaf = tree.children_left < 0
    number = np.where(is_leaf, ~(np.cumsum(is_leaf) - 1), np.cumsum(~is_leaf) - 1)
    inner = np.flatnonzero(~is_leaf)
    left, right = (number[child[inner]] for child in (tree.children_left, tree.children_right))
    return Trees(tree.feature[inner], tree.threshold[inner], left, right, number[:1], np.zeros(1), values[is_leaf])


def grown_by_lightgbm(start: Start, rounds: int, rate: float, seed: int) -> list[Trees]:
    """One tree a round and class."""
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
    """One tree a round for all classes together, with the same question on a level."""
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
