"""What fitted models say: probabilities of classes, or distributions of numbers."""

from inspect import signature
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.continuous.location_scale import Normal
from calibrant.distributions.discrete.categorical import Categorical


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
            f"{type(model).__name__} gives values of shape {values.shape} for {len(own)} classes: one column a class is "
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
            f"{type(model).__name__} predicts values of shape {np.shape(mean)}: one number a row is needed"
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
