"""Any classifier as a recalibrator of another."""

import copy
from dataclasses import dataclass
from inspect import signature
from typing import Any, Literal

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError, check_one_of
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.recalibration.base import Found, Recalibrator, in_rows
from calibrant.recalibration.maps import ClassMap, check_classes
from calibrant.recalibration.nonparametric.shared_spline import floored_logs


@dataclass(frozen=True)
class Learned(Recalibrator):
    """A classifier in scikit-learn's manner, fitted to what happened given the predictions, then as its answers.

    It is given logits, ``log f`` less its mean over classes (of two classes the log-odds), or ``features="probabilities"``.
    Of its answer g and the prediction f the map makes ``(n g + f) / (n + 1)``: f counts as one row, so that a class that
    never happened keeps a chance, and a sure answer that was wrong costs no infinite log loss. Logarithms of probabilities
    below ``1 / 4n`` count as that. Weights go to its ``fit``, which must take ``sample_weight`` then. Any number of classes;
    cost, and what permuting classes does, are those of the classifier. Classifiers from scratch need more rows than those
    that start from the predictions, such as :class:`Boosted`; Berta et al. (2026).

    A fitted classifier is code and not numbers: the map works, but JSON cannot hold it.

    >>> from sklearn.ensemble import RandomForestClassifier
    >>> rng = np.random.default_rng(0)
    >>> f = rng.random(2_000)
    >>> forest = RandomForestClassifier(50, min_samples_leaf=100, random_state=0)
    >>> fitted = Learned(forest).fit(rng.binomial(1, np.where(f < 0.5, 0.1, 0.6)), f)
    >>> bool(abs(fitted([0.2, 0.8]) - [0.1, 0.6]).max() < 0.1), bool(fitted.scores["change"][0] < 0)
    (True, True)
    """

    classifier: Any
    features: Literal["logits", "probabilities"] = "logits"

    def __post_init__(self) -> None:
        if isinstance(self.classifier, type) or not all(hasattr(self.classifier, x) for x in ("fit", "predict_proba")):
            raise InputError(
                "classifier must be an object with fit and predict_proba, such as RandomForestClassifier(); "
                f"got {self.classifier!r}"
            )
        check_one_of(self.features, ("logits", "probabilities"), "features")

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """A copy of the classifier, fitted; where a single class happened, none."""
        check_classes(predictions, "Learned")
        assert isinstance(predictions, Categorical)
        w = in_rows(weights, len(targets))
        y, k = targets.astype(np.int64), predictions.n_classes
        p = to_numpy(predictions.matrix).astype(np.float64)
        floor = None if self.features == "probabilities" else float(1 / max(4 * w.sum(), 8.0))
        classes = np.unique(y)
        model = copy.deepcopy(self.classifier)
        if len(classes) > 1:
            options = {} if weights is None else {"sample_weight": _accepted(model, w)}
            model = model.fit(_seen_as(p, floor), y, **options)
        return Found(LearnedMap(k, float(w.sum()), floor, classes, model))


def _accepted(model: Any, weights: np.ndarray) -> np.ndarray:
    """The weights, if the classifier takes them."""
    if "sample_weight" in signature(model.fit).parameters:
        return weights
    raise InputError(f"sample_weight cannot be used: fit of {type(model).__name__} does not take it")


def _seen_as(p: np.ndarray, floor: float | None) -> np.ndarray:
    """What the classifier sees of probabilities: logits, or the probabilities where there is no floor for logits."""
    x = p if floor is None else floored_logs(p, floor)
    if x.shape[1] == 2:
        return x[:, 1:] if floor is None else x[:, 1:] - x[:, :1]
    return x if floor is None else x - x.mean(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class LearnedMap(ClassMap):
    """A fitted classifier, the classes it knows, the floor of the logarithms it sees, and for how many rows it speaks."""

    n_classes: int
    n: float
    floor: float | None
    classes: np.ndarray
    model: Any

    def __post_init__(self) -> None:
        if not hasattr(self.model, "predict_proba"):
            raise InputError(f"model must be a fitted classifier; got {self.model!r}")

    def probabilities(self, p: np.ndarray) -> np.ndarray:
        """The classifier's answer, with the prediction itself as one more row."""
        g = np.zeros_like(p)
        g[:, self.classes] = self.model.predict_proba(_seen_as(p, self.floor)) if len(self.classes) > 1 else 1.0
        mixed = self.n * g + p
        return mixed / mixed.sum(axis=1, keepdims=True)

    def to_dict(self) -> dict[str, Any]:
        """Refused: a classifier is code, which JSON does not hold."""
        raise InputError(
            f"a map that holds a fitted {type(self.model).__name__} cannot be saved as JSON: keep the rows and fit it "
            "again, or use a recalibrator made of numbers, such as Boosted() or Default()"
        )
