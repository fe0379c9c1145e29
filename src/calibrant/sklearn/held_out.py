"""Models fitted on parts of the rows, what they say of the others in words of calibrant, and the map that is learnt from it."""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from inspect import signature
from numbers import Integral
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from calibrant._clusters import Clusters, as_clusters
from calibrant._validate import InputError, as_weights
from calibrant.distributions.base import Distribution
from calibrant.distributions.continuous.location_scale import Normal
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.recalibration.base import Recalibration, Recalibrator
from calibrant.results import how_many


def class_numbers(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The position of each label among the classes.

    >>> class_numbers(np.array(["b", "a", "b"]), np.array(["a", "b"]))
    array([1, 0, 1])
    """
    order = np.argsort(classes)
    found = order[np.minimum(np.searchsorted(classes, y, sorter=order), len(classes) - 1)]
    unknown = np.unique(y[classes[found] != y])
    if len(unknown):
        raise InputError(
            f"y has labels that the estimator does not know: {unknown[:5].tolist()}; it knows {classes[:20].tolist()}"
        )
    return found


def as_categorical(probabilities: np.ndarray, classes: np.ndarray) -> Categorical:
    """Probabilities of named classes; targets are their numbers, whatever the names."""
    return Categorical(probabilities, tuple(map(str, classes))).checked()


def gives_probabilities(estimator: Any) -> bool:
    """Whether it has ``predict_proba``; else it must have ``decision_function``."""
    if hasattr(estimator, "predict_proba"):
        return True
    if hasattr(estimator, "decision_function"):
        return False
    raise InputError(f"estimator must have predict_proba or decision_function; {estimator!r} has neither")


def response(model: Any, X: Any, classes: np.ndarray) -> np.ndarray:
    """Probabilities ``(n, k)``, or logits where the model gives no probabilities.

    Logits are its decision values, those of two classes against 0. A class that the model has not seen gets probability 0.
    """
    own = np.asarray(model.classes_)
    if gives_probabilities(model):
        values, impossible = np.asarray(model.predict_proba(X), dtype=np.float64), 0.0
    else:
        values, impossible = np.asarray(model.decision_function(X), dtype=np.float64), -np.inf
        values = np.stack([np.zeros(len(values)), values], axis=1) if values.ndim == 1 else values
    if values.ndim != 2 or values.shape[1] != len(own):
        raise InputError(
            f"{type(model).__name__} gives values of shape {values.shape} for {len(own)} classes: one column per class is "
            "needed (decision_function_shape='ovr' for SVC)"
        )
    table = np.full((len(values), len(classes)), impossible)
    table[:, class_numbers(own, classes)] = values
    return table


def spread(logits: np.ndarray, weights: np.ndarray | None) -> float:
    """Root mean square of logits about the mean of their row; 1 where they are all the same."""
    known = np.isfinite(logits)
    mean = np.where(known, logits, 0).sum(axis=1, keepdims=True) / known.sum(axis=1, keepdims=True)
    squares = np.where(known, logits - mean, 0) ** 2
    return float(np.sqrt(np.average(squares.mean(axis=1), weights=weights))) or 1.0


def probabilities(values: np.ndarray, scale: float | None) -> np.ndarray:
    """Probabilities as they are; softmax of logits in units of their scale."""
    return values if scale is None else softmax(values / scale, axis=1)


def gives_spread(estimator: Any) -> bool:
    """Whether ``predict`` takes ``return_std``; of a pipeline, that of its last step."""
    if isinstance(estimator, FrozenEstimator):
        return gives_spread(estimator.estimator)
    if isinstance(estimator, Pipeline):
        return gives_spread(estimator.steps[-1][1])
    return "return_std" in signature(estimator.predict).parameters


def means_and_spreads(model: Any, X: Any) -> np.ndarray:
    """What a regressor predicts and how far it may be off, ``(n, 2)``; NaN where it does not say."""
    if gives_spread(model):
        mean, std = model.predict(X, return_std=True)
    else:
        mean = model.predict(X)
        std = np.full(np.shape(mean), np.nan)
    table = np.stack([np.asarray(part, dtype=np.float64) for part in (mean, std)], axis=-1)
    if table.ndim != 2:
        raise InputError(
            f"{type(model).__name__} predicts values of shape {np.shape(mean)}: one number per row is needed"
        )
    return table


def distribution(model: Any, X: Any) -> Distribution:
    """The predictions of a model as a distribution, with class numbers or numbers as targets."""
    if hasattr(model, "predict_dist"):
        found: Distribution = model.predict_dist(X)
        return found
    if gives_spread(model):
        return Normal(*means_and_spreads(model, X).T)
    raise InputError(
        f"{type(model).__name__} predicts numbers without a spread: wrap it in RecalibratedRegressor, or give it a method "
        "predict_dist(X) that returns a calibrant distribution"
    )


FOLDS = 5
"""Parts of the held-out rows by which the map itself is judged."""


class RecalibrationWarning(UserWarning):
    """What a reader of recalibrated predictions must know.

    >>> issubclass(RecalibrationWarning, UserWarning)
    True
    """


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Inputs, targets, weights and groups of the rows that count, and which of the rows given they are."""

    X: Any
    y: np.ndarray
    weights: np.ndarray | None
    numbers: np.ndarray
    groups: Clusters | None = None

    def of(self, rows: np.ndarray) -> "TrainingRows":
        """Some of the rows."""
        w = None if self.weights is None else self.weights[rows]
        groups = None if self.groups is None else self.groups[rows]
        return TrainingRows(_safe_indexing(self.X, rows), self.y[rows], w, self.numbers[rows], groups)


def as_rows(X: Any, y: np.ndarray, sample_weight: Any, groups: Any = None) -> TrainingRows:
    """Rows with weight; those without are left out, as if they had not been given."""
    X, y = indexable(X, y)
    if not len(y):
        raise InputError("X and y have no rows: at least one of each of two folds is needed")
    weights = None if sample_weight is None else as_weights(np.asarray(sample_weight), len(y))
    together = None if groups is None else as_clusters(groups, len(y), "groups", "y")
    rows = TrainingRows(X, y, weights, np.arange(len(y)), together)
    if rows.weights is None or rows.weights.min() > 0:
        return rows
    return rows.of(np.flatnonzero(rows.weights))


@dataclass(frozen=True, eq=False)
class HeldOutPart:
    """A fitted model, rows that it has not seen, and its predictions of them."""

    model: Any
    rows: np.ndarray
    predictions: np.ndarray


def held_out(
    estimator: Any,
    rows: TrainingRows,
    predict: Callable[[Any, Any], np.ndarray],
    *,
    cv: Any,
    n_jobs: int | None,
    is_classifier: bool,
) -> list[HeldOutPart]:
    """One model a split, with its predictions of the rows left out of it; a frozen estimator predicts all rows as it is."""
    if isinstance(estimator, FrozenEstimator):
        return [HeldOutPart(estimator, np.arange(len(rows.y)), predict(estimator, rows.X))]
    given = replace(rows, weights=_weights_for(estimator, rows.weights))
    splits = _splits(cv, rows, is_classifier=is_classifier)
    parts: Iterable[HeldOutPart] = Parallel(n_jobs=n_jobs)(
        delayed(_part)(estimator, given.of(learn), _safe_indexing(rows.X, rest), rest, predict)
        for learn, rest in splits
    )
    return list(parts)


def pooled(parts: list[HeldOutPart]) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers and predictions of all parts, in the order of the rows."""
    rows = np.concatenate([part.rows for part in parts])
    order = np.argsort(rows)
    return rows[order], np.concatenate([part.predictions for part in parts])[order]


def features_of(model: Any) -> dict[str, Any]:
    """The number and names of a fitted model's features, where it tells them."""
    names = ("n_features_in_", "feature_names_in_")
    return {name: getattr(model, name) for name in names if hasattr(model, name)}


def fitted(estimator: Any, rows: TrainingRows) -> Any:
    """The estimator fitted on these rows; a frozen one as it is."""
    if isinstance(estimator, FrozenEstimator):
        return estimator
    weights = rows.weights if has_fit_parameter(estimator, "sample_weight") else None
    return clone(estimator).fit(rows.X, rows.y, **({} if weights is None else {"sample_weight": weights}))


def _part(
    estimator: Any, learn: TrainingRows, X: Any, rest: np.ndarray, predict: Callable[[Any, Any], np.ndarray]
) -> HeldOutPart:
    model = fitted(estimator, learn)
    return HeldOutPart(model, rest, predict(model, X))


def _weights_for(estimator: Any, weights: np.ndarray | None) -> np.ndarray | None:
    if weights is None or has_fit_parameter(estimator, "sample_weight"):
        return weights
    message = f"{type(estimator).__name__} takes no sample_weight: weights count for the map alone"
    warnings.warn(message, RecalibrationWarning, stacklevel=4)
    return None


def _splits(cv: Any, rows: TrainingRows, *, is_classifier: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows to learn from and rows to hold out, none of which twice: a map fitted on copies would be judged by copies."""
    if isinstance(cv, str):
        raise InputError(
            f"cv={cv!r} is no number of folds and no splitter: leave it out, and wrap a model that is fitted already, "
            "FrozenEstimator(model) of sklearn.frozen"
        )
    if cv is None or isinstance(cv, Integral) or hasattr(cv, "split"):
        codes = None if rows.groups is None else rows.groups.codes
        is_count = cv is None or isinstance(cv, Integral)
        if is_count and codes is not None:
            cv = (StratifiedGroupKFold if is_classifier else GroupKFold)(5 if cv is None else cv)
        try:
            with warnings.catch_warnings():  # those that split groups are refused below
                warnings.filterwarnings("ignore", "The groups parameter is ignored")
                splits = list(check_cv(cv, rows.y, classifier=is_classifier).split(rows.X, rows.y, codes))
        except ValueError as error:
            n = how_many(len(rows.y), "row")
            raise InputError(f"cv={cv!r} cannot split {n}: {error}; give more rows, or cv with fewer folds") from error
    else:  # numbers of rows as they were given, of which some may have no weight
        place = np.full(rows.numbers[-1] + 1, -1)
        place[rows.numbers] = np.arange(len(rows.y))
        splits = [tuple(_without_gaps(place, part) for part in split) for split in cv]
    times = np.bincount(np.concatenate([rest for _, rest in splits]), minlength=len(rows.y))
    if times.max() > 1:
        raise InputError(
            f"cv holds row {int(times.argmax())} out {times.max()} times: take a cv that holds each row out at most "
            "once, such as StratifiedKFold or TimeSeriesSplit"
        )
    if rows.groups is not None:
        _check_groups(splits, rows.groups.codes)
    return splits


def _check_groups(splits: list[tuple[np.ndarray, np.ndarray]], codes: np.ndarray) -> None:
    """Refuse a model that has seen rows of a group that is held out from it."""
    for learn, rest in splits:
        if len(both := np.intersect1d(codes[learn], codes[rest])):
            raise InputError(
                f"cv splits {how_many(len(both), 'group')}, whose rows must be held out together: take a cv that keeps groups "
                "whole, such as GroupKFold(5), or a number of folds"
            )


def _without_gaps(place: np.ndarray, numbers: Any) -> np.ndarray:
    """Places of rows; those without one, and those beyond the last, are left out."""
    some = np.asarray(numbers)
    found = place[some[some < len(place)]]
    return found[found >= 0]


def learnt(
    recalibrator: Recalibrator,
    targets: np.ndarray,
    predictions: Distribution,
    weights: np.ndarray | None,
    asker: str,
    groups: Clusters | None = None,
) -> Recalibration:
    """The map from held-out predictions to better ones, judged on groups it has not seen; a warning where it made them worse."""
    count, codes = (len(targets), None) if groups is None else (len(groups), groups.codes)
    found = recalibrator.fit(targets, predictions, sample_weight=weights, clusters=codes, folds=min(FOLDS, count))
    assert found.scores is not None
    score = next(found.scores.rows())
    if found.is_worse or not np.isfinite(score["after"]):
        change = f" ({score['change']:+.2g} ± {score['error']:.1g})" if np.isfinite(score["error"]) else ""
        warnings.warn(
            f"{asker}: {recalibrator!r} took the held-out {score['score']} from {score['before']:.4g} to "
            f"{score['after']:.4g}{change}: use another recalibrator, or the estimator as it is",
            RecalibrationWarning,
            stacklevel=3,
        )
    return found


def check_recalibrator(recalibrator: object) -> None:
    """Refuse what is no recalibrator of ours."""
    if not isinstance(recalibrator, Recalibrator | None):
        raise InputError(f"recalibrator must be a recalibrator such as Temperature(); got {recalibrator!r}")
