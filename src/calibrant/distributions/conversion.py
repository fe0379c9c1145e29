"""From what the caller gave to targets and predictions that belong together."""

import warnings

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError, as_array, as_weights, check_not_empty, check_same_length
from calibrant.distributions.adapters import adapted
from calibrant.distributions.base import Distribution
from calibrant.distributions.categorical import Categorical
from calibrant.typing import Array, ArrayLike

SWAPPED = "the arguments look swapped: calibrant takes the truth first, f(y_true, y_pred)"


def as_distribution(y_pred: ArrayLike) -> Distribution:
    """Predictions as a distribution; bare ``(n,)`` and ``(n, k)`` numbers are class probabilities.

    Distributions of other libraries are read, too: :func:`~calibrant.distributions.adapters.adapted`.

    >>> as_distribution([0.2, 0.9])
    <Categorical: 2 predictions of 2 classes>
    """
    found = y_pred if isinstance(y_pred, Distribution) else adapted(y_pred)
    return Categorical(y_pred) if found is None else found


def as_problem(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[Array, Distribution]:
    """Targets and predictions, checked, one target a prediction."""
    if isinstance(y_true, Distribution):
        raise InputError(f"y_true is a {type(y_true).__name__}: {SWAPPED}")
    truth = as_array(y_true, "y_true")
    check_not_empty(truth, "y_true")
    predictions = y_pred if isinstance(y_pred, Distribution) else adapted(y_pred)
    if predictions is None:
        if is_fractional(truth) and not is_fractional(as_array(y_pred, "y_pred")):
            raise InputError(f"y_true holds fractions and y_pred does not: {SWAPPED}")
        predictions = Categorical(y_pred)
    check_same_length(truth.shape[0], len(predictions), "y_true", "y_pred")
    return predictions.as_targets(truth), predictions.checked()


def as_weighted_problem(
    y_true: ArrayLike, y_pred: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[Array, Distribution, np.ndarray | None]:
    """Targets, predictions and weights, checked; rows without weight are left out."""
    targets, predictions = as_problem(y_true, y_pred)
    weights = as_weights(sample_weight, len(predictions))
    if weights is None or weights.min() > 0:
        return targets, predictions, weights
    rows = np.flatnonzero(weights)
    return targets[rows, ...], predictions[rows], weights[rows]


def as_part(
    y_true: ArrayLike, y_pred: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[Array, Distribution, np.ndarray | None] | None:
    """The same of a part of the data, which may have no rows, or none that counts: then ``None``.

    It may lack classes, too, and nobody is warned of it.
    """
    if hasattr(y_true, "__len__") and hasattr(y_pred, "__len__") and not len(y_true) and not len(y_pred):
        return None
    weights = None if sample_weight is None else to_numpy(as_array(sample_weight, "sample_weight"))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "class 0 never occurs")
        if weights is None or not len(weights) or weights.any():
            return as_weighted_problem(y_true, y_pred, weights)
        as_weighted_problem(y_true, y_pred, np.ones_like(weights))  # which checks the rest
        return None


def is_fractional(x: Array) -> bool:
    """Whether the first rows hold numbers that are not whole."""
    first = to_numpy(x[: min(1000, x.shape[0]), ...])
    return first.dtype.kind == "f" and bool(np.any(first != np.round(first)))
